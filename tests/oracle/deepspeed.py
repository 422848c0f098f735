"""DeepSpeed from PyPI: topologies, experts, sequences and shards of 0.19.8, MiCS of 0.18.9."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from tests.frameworks.goldens import FOLDER
from tests.oracle.recording import Lists, Recorder, Silent, loaded, refusal, stub
from tests.oracle.wheels import unpacked

VERSIONS = ("0.18.9", "0.19.8")
Groups = dict[str, Lists]


@cache
def _modules(version: str) -> Mapping[str, Any]:
    """Loads the files that decide groups, with all else they import stubbed."""
    folder = unpacked("deepspeed", version) / "deepspeed"
    stub("deepspeed")
    comm = stub("deepspeed.comm", initialize_mesh_device=Silent())
    stub("deepspeed.accelerator", get_accelerator=Silent)
    bwc = {"bwc_tensor_model_parallel_world_size": lambda mpu: mpu.mp}
    bwc |= {"bwc_pipeline_parallel_world_size": lambda mpu: mpu.pp}
    stub("deepspeed.utils", log_dist=Silent(), logger=Silent())
    stub("deepspeed.utils.bwc", **bwc)
    stub("deepspeed.utils.exceptions", DeprecatedException=Exception)
    stub("deepspeed.utils.torch", jit_script_compat=lambda function: function)
    files = {
        "topology": folder / "runtime" / "pipe" / "topology.py",
        "groups": folder / "utils" / "groups.py",
        "sequence": folder / "runtime" / "sequence_parallel" / "parallel_state_sp.py",
        "mics": folder / "runtime" / "zero" / "mics_utils.py",
        "folding": folder / "module_inject" / "auto_ep_folding.py",
    }
    modules = {
        name: loaded(path, f"deepspeed.oracle_{name}")
        for name, path in files.items()
        if path.exists()
    }
    return modules | {"comm": comm, "runner": _runner(folder)}


def _runner(folder: Path) -> Any:
    """Loads the launcher, whose backends and tuner are stubbed."""
    stub("deepspeed.launcher")
    runners = ("PDSH", "OpenMPI", "MVAPICH", "Slurm", "MPICH", "IMPI")
    backends = {f"{name}Runner": object for name in runners}
    constants = {f"{name.upper()}_LAUNCHER": name for name in runners}
    stub("deepspeed.launcher.multinode_runner", **backends)
    stub("deepspeed.launcher.constants", **constants, ELASTIC_TRAINING_ID_DEFAULT="")
    stub("deepspeed.constants", TORCH_DISTRIBUTED_DEFAULT_PORT=29500)
    sys.modules["deepspeed.utils"].__dict__["set_log_level_from_string"] = None
    stub("deepspeed.nebula")
    stub("deepspeed.nebula.constants", NEBULA_EXPORT_ENVS=[])
    stub("deepspeed.autotuning", Autotuner=object)
    return loaded(folder / "launcher" / "runner.py", "deepspeed.launcher.runner")


def golden(config: dict[str, Any], version: str) -> dict[str, Any]:
    """Returns what DeepSpeed makes of ``config``, as a golden."""
    kind = config["kind"]
    made: dict[str, Any] = {"oracle": f"deepspeed {version} {kind}", "config": config}
    try:
        made["groups"] = MAKERS[kind](config, _modules(version))
    except (AssertionError, ValueError, RuntimeError, NotImplementedError) as error:
        made["error"] = refusal(error)
    return made


def _topology(config: dict[str, Any], modules: Mapping[str, Any]) -> Groups:
    topology = modules["topology"]
    if "axes" in config:
        axes = config["axes"].split(",")
        raw = topology.ProcessTopology(axes=axes, dims=[int(d) for d in config["dims"].split(",")])
        assert raw.world_size() == config["world"], "Invalid Grid"
        return {f"axis:{axis}": raw.get_axis_comm_lists(axis) for axis in axes}
    dp = config["world"] // (config["pp"] * config["mp"])
    plan = topology.PipeModelDataParallelTopology(config["pp"], config["mp"], dp)
    recorder = Recorder(config["world"])
    with recorder.patched(modules["comm"]), mock.patch("builtins.print"):
        grid = topology.PipelineParallelGrid(plan)
    calls = [call.ranks for call in recorder.calls]
    num_slices = config["world"] // config["mp"]
    return {
        "pipe": grid.pipe_groups,
        "data": grid.dp_groups,
        "model": plan.get_axis_comm_lists("model"),
        "ds_model": calls[:dp],
        "p2p": grid.p2p_groups,
        "slice": calls[-num_slices:],
    }


class Mpu:
    """Stands for Megatron's model-parallel unit: its sizes."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.mp, self.pp = config["mp"], config["pp"]
        self.dp: int = config["world"] // (self.mp * self.pp)

    def get_data_parallel_world_size(self) -> int:
        return self.dp


def _experts(config: dict[str, Any], modules: Mapping[str, Any]) -> Groups:
    groups, ep = modules["groups"], config["ep"]
    first = config.get("data_before_expert", False)
    recorder = Recorder(config["world"])
    empty: dict[str, Any] = {}
    fresh = {name: empty.copy() for name in vars(groups) if name.startswith("_EXPERT_")}
    for name, value in fresh.items():
        setattr(groups, name, value)
    with recorder.patched(modules["comm"]):
        if config["mp"] > 1:
            groups.mpu = Mpu(config)
            groups._create_expert_data_and_model_parallel(ep, groups.mpu, first)
            names = ("expert", "expert_data")
        elif config["sp"] > 1:
            groups._create_expert_and_data_parallel(
                ep,
                mp_size=config["sp"],
                pp_size=config["pp"],
                mp_mode="sp",
                use_data_before_expert_parallel_=first,
            )
            names = ("expert", "expert_data")
        else:
            groups.mpu = Mpu(config)
            groups._create_expert_and_data_parallel(ep, use_data_before_expert_parallel_=first)
            names = ("expert_data", "expert")
    return _split(recorder, names, config)


def _split(recorder: Recorder, names: tuple[str, ...], config: dict[str, Any]) -> Groups:
    """Returns the calls parted by size of group; in a stage's turn with sequences."""
    calls = [call.ranks for call in recorder.calls]
    if config["sp"] > 1:
        return _by_stage(calls, config)
    num_expert = config["world"] // config["ep"]
    first = num_expert if names[0] == "expert" else len(calls) - num_expert
    return {names[0]: calls[:first], names[1]: calls[first:]}


def _by_stage(calls: Lists, config: dict[str, Any]) -> Groups:
    stage = config["world"] // config["pp"]
    num_expert = stage // config["ep"]
    per_stage = num_expert + config["ep"]
    made: Groups = {"expert": [], "expert_data": []}
    for start in range(0, len(calls), per_stage):
        made["expert"] += calls[start : start + num_expert]
        made["expert_data"] += calls[start + num_expert : start + per_stage]
    return made


def _folded(config: dict[str, Any], modules: Mapping[str, Any]) -> Groups:
    folding = modules["folding"]
    sizes = {"world_size": config["world"], "pp_size": config["pp"], "tp_size": config["mp"]}
    spec = folding.build_folding_spec(**sizes, ep_size=config["ep"])
    folding.validate_folding_global(spec, sp_size=config["sp"])
    tables = folding.expected_folding_group_tables(spec)
    names = {"tp": "tp_groups", "dense_dp": "dense_dp_groups"}
    names |= {"ep": "ep_groups", "edp": "edp_groups"}
    return {name: [list(g) for g in getattr(tables, key)] for name, key in names.items()}


def _sequence(config: dict[str, Any], modules: Mapping[str, Any]) -> Groups:
    module = modules["sequence"]
    module._SEQUENCE_PARALLEL_GROUP = module._SEQUENCE_DATA_PARALLEL_GROUP = None
    recorder = Recorder(config["world"])
    with recorder.patched(modules["comm"]):
        module.initialize_sequence_parallel(config["sp"])
    calls = [call.ranks for call in recorder.calls]
    return {"sequence": calls[:-1], "sequence_data": calls[-1:]}


def _secondary(config: dict[str, Any], modules: Mapping[str, Any]) -> Groups:
    module = modules["groups"]
    module._ZERO_PARAM_INTRA_PARALLEL_GROUP = None
    recorder = Recorder(config["world"])
    with recorder.patched(modules["comm"]):
        module._create_zero_param_parallel_group(config["shard"])
    return {"zero_param_intra": [call.ranks for call in recorder.calls]}


def _mics(config: dict[str, Any], modules: Mapping[str, Any]) -> Groups:
    recorder = Recorder(config["world"])
    hier = config.get("hier", False)
    environment = {"NDEV_PER_NODE": str(config["ndev"])}
    with recorder.patched(modules["comm"]), mock.patch.dict(os.environ, environment):
        modules["mics"].create_mics_comm_groups(config["shard"], None, hierarchical_allgather=hier)
    calls = [call.ranks for call in recorder.calls]
    shards = config["world"] // config["shard"]
    copies = config["shard"] if shards > 1 else 0
    made = {"shard": calls[:shards]}
    if copies:
        made["replicate"] = calls[shards : shards + copies]
    if hier:
        rest = calls[shards + copies :]
        num_nodes = config["shard"] // config["ndev"]
        inner = shards * num_nodes
        made |= {"intra_node": rest[:inner], "inter_node": rest[inner:]}
    return made


def _all_to_all(config: dict[str, Any], modules: Mapping[str, Any]) -> Groups:
    module = modules["groups"]
    module._ALL_TO_ALL_GROUP.clear()
    recorder = Recorder(config["world"])
    devices = mock.Mock(device_count=lambda: config["ndev"])
    accelerator = mock.patch.object(module, "get_accelerator", lambda: devices)
    with recorder.patched(modules["comm"]), accelerator:
        made = module._get_local_all_to_all_group()
    return {name: [group.ranks] for name, group in made.items()}


def _hosts(config: dict[str, Any], modules: Mapping[str, Any]) -> Groups:
    runner = modules["runner"]
    pool = runner.fetch_hostfile(str(FOLDER / config["hostfile"]))
    chosen = config.get("include", ""), config.get("exclude", "")
    used = runner.parse_inclusion_exclusion(pool, *chosen)
    # main() asks for the first host next, and fails with an IndexError where there is none.
    assert used, "no host is left"
    return {host: [list(slots)] for host, slots in used.items()}


MAKERS: dict[str, Callable[[dict[str, Any], Mapping[str, Any]], Groups]] = {
    "topology": _topology,
    "moe": _experts,
    "autoep": _folded,
    "ulysses": _sequence,
    "hpz": _secondary,
    "mics": _mics,
    "qgz": _all_to_all,
    "hostfile": _hosts,
}


def random_config(rng: random.Random, version: str) -> dict[str, Any]:
    """Returns a config that is valid more often than not."""
    old = version.startswith("0.18")
    new = ("topology", "moe", "moe", "autoep", "ulysses", "hostfile", "hpz", "qgz")
    kind = rng.choice(("mics", "topology", "hpz") if old else new)
    if kind == "hostfile":
        return _random_hosts(rng)
    config: dict[str, Any] = {
        "world": rng.choice((8, 16, 24, 32, 64)),
        "kind": kind,
        "pp": rng.choice((1, 1, 2, 4)),
        "mp": rng.choice((1, 1, 2, 4)),
        "ep": rng.choice((1, 2, 4, 8, 3)),
        "sp": 1,
        "shard": rng.choice((1, 2, 4, 8, 16, 3)),
        "ndev": rng.choice((2, 4, 8)),
    }
    if kind == "topology" and rng.random() < 0.4:
        sizes = [rng.choice((1, 2, 3, 4)) for _ in range(rng.randint(1, 4))]
        names = rng.sample(["pipe", "data", "model", "a", "b"], len(sizes))
        config |= {"axes": ",".join(names), "dims": ",".join(map(str, sizes)), "pp": 1, "mp": 1}
        held = 1
        for size in sizes:
            held *= size
        config["world"] = held if rng.random() < 0.9 else held + 1
    if kind == "moe":
        config["data_before_expert"] = rng.random() < 0.3
        if config["mp"] == 1 and rng.random() < 0.3:
            config["sp"] = rng.choice((2, 4))
    if kind == "ulysses":
        config |= {"sp": rng.choice((2, 4, 8, 3)), "pp": 1, "mp": 1, "ep": 1}
    if kind == "mics":
        config |= {"hier": rng.random() < 0.4, "pp": 1, "mp": 1, "ep": 1}
    if kind in ("hpz", "qgz", "topology"):
        config["ep"] = 1
    if kind in ("hpz", "qgz"):
        config |= {"pp": 1, "mp": 1}
    return config


def _random_hosts(rng: random.Random) -> dict[str, Any]:
    """Returns a filter over the hosts of the example file: 4, 4 and 2 slots."""
    config: dict[str, Any] = {"world": 10, "kind": "hostfile", "hostfile": "hostfile_example"}
    words = []
    for host in rng.sample(range(3), rng.randint(1, 3)):
        slots = rng.sample(range(5), rng.randint(0, 2))
        words.append(f"worker-{host}" + (f":{','.join(map(str, slots))}" if slots else ""))
    filters = {"include": "@".join(words), "exclude": "@".join(reversed(words))}
    for name in rng.choice((("include",), ("exclude",), ("include", "exclude"), ())):
        config[name] = filters[name]
    return config
