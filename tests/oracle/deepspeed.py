"""DeepSpeed from PyPI: topologies, experts, sequences and shards, MiCS until 0.19.6."""

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
from tests.oracle import deepspeed_experts
from tests.oracle.recording import Lists, Recorder, Silent, loaded, refusal, stub
from tests.oracle.wheels import unpacked

VERSIONS = ("0.15.0", "0.18.9", "0.19.2", "0.19.3", "0.19.6", "0.19.7", "0.19.8")
EXPERTS_ONLY = ("0.15.0", "0.19.2", "0.19.3", "0.19.6", "0.19.7")
"""Of which only experts are drawn: the rest is as in the next version with all kinds."""
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
    }
    modules = {
        name: loaded(path, f"deepspeed.oracle_{name}")
        for name, path in files.items()
        if path.exists()
    }
    vars(modules["groups"]).setdefault("dist", comm)
    modules |= deepspeed_experts.modules(folder, modules["groups"])
    modules |= {"comm": comm, "runner": _runner(folder)}
    there = {name: each for name, each in sys.modules.items() if name.startswith("deepspeed")}
    return modules | {"imported": there}


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
    modules = _modules(version)
    # Functions import others when they are called: those of their own version.
    sys.modules.update(modules["imported"])
    try:
        made["groups"] = MAKERS[kind](config, modules)
        if kind in CREATED:
            made["created"] = list(made["groups"])
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
    made = {
        "ds_model": calls[:dp],
        "data": grid.dp_groups,
        "p2p": grid.p2p_groups,
        "pipe": grid.pipe_groups,
        "model": plan.get_axis_comm_lists("model"),
        "slice": calls[-num_slices:],
    }
    # The order above is that of the calls; pairs are a list, and model is slice by another name.
    named = ("ds_model", "data", "pipe", "slice")
    assert calls == [ranks for name in named for ranks in made[name]]
    return made


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
    "moe": deepspeed_experts.native,
    "autoep": deepspeed_experts.automatic,
    "ulysses": _sequence,
    "hpz": _secondary,
    "mics": _mics,
    "qgz": _all_to_all,
    "hostfile": _hosts,
}


CREATED = ("moe", "autoep", "topology")
"""Kinds whose goldens list groups in the order of creation."""


def random_config(rng: random.Random, version: str) -> dict[str, Any]:
    """Returns a config that is valid more often than not."""
    old = version.startswith("0.18")
    new = ("topology", "moe", "moe", "moe", "ulysses", "hostfile", "hpz", "qgz")
    kind = rng.choice(("mics", "topology", "hpz", "moe") if old else new)
    if kind == "moe" or version in EXPERTS_ONLY:
        return deepspeed_experts.random_experts(rng, version)
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
