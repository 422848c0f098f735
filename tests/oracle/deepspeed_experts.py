"""Experts of DeepSpeed from PyPI: the MoE layer's own choice of groups, and the engine's AutoEP.

``MoE._create_process_groups`` decides whether tensor parallelism cuts experts;
``DeepSpeedEngine._configure_expert_parallel`` and ``_validate_zero3_moe_compatibility`` decide
what AutoEP does. All three run unchanged, on stand-ins for the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.oracle.recording import Lists, Recorder, Silent, loaded, methods, stub

Groups = dict[str, Lists]
ENGINE = ("_configure_expert_parallel", "_validate_zero3_moe_compatibility")


class AutoLayer:
    """Stands for a layer that AutoEP has made."""


class NativeLayer:
    """Stands for a layer that the user wrote with ``deepspeed.moe.layer.MoE``."""


class Mpu:
    """Stands for Megatron's model-parallel unit: its sizes."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.mp, self.pp = config["mp"], config["pp"]
        assert config["world"] % (self.mp * self.pp) == 0, "world_size is not divisible"
        self.dp: int = config["world"] // (self.mp * self.pp)

    def get_data_parallel_world_size(self) -> int:
        return self.dp

    def get_model_parallel_world_size(self) -> int:
        return int(self.mp)


def modules(folder: Path, groups: Any) -> dict[str, Any]:
    """Loads the files that decide the groups of experts, with all else they import stubbed."""
    stub("deepspeed.moe")
    stub("deepspeed.moe.experts", Experts=object)
    stub("deepspeed.moe.sharded_moe", MOELayer=object, TopKGate=object)
    stub("deepspeed.moe.ep_experts", EXPERT_ACTIVATIONS={})
    utils = stub("deepspeed.utils", log_dist=Silent(), logger=Silent(), groups=groups)
    utils.groups = groups  # type: ignore[attr-defined]
    made = {"layer": loaded(folder / "moe" / "layer.py", "deepspeed.moe.layer")}
    inject = folder / "module_inject"
    if not (inject / "auto_ep_config.py").exists():
        return made | {"engine": _methods(folder, groups)}
    stub("deepspeed.module_inject")
    stub("deepspeed.module_inject.auto_ep", AutoEP=NoLayers)
    names = {"AutoEPMoELayer": AutoLayer, "ReplacementSourceMap": dict}
    stub("deepspeed.module_inject.auto_ep_layer", **names)
    presets = "deepspeed.module_inject.auto_ep_presets"
    package = stub(presets)
    package.__path__ = [str(inject / "auto_ep_presets")]
    if (inject / "auto_ep_folding.py").exists():
        made["folding"] = loaded(
            inject / "auto_ep_folding.py", "deepspeed.module_inject.auto_ep_folding"
        )
    made["config"] = loaded(inject / "auto_ep_config.py", "deepspeed.module_inject.auto_ep_config")
    return made | {"engine": _methods(folder, groups)}


class NoLayers:
    """Stands for the search for MoE layers in a model, which finds none to replace."""

    def __init__(self, *_: object) -> None:
        pass

    def ep_parser(self) -> list[object]:
        return []


def _methods(folder: Path, groups: Any) -> dict[str, Any]:
    """Returns the engine's own methods as functions."""
    around = {"groups": groups, "dist": groups.dist, "logger": Silent(), "MoE": NativeLayer}
    return methods(folder / "runtime" / "engine.py", "DeepSpeedEngine", ENGINE, around)


def native(config: dict[str, Any], made: Mapping[str, Any]) -> Groups:
    """Returns the groups of a job whose model holds one MoE layer."""
    groups, ep = made["groups"], config["ep"]
    _check_stage(config, made, NativeLayer())
    groups.mpu = Mpu(config) if config["mp"] > 1 or config["pp"] > 1 else None
    layer = SimpleNamespace(
        ep_size=ep,
        expert_group_name=f"ep_size_{ep}",
        enable_expert_tensor_parallelism=in_parts(config),
        deepspeed_moe=SimpleNamespace(_set_ep_group=Silent()),
    )
    with _recorded(config, made) as recorder:
        made["layer"].MoE._create_process_groups(layer, config.get("data_before_expert", False))
    return _told(recorder, groups, config, ("expert", "expert_data"))


def in_parts(config: dict[str, Any]) -> bool:
    """Tells whether tensor parallelism cuts experts; goldens with mp > 1 are older than the key."""
    return bool(config.get("expert_tp", config["mp"] > 1))


def automatic(config: dict[str, Any], made: Mapping[str, Any]) -> Groups:
    """Returns the groups of AutoEP, and those of AutoTP as its own tables list them."""
    if "config" not in made:
        raise ValueError("this version has no AutoEP")
    groups = made["groups"]
    settings = made["config"].parse_autoep_config(
        {
            "enabled": True,
            "autoep_size": config["ep"],
            "expert_tensor_parallel_size": config.get("etp", 1),
        }
    )
    mpu = Mpu(config | {"mp": 1}) if config["pp"] > 1 else None
    engine = SimpleNamespace(
        _config=SimpleNamespace(
            expert_parallel_config=settings,
            use_data_before_expert_parallel_=config.get("data_before_expert", False),
            tensor_parallel_config=SimpleNamespace(preset_model=None),
        ),
        autotp_size=lambda: config["mp"],
        mpu=mpu,
        _autoep_sequence_parallel_world_size=lambda: config["sp"],
        zero_optimization_stage=lambda: config.get("zero_stage", 0),
        zero_offload_optimizer=lambda: None,
        zero_offload_param=lambda: None,
        client_optimizer=None,
        _autoep_zero3_param_converter=lambda _: None,
    )
    with _recorded(config, made) as recorder:
        made["engine"]["_configure_expert_parallel"](engine, None)
    _check_stage(config, made, AutoLayer())
    told = _told(recorder, groups, config, ("ep", "edp"))
    return told | _dense(config, made)


def _dense(config: dict[str, Any], made: Mapping[str, Any]) -> Groups:
    """Returns the dense groups; 0.19.2 has no table of them, but only one lane."""
    if "folding" not in made:
        stage = config["world"] // config["pp"]
        starts = range(0, config["world"], stage)
        whole = [list(range(start, start + stage)) for start in starts]
        return {"dense_dp": whole, "tp": [[rank] for rank in range(config["world"])]}
    sizes = {"world_size": config["world"], "pp_size": config["pp"], "tp_size": config["mp"]}
    spec = made["folding"].build_folding_spec(**sizes, ep_size=config["ep"])
    tables = made["folding"].expected_folding_group_tables(spec)
    return {
        "dense_dp": [list(group) for group in tables.dense_dp_groups],
        "tp": [list(group) for group in tables.tp_groups],
    }


def _check_stage(config: dict[str, Any], made: Mapping[str, Any], layer: object) -> None:
    """Runs the engine's own check of experts at ZeRO stage 3; before 0.19.3 it was one line."""
    if config.get("zero_stage") != 3:
        return
    check = made["engine"].get("_validate_zero3_moe_compatibility")
    assert check, "MoE not supported with Stage 3"
    zero = SimpleNamespace(zero_hpz_partition_size=config.get("hpz", 1))
    settings = SimpleNamespace(expert_tensor_parallel_size=config.get("etp", 1))
    check(
        SimpleNamespace(
            has_moe_layers=True,
            module=SimpleNamespace(named_modules=lambda: [("moe", layer)]),
            autotp_size=lambda: config["mp"],
            sequence_parallel_size=config["sp"],
            zero_quantized_gradients=lambda: config.get("qgz", False),
            _config=SimpleNamespace(zero_config=zero, expert_parallel_config=settings),
        )
    )


def _recorded(config: dict[str, Any], made: Mapping[str, Any]) -> Any:
    """Clears what an earlier job left behind and returns the recorder of this one."""
    groups = made["groups"]
    for name, value in list(vars(groups).items()):
        if name.startswith("_EXPERT_") and isinstance(value, dict):
            value.clear()
    return Recorder(config["world"]).patched(made["comm"])


def _told(
    recorder: Recorder, groups: Any, config: dict[str, Any], names: tuple[str, str]
) -> Groups:
    """Returns the recorded groups by kind, the kind that rank 0 got first being the first.

    The package makes either one kind and then the other, or stage by stage one after the other.
    """
    key = f"ep_size_{config['ep']}"
    held = (groups._EXPERT_PARALLEL_GROUP[key], groups._EXPERT_DATA_PARALLEL_GROUP[key])
    calls = recorder.calls
    first, last = sorted(zip(held, names, strict=True), key=lambda pair: calls.index(pair[0]))
    counts = {name: config["world"] // len(group.ranks) for group, name in (first, last)}
    by_stage = calls.index(last[0]) < counts[first[1]]
    parts = config["pp"] if by_stage else 1
    made: Groups = {first[1]: [], last[1]: []}
    start = 0
    for _ in range(parts):
        for name in made:
            stop = start + counts[name] // parts
            made[name] += [call.ranks for call in calls[start:stop]]
            start = stop
    assert start == len(calls)
    return made


def random_experts(rng: Any, version: str) -> dict[str, Any]:
    """Returns a config of experts that is valid more often than not."""
    world = rng.choice((8, 12, 16, 24, 32, 64))
    config: dict[str, Any] = {
        "world": world,
        "kind": rng.choice(("moe", "autoep")),
        "pp": rng.choice((1, 1, 1, 2, 4)),
        "mp": rng.choice((1, 1, 2, 2, 4)),
        "ep": rng.choice((1, 2, 4, 8, 3)),
        "sp": rng.choice((1, 1, 1, 2)),
        "zero_stage": rng.choice((0, 1, 2, 2, 3)),
        "data_before_expert": rng.random() < 0.3,
    }
    if config["kind"] == "moe":
        return config | {"sp": 1, "expert_tp": rng.random() < 0.5}
    config["etp"] = rng.choice((1, 1, 1, 1, 2))
    config["pp"] = rng.choice((1, config["pp"]))
    return config | {"hpz": rng.choice((1, 1, 1, 2)), "qgz": rng.random() < 0.1}
