"""ColossalAI 0.5.0 from PyPI: its mesh class, with the axes that its plugins give it.

The hybrid plugins' own constructors run, refusals included, up to the first process group.
"""

from __future__ import annotations

import random
from contextlib import suppress
from functools import cache
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch.distributed as dist

from tests.oracle.recording import Lists, Recorder, Silent, loaded, methods, refusal
from tests.oracle.wheels import unpacked

VERSIONS = ("0.5.0",)


@cache
def _mesh_class(version: str) -> Any:
    folder = unpacked("colossalai", version)
    path = folder / "colossalai" / "cluster" / "process_group_mesh.py"
    return loaded(path, "colossalai.oracle.mesh").ProcessGroupMesh


def golden(config: dict[str, Any], version: str) -> dict[str, Any]:
    """Returns what the mesh of a plugin makes of ``config``, as a golden."""
    plugin = config["plugin"]
    name = f"colossalai {version} ProcessGroupMesh {plugin}"
    made: dict[str, Any] = {"oracle": name, "config": config}
    try:
        made["groups"] = _groups(config, version)
    except (AssertionError, ValueError, AttributeError) as error:
        made["error"] = refusal(error)
    return made


def _groups(config: dict[str, Any], version: str) -> dict[str, Lists]:
    axes = _axes(config)
    names = list(axes)
    recorder = Recorder(config["world"])
    # A process group is one object per rank tuple, so the mesh's cache must not merge kinds.
    with recorder.patched(dist), mock.patch.object(dist, "destroy_process_group"):
        mesh = _mesh_class(version)(*axes.values())

        def along(*kept: str) -> Lists:
            recorder.calls.clear()
            mesh._ranks_to_group.clear()
            mesh.create_group_along_axis([names.index(axis) for axis in kept])
            return [call.ranks for call in recorder.calls]

        made = {axis: along(axis) for axis in names}
        if config.get("sp_mode") in ("split_gather", "ring"):
            made["sp"] = made["tp"]
        if config["plugin"] == "moe":
            made["dp"] = along("moe_dp", "ep")
        if config.get("sp_mode") in ("all_to_all", "ring_attn"):
            mixed = ("moe_dp", "ep", "sp") if config["plugin"] == "moe" else ("dp", "sp")
            made[f"mixed_dp({'+'.join(mixed)})"] = along(*mixed)
        if "inner_ring" in config:
            made |= _rings(mesh, recorder, names.index("sp"), config)
    return made


def _rings(mesh: Any, recorder: Recorder, axis: int, config: dict[str, Any]) -> dict[str, Lists]:
    """Follows RingAttention.get_double_ring_groups line by line."""
    inner, sp = config["inner_ring"], config["sp"]
    assert inner <= sp and sp % inner == 0, f"sp_size {sp} should be divisible by {inner}"
    if inner == sp:
        whole = _ring(mesh, recorder, axis, [list(range(sp))])
        return {"inner_ring": whole, "inter_ring": whole}
    num_rings = sp // inner
    starts = [list(range(i * inner, (i + 1) * inner)) for i in range(inner)]
    strides = [list(range(i, sp, num_rings)) for i in range(num_rings)]
    return {
        "inner_ring": _ring(mesh, recorder, axis, starts),
        "inter_ring": _ring(mesh, recorder, axis, strides),
    }


def _ring(mesh: Any, recorder: Recorder, axis: int, indices: list[list[int]]) -> Lists:
    made: Lists = []
    for each in indices:
        recorder.calls.clear()
        mesh._ranks_to_group.clear()
        mesh.get_group_along_axis(axis, each)
        made += [call.ranks for call in recorder.calls]
    return made


def _axes(config: dict[str, Any]) -> dict[str, int]:
    """Returns the mesh of a plugin, outermost axis first, as its constructor passes it."""
    world, tp = config["world"], config["tp"]
    plugin, extra = config["plugin"], config["extra_dp"]
    if plugin == "gemini":
        zero = world // (tp * extra)
        assert world == tp * extra * zero, "The global group size can't be evenly divided"
        return {"zero": zero, "extra_dp": extra, "tp": tp}
    if plugin == "low_level_zero":
        assert world % extra == 0, "extra_dp_size should be a factor of world_size"
        return {"extra_dp": extra, "inner_dp": world // extra}
    return _hybrid(config)


HYBRID = ("hybrid_parallel_plugin.py", "HybridParallelPlugin")
EXPERTS = ("moe_hybrid_parallel_plugin.py", "MoeHybridParallelPlugin")
MODES = ["split_gather", "ring", "all_to_all", "ring_attn"]


class Reached(Exception):
    """Says that a constructor has passed its checks and asks for its first group."""


class Plan(Silent):
    """Stands for the mesh of a plugin: its sizes, outermost first."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes

    def get_group_along_axis(self, *_: object) -> None:
        raise Reached


def _reached(*_: object, **__: object) -> None:
    raise Reached


def _hybrid(config: dict[str, Any]) -> dict[str, int]:
    """Returns the mesh of a hybrid plugin, as its constructor makes it."""
    plugin = config["plugin"]
    made = SimpleNamespace()
    settings: dict[str, Any] = {
        "tp_size": config["tp"],
        "pp_size": config["pp"],
        "sp_size": config["sp"],
        "zero_stage": config.get("zero_stage", 0),
        "enable_sequence_parallelism": "sp_mode" in config,
        "sequence_parallelism_mode": config.get("sp_mode"),
        "num_microbatches": 4,
    }
    settings |= {"ep_size": config["ep"]} if plugin == "moe" else {}
    outside = "moe_dp_outside" if plugin == "moe" else "dp_outside"
    settings[outside] = not plugin.endswith("inside")
    with suppress(Reached):
        _constructor(*(EXPERTS if plugin == "moe" else HYBRID), config["world"])(made, **settings)
    names = {
        place: name.removesuffix("_axis")
        for name, place in vars(made).items()
        if name.endswith("_axis")
    }
    return {names[place]: size for place, size in enumerate(made.pg_mesh.sizes)}


def _constructor(file: str, within: str, world: int) -> Any:
    path = unpacked("colossalai", VERSIONS[0]) / "colossalai" / "booster" / "plugin" / file
    around: dict[str, Any] = {
        "dist": SimpleNamespace(get_world_size=lambda: world),
        "ProcessGroupMesh": Plan,
        "PipelineStageManager": _reached,
        "get_dist_logger": lambda: Silent(),
        "SUPPORT_SP_MODE": MODES,
        "super": lambda: SimpleNamespace(__init__=lambda: None),
    }
    return methods(path, within, ("__init__",), around)["__init__"]


def random_config(rng: random.Random, version: str) -> dict[str, Any]:
    """Returns a config that is valid more often than not."""
    plugin = rng.choice(("hybrid", "hybrid", "hybrid_dp_inside", "moe", "gemini", "low_level_zero"))
    config: dict[str, Any] = {
        "world": rng.choice((8, 16, 24, 32, 64)),
        "plugin": plugin,
        "tp": rng.choice((1, 2, 2, 4, 3)),
        "pp": rng.choice((1, 2, 4)),
        "sp": 1,
        "ep": rng.choice((1, 2, 4, 3)) if plugin == "moe" else 1,
        "extra_dp": 1,
    }
    if plugin in ("hybrid", "hybrid_dp_inside", "moe"):
        config["zero_stage"] = rng.choice((0, 1, 2, 2, 3))
    if plugin in ("gemini", "low_level_zero"):
        config |= {"pp": 1, "extra_dp": rng.choice((1, 2, 4, 3))}
        if plugin == "low_level_zero":
            config["tp"] = 1
        return config
    modes = ("all_to_all", "split_gather", "ring") + (() if plugin == "moe" else ("ring_attn",))
    if rng.random() < 0.6:
        config["sp_mode"] = rng.choice(modes)
        config["sp"] = rng.choice((1, 2, 4, 8))
        if config["sp_mode"] in ("split_gather", "ring"):
            config["sp"] = 1
        if config["sp_mode"] == "ring_attn" and rng.random() < 0.7:
            config["inner_ring"] = rng.choice((1, 2, 4, 8))
    return config
