"""Turns a golden of tests/goldens/layouts into the arguments of ``serried groups``.

A golden holds what a real package made: ``oracle`` names the package and its version,
``config`` the sizes it was called with (a package's own parameter names, and some keys that
say which of its cases was run), ``groups`` what came out, or ``error``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "goldens" / "layouts"
Config = Mapping[str, Any]
MAIN = {"nanotron": "main-2411b022", "torchtitan": "main"}
"""What serried calls the main branch that was read."""


def arguments(golden: dict[str, Any]) -> list[str]:
    """Returns the words after ``serried groups`` that ask for the layout of ``golden``."""
    package, _, rest = golden["oracle"].partition(" ")
    words = {
        "megatron-core": megatron,
        "InternLM": classic,
        "InternEvo": internevo,
        "deepspeed": deepspeed,
        "colossalai": colossalai,
        "nanotron": nanotron,
        "torchtitan": torchtitan,
        "torch": devicemesh,
        "accelerate": accelerate,
        "paddlepaddle": paddle,
    }
    make: Callable[[dict[str, Any], str], Iterator[str]] = words[package]
    return ["--world-size", str(golden["config"]["world"]), *make(golden, _version(package, rest))]


def _version(package: str, text: str) -> str:
    """Returns the version at the start of ``text``, without tag prefixes and build suffixes."""
    first = next((word for word in text.split() if re.search(r"\d|main", word)), "")
    version = re.sub(r"^(core_|git-)?v?(?=\d)", "", first).partition("+")[0]
    if version.startswith("main"):
        return MAIN.get(package, version)
    return version


def _framework(name: str, version: str) -> tuple[str, str]:
    return "--framework", f"{name}@{version}"


def _sizes(config: Config, **options: str) -> Iterator[str]:
    """Yields an option for each size that is not 1 or missing; ``tp="mp"`` reads key ``mp``."""
    for option, key in options.items():
        if config.get(key) not in (None, 1):
            yield f"--{option.replace('_', '-')}"
            yield str(config[key])


def _set(**settings: object) -> Iterator[str]:
    """Yields ``--set KEY=VALUE`` for each setting; ``__`` in a key stands for a dot."""
    for key, value in settings.items():
        if value is not None:
            yield "--set"
            yield f"{key.replace('__', '.')}={_text(value)}"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return str(value)


# ------------------------------------------------------------------------------- Megatron

MEGATRON_SIZES = {
    "tp": "tensor_model_parallel_size",
    "pp": "pipeline_model_parallel_size",
    "cp": "context_parallel_size",
    "ep": "expert_model_parallel_size",
    "etp": "expert_tensor_parallel_size",
    "order": "order",
}


def megatron(golden: dict[str, Any], version: str) -> Iterator[str]:
    config = golden["config"]
    yield from _framework("megatron", version)
    for option, key in MEGATRON_SIZES.items():
        if config.get(key) is not None:
            yield from (f"--{option}", str(config[key]))
    names = config.get("order", "").lower().split("-")
    if len(set(names)) < len(names) and "error" not in golden:
        yield from _set(allow_repeated_axes=True)
    if any(name.startswith("HIERARCHICAL_EXPERT") for name in golden.get("groups", ())):
        yield from _set(names="recorded")
    elif _is_named_by_variables(golden, version):
        yield from _set(names="variables")
    known = {"world", *MEGATRON_SIZES.values()}
    yield from _set(**{key: value for key, value in config.items() if key not in known})


def _is_named_by_variables(golden: dict[str, Any], version: str) -> bool:
    """Tells whether a golden names kinds by module variables, as most before 0.16.1 do.

    Without groups to look at, the config decides as it did when the goldens were made: gtp
    and offset windows (0.17 and newer) were recorded by field, other versions by variable.
    """
    if golden.get("groups"):
        return all(name.startswith("_") for name in golden["groups"])
    by_field = {"gtp_remat_size", "expert_gtp_remat_size", "rank_offset"} & set(golden["config"])
    return version != "0.16.1" and not by_field


# ----------------------------------------------------------------- InternLM and InternEvo


def _entry(parallel: Config, name: str, key: str = "size") -> Any:
    """Returns ``parallel.name.key``; a bare number is its size."""
    entry = parallel.get(name)
    if isinstance(entry, Mapping):
        return entry.get(key)
    return entry if key == "size" else None


def classic(golden: dict[str, Any], version: str) -> Iterator[str]:
    yield from _internlm(golden, "internlm", version)


def internevo(golden: dict[str, Any], version: str) -> Iterator[str]:
    yield from _internlm(golden, "internevo", version)
    parallel = golden["config"].get("parallel", {})
    yield from _set(
        tensor__mode=_entry(parallel, "tensor", "mode"),
        weight__size=_entry(parallel, "weight"),
        expert__size=_entry(parallel, "expert"),
        expert__no_tp=_entry(parallel, "expert", "no_tp"),
        expert_weight__size=_entry(parallel, "expert_weight"),
        expert_zero1__size=_entry(parallel, "expert_zero1"),
        gqa=parallel.get("gqa"),
        num_kv_attention_heads=golden["config"].get("num_kv_attention_heads"),
    )
    plane = parallel.get("sequence_2D") or {}
    placing = plane.get("device_placement_strategy", {})
    for key in ("enable", "head_size", "context_size", "window_size"):
        yield from _set(**{f"sequence_2D__{key}": plane.get(key)})
    for key in ("head_first", "interleaved"):
        yield from _set(**{f"sequence_2D__{key}": placing.get(key)})


def _internlm(golden: dict[str, Any], name: str, version: str) -> Iterator[str]:
    config = golden["config"]
    parallel = config.get("parallel", {})
    yield from _framework(name, version)
    sizes = {key: _entry(parallel, key) for key in ("tensor", "pipeline", "zero1")}
    yield from _sizes(sizes, tp="tensor", pp="pipeline")
    if sizes["zero1"] is not None:
        yield from ("--zero1-size", str(sizes["zero1"]))
    # The goldens come from init_parallel_groups alone, without the launcher's own checks.
    yield from _set(
        zero1__fsdp=_entry(parallel, "zero1", "fsdp"),
        num_experts=config.get("num_experts"),
        args_sanity_check=False,
    )


# ------------------------------------------------------------------------------ DeepSpeed


DEEPSPEED_KINDS = {
    **dict.fromkeys(("sp", "sequence", "alst", "ulysses_mesh", "sp_mesh"), "ulysses"),
    **dict.fromkeys(("zeropp", "zero++", "zero_pp", "zero_hpz"), "hpz"),
    **dict.fromkeys(("a2a", "all_to_all", "alltoall"), "qgz"),
    **dict.fromkeys(("tp", "tp_mesh", "auto_tp"), "autotp"),
    **dict.fromkeys(("folding", "autoep_folding", "auto_ep"), "autoep"),
    **dict.fromkeys(("default", "default_topology", "grid", "pipe_data"), "topology"),
}
"""What a golden may call a feature, beside the names that serried has for it."""


def deepspeed(golden: dict[str, Any], version: str) -> Iterator[str]:
    config = golden["config"]
    case = config["kind"]
    kind = DEEPSPEED_KINDS.get(case, case)
    yield from _framework("deepspeed", version)
    yield from _set(kind=kind)
    yield from _sizes(config, pp="pp", tp="mp", ep="ep", zero="zero_stage")
    if any(name.startswith("local_") for name in golden.get("groups", ())):
        yield from _set(names="keys")
    if "mesh" in case and kind == "ulysses":
        yield from _set(data_parallel_size=config["world"] // config["sp"])
    yield from _set(
        topology="default" if "default" in case else None,
        sequence_parallel_size=_above_one(config.get("sp")),
        mics_shard_size=config.get("shard") if kind == "mics" else None,
        zero_hpz_partition_size=config.get("shard") if kind == "hpz" else config.get("hpz"),
        devices_per_node=config.get("ndev"),
        axes=config.get("axes"),
        dims=config.get("dims"),
        mics_hierarchical_params_gather=config.get("hier"),
        use_data_before_expert_parallel=config.get("data_before_expert"),
        enable_expert_tensor_parallelism=_experts_in_parts(config) if kind == "moe" else None,
        zero_quantized_gradients=config.get("qgz"),
        expert_tensor_parallel_size=config.get("etp"),
        include=config.get("include"),
        exclude=config.get("exclude"),
    )
    if "hostfile" in config:
        lines = (FOLDER / config["hostfile"]).read_text(encoding="utf-8")
        yield from _set(hostfile=lines)


def _experts_in_parts(config: Config) -> bool:
    """Tells whether tensor parallelism cuts experts; goldens with mp > 1 are older than the key."""
    return bool(config.get("expert_tp", config.get("mp", 1) > 1))


def _above_one(value: Any) -> Any:
    return value if value not in (None, 1) else None


# ------------------------------------------------------- ColossalAI, nanotron, Paddle


PLUGINS = {"gemini": "gemini", "low": "low_level_zero", "llz": "low_level_zero", "moe": "moe"}


def colossalai(golden: dict[str, Any], version: str) -> Iterator[str]:
    config = golden["config"]
    case = config.get("plugin", "hybrid")
    plugin = next((name for part, name in PLUGINS.items() if part in case), "hybrid")
    yield from _framework("colossalai", version)
    yield from _sizes(config, tp="tp", pp="pp", ep="ep", zero="zero_stage")
    yield from _set(
        plugin=plugin,
        dp_outside=False if case.endswith("inside") else None,
        sp_size=_above_one(config.get("sp")),
        sequence_parallelism_mode=config.get("sp_mode"),
        enable_sequence_parallelism=True if config.get("sp_mode") else None,
        inner_ring_size=config.get("inner_ring"),
        extra_dp_size=_above_one(config.get("extra_dp")),
    )


def nanotron(golden: dict[str, Any], version: str) -> Iterator[str]:
    config = golden["config"]
    yield from _framework("nanotron", version)
    yield from _sizes(config, tp="tp", pp="pp", cp="cp", ep="expert_parallel_size")
    yield from ("--dp", str(config["dp"]))
    yield from _set(LOCAL_WORLD_SIZE=config.get("local_world_size"))


def paddle(golden: dict[str, Any], version: str) -> Iterator[str]:
    config = golden["config"]
    degrees = config["degrees"]
    yield from _framework("paddle", version)
    yield from ("--order", ",".join(config["order"]))
    yield from _set(**{f"{name}_degree": degree for name, degree in degrees.items()})
    yield from _set(four_directions_p2p=config.get("four_directions"))
    made = golden.get("groups", {})
    if "check(sharding)" not in made and "check(moe_sharding)" not in made:
        yield from _set(check_groups="data" if "check(data)" in made else "none")


# ------------------------------------------------ DeviceMesh, torchtitan, accelerate


def devicemesh(golden: dict[str, Any], version: str) -> Iterator[str]:
    config = golden["config"]
    yield from _framework("devicemesh", version.partition("+")[0])
    yield from _set(
        mesh_shape=config.get("dims"),
        mesh_dim_names=config.get("names"),
        mesh=json.dumps(config["mesh"]) if "mesh" in config else None,
        unflatten=_split(config.get("unflatten")),
        flatten=_flatten(config.get("flatten")),
        concatenate=_flatten(config.get("concatenate")),
    )


def _split(axes: Any) -> str | None:
    """Returns axes split in parts in the form of ``--set unflatten=``."""
    if axes is None or isinstance(axes, str):
        return axes
    parts = {
        axis: "+".join(f"{n}:{size}" for n, size in each.items()) for axis, each in axes.items()
    }
    return ";".join(f"{axis}={text}" for axis, text in parts.items())


def _flatten(merged: Any) -> str | None:
    """Returns merged dims in the form of ``--set flatten=``; a golden may list or name them."""
    if merged is None or isinstance(merged, str):
        return merged
    if isinstance(merged, Mapping):
        return ";".join(f"{name}={'+'.join(axes)}" for name, axes in merged.items())
    several = [merged] if isinstance(merged[0], str) else merged
    return ";".join("+".join(axes) for axes in several)


def torchtitan(golden: dict[str, Any], version: str) -> Iterator[str]:
    config = golden["config"]
    yield from _framework("torchtitan", version)
    yield from _sizes(config, tp="tp", pp="pp", cp="cp", ep="ep")
    etp = config.get("etp")
    if etp is not None and version.startswith("0.2"):
        yield from ("--etp", str(etp))
    yield from _set(
        data_parallel_replicate_degree=config.get("dp_replicate"),
        data_parallel_shard_degree=config.get("dp_shard"),
    )
    if not version.startswith(("0.1", "0.2")):
        yield from _set(spmd_backend=config.get("backend"))


def accelerate(golden: dict[str, Any], version: str) -> Iterator[str]:
    config = golden["config"]
    yield from _framework("accelerate", version)
    yield from _sizes(config, tp="tp", cp="cp")
    yield from _set(
        dp_replicate_size=config.get("dp_replicate"),
        dp_shard_size=config.get("dp_shard"),
        sp_size=config.get("sp"),
    )
