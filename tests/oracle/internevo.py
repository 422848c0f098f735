"""InternEvo wheels from PyPI: classic InternLM in 0.2.2, the two grids in 0.3.10 and 0.5.2."""

from __future__ import annotations

import random
import types
from functools import cache
from typing import Any

import torch.distributed as dist

from tests.oracle.recording import Lists, Recorder, Silent, loaded, refusal, stub
from tests.oracle.wheels import unpacked

VERSIONS = ("0.1.0", "0.2.2", "0.3.10", "0.5.2")
FILES = ("process_group_initializer", "random", "parallel_context")


def golden(config: dict[str, Any], version: str) -> dict[str, Any]:
    """Returns what the wheel makes of ``config``, the union over ranks, as a golden."""
    made: dict[str, Any] = {"oracle": f"InternEvo {version}", "config": config}
    try:
        made["groups"] = _union(config, version)
    except (AssertionError, ValueError, ZeroDivisionError, NotImplementedError) as error:
        made["error"] = refusal(error)
    return made


def _union(config: dict[str, Any], version: str) -> dict[str, Lists]:
    groups: dict[str, Lists] = {}
    for rank in range(config["world"]):
        context = _context(config, version, rank)
        for mode, ranks in context._ranks_in_group.items():
            members = [int(each) for each in ranks]
            if members not in groups.setdefault(mode.value, []):
                groups[mode.value].append(members)
    return groups


def _context(config: dict[str, Any], version: str, rank: int) -> Any:
    modules = _loaded(version)
    made = modules["parallel_context"].ParallelContext()
    made.load_config({"parallel": _copied(config["parallel"]), "model": _model(config)})
    mode = modules["process_group_initializer"].ParallelMode.GLOBAL
    world = config["world"]
    made._register_dist(rank, world, None, None, list(range(world)), mode)
    made._global_ranks[mode] = rank
    with Recorder(world, rank).patched(dist):
        made.init_parallel_groups()
    return made


def _copied(value: Any) -> Any:
    return {k: _copied(v) for k, v in value.items()} if isinstance(value, dict) else value


def _model(config: dict[str, Any]) -> dict[str, Any]:
    return {"num_experts": config.get("num_experts", 1)}


@cache
def _loaded(version: str) -> dict[str, types.ModuleType]:
    """Loads the three files that decide the groups, with all else they import stubbed."""
    folder = unpacked("InternEvo", version, only="internlm/core/context/")
    for name in ("internlm", "internlm.core", "internlm.core.context", "internlm.utils"):
        stub(name)
    stub("internlm.accelerator", get_accelerator=Silent)
    stub("internlm.utils.common", SingletonMeta=type, get_current_device=Silent())
    stub("internlm.utils.logger", get_logger=lambda *_: Silent())
    stub("internlm.utils.timeout", LLM_NCCL_TIMEOUT=None)
    modules = {}
    for name in FILES:
        path = folder / "internlm" / "core" / "context" / f"{name}.py"
        modules[name] = loaded(path, f"internlm.core.context.{name}")
    return modules


def random_config(rng: random.Random, version: str) -> dict[str, Any]:
    """Returns a config that is valid more often than not."""
    classic = version.startswith(("0.1", "0.2"))
    mode = rng.choice(("mtp", "msp", "fsp", "isp", "isp"))
    tensor: Any = rng.choice((1, 2, 2, 4, 3, 8))
    zero1 = {"size": rng.choice((-1, -1, 0, 1, 2, 4, 3)), "fsdp": rng.random() < 0.25}
    pipeline = {"size": rng.choice((1, 1, 2, 2, 4)), "interleaved_overlap": False}
    parallel: dict[str, Any] = {"zero1": zero1, "pipeline": pipeline, "tensor": tensor}
    if not classic:
        parallel["tensor"] = {"size": tensor, "mode": mode}
        weight = rng.choice((1, 2, 4)) if mode == "isp" else rng.choice((1, 1, 1, 2))
        parallel["weight"] = {"size": weight, "overlap": False, "memory_pool": False}
        if rng.random() < 0.15:
            parallel["gqa"] = True
    return {
        "world": rng.choice((8, 16, 16, 32, 48, 64, 40)),
        "parallel": parallel,
        "num_experts": rng.choice((1, 1, 1, 2, 4, 8, 6)),
    }
