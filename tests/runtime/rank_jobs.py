"""Runs a function of a test on real gloo ranks: one launch, and rank 0 tells what came.

Only ranks load torch: what starts them has no use for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from serried.runtime.job.report import Place
from serried.runtime.run.local_ranks import run_locally
from serried.runtime.run.worker import Rendezvous


@dataclass(frozen=True)
class FunctionJob:
    """Calls ``work(rank)`` on every rank and tells the list of what they return."""

    work: Callable[[int], object]
    world_size: int
    timeout_s: float = 60.0

    def run_rank(self, place: Place, rendezvous: Rendezvous, tell: Callable[[Any], None]) -> None:
        import torch.distributed as dist

        dist.init_process_group(
            "gloo",
            rank=place.rank,
            world_size=place.world_size,
            timeout=timedelta(seconds=self.timeout_s),
            **rendezvous,
        )
        said: list[Any] = [None] * place.world_size
        dist.all_gather_object(said, self.work(place.rank))
        tell(said)
        dist.barrier()


@dataclass(frozen=True)
class EndlessJob:
    """Tells the processes of all ranks, which then exchange messages without an end."""

    world_size: int
    timeout_s: float = 60.0

    def run_rank(self, place: Place, rendezvous: Rendezvous, tell: Callable[[Any], None]) -> None:
        import torch.distributed as dist

        dist.init_process_group("gloo", rank=place.rank, world_size=place.world_size, **rendezvous)
        pids: list[Any] = [None] * place.world_size
        dist.all_gather_object(pids, os.getpid())
        tell(pids)
        while True:
            dist.barrier()


def on_ranks(world_size: int, work: Callable[[int], Any]) -> list[Any]:
    """Returns what ``work`` returned on each of ``world_size`` real ranks."""
    (said,) = run_locally(FunctionJob(work, world_size))
    answers: list[Any] = said
    return answers
