"""Nanotron 0.4 from PyPI; main is not there, its goldens are frozen."""

from __future__ import annotations

import os
import random
from functools import cache
from typing import Any
from unittest import mock

from tests.oracle.recording import Lists, Recorder, Silent, loaded, refusal, stub
from tests.oracle.wheels import unpacked

VERSIONS = ("0.4",)
KINDS = ("tp_pg", "dp_pg", "pp_pg", "expert_pg", "mp_pg")


@cache
def _modules(version: str) -> tuple[Any, Any]:
    folder = unpacked("nanotron", version, only="nanotron/parallel/")
    stub("nanotron")
    distributed = stub(
        "nanotron.distributed", initialize_torch_distributed=Silent(), ProcessGroup=object
    )
    module = loaded(folder / "nanotron" / "parallel" / "context.py", "nanotron.parallel.context")
    return module, distributed


def golden(config: dict[str, Any], version: str) -> dict[str, Any]:
    """Returns what nanotron makes of ``config``, the union over ranks, as a golden."""
    made: dict[str, Any] = {"oracle": f"nanotron {version}", "config": config}
    groups: dict[str, Lists] = {}
    try:
        for rank in range(config["world"]):
            context = _context(config, version, rank)
            for kind in KINDS:
                members = sorted(getattr(context, kind).ranks)
                if members not in groups.setdefault(kind, []):
                    groups[kind].append(members)
        made["groups"] = groups
    except (AssertionError, ValueError) as error:
        made["error"] = refusal(error)
    return made


def _context(config: dict[str, Any], version: str, rank: int) -> Any:
    module, distributed = _modules(version)
    environment = {"WORLD_SIZE": str(config["world"]), "RANK": str(rank), "LOCAL_RANK": "0"}
    silent = mock.patch.object(module.ParallelContext, "set_device", lambda _: None)
    recorded = Recorder(config["world"], rank).patched(distributed)
    with mock.patch.dict(os.environ, environment), silent, recorded:
        return module.ParallelContext(
            tensor_parallel_size=config["tp"],
            pipeline_parallel_size=config["pp"],
            data_parallel_size=config["dp"],
            expert_parallel_size=config["expert_parallel_size"],
        )


def random_config(rng: random.Random, version: str) -> dict[str, Any]:
    """Returns a config that is valid more often than not."""
    config = {
        "tp": rng.choice((1, 2, 4)),
        "pp": rng.choice((1, 2, 3)),
        "dp": rng.choice((1, 2, 3, 4)),
        "cp": 1,
        "expert_parallel_size": rng.choice((1, 1, 2)),
    }
    world = config["tp"] * config["pp"] * config["dp"] * config["expert_parallel_size"]
    return {"world": world if rng.random() < 0.85 else world + 4} | config
