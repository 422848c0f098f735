"""One of two real ranks is late, and it is named: not the one that waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

import serried
from serried.diagnose.stragglers.of_trace import trace_causes
from serried.runtime.recording import api as recorder_doors
from serried.trace.measure.analysis import analyse
from serried.trace.measure.verdict import Trouble, run_verdict
from serried.trace.merge.in_memory import merge
from tests.runtime.rank_group import run_ranks
from tests.soaked import launched, rows

WORLD, STEPS, WIDTH = 2, 8, 64
MORE_S = 0.2
"""How long the slow rank is held up a step: by sleep, and beyond what a busy machine adds."""
PLACES = {"F": "forward", "B": "backward", "data": "data", "step": "optimizer"}
"""Where a rank is held up, and what of its time is told to be longer."""

Hold = Callable[[str], None]


class Between(torch.autograd.Function):
    """Passes on what it gets, and may be held up in one of its directions."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, hold: Hold) -> torch.Tensor:
        ctx.hold = hold
        hold("F")
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        ctx.hold("B")
        return gradient, None


class Net(nn.Module):
    """Is two layers with ``Between`` in their middle, and statistics that DDP hands out."""

    def __init__(self, hold: Hold) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.hold = hold
        self.first, self.last = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm = nn.BatchNorm1d(WIDTH)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        between: torch.Tensor = Between.apply(self.first(self.norm(batch)), self.hold)  # type: ignore[no-untyped-call]
        last: torch.Tensor = self.last(between)
        return last


def data_parallel(model: Net) -> nn.Module:
    return DistributedDataParallel(model, bucket_cap_mb=0.01)


def compressed(model: Net) -> nn.Module:
    parallel = DistributedDataParallel(model)
    parallel.register_comm_hook(None, fp16_compress_hook)
    return parallel


def sharded(model: Net) -> nn.Module:
    mesh = init_device_mesh("cpu", (WORLD,))
    for layer in (model.first, model.last):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def tensor_parallel(model: Net) -> nn.Module:
    mesh = init_device_mesh("cpu", (WORLD,))
    plan: Any = {"first": ColwiseParallel(use_local_output=True), "last": RowwiseParallel()}
    return parallelize_module(model, mesh, plan)


KINDS = {
    "ddp": data_parallel,
    "ddp with a hook": compressed,
    "fsdp": sharded,
    "tp": tensor_parallel,
}
SLOW = {
    **{("ddp", place): rank for rank, place in enumerate(["F", "B"])},
    **{("ddp", "data"): 1, ("ddp", "step"): 0, ("ddp with a hook", "F"): 1},
    **{("fsdp", "F"): 0, ("fsdp", "data"): 1, ("tp", "F"): 1, ("tp", "B"): 0},
}
"""The rank that is held up, by kind and place."""
SOAKED = {("ddp", "B"), ("ddp", "data"), ("ddp with a hook", "F"), ("fsdp", "data"), ("tp", "F")}


def batches(hold: Hold) -> Iterator[torch.Tensor]:
    for _ in range(STEPS):
        hold("data")
        yield torch.randn(8, WIDTH)


def held_up(slow: int, place: str, at: str) -> None:
    if (dist.get_rank(), place) == (slow, at):
        time.sleep(MORE_S)


def jobs(folder: Path, slow_ranks: dict[tuple[str, str], int]) -> dict[str, Any]:
    """Trains a job of every kind and place, and records it."""
    torch.set_num_threads(1)
    for (kind, place), slow in slow_ranks.items():
        hold = partial(held_up, slow, place)
        model = KINDS[kind](Net(hold))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
        optimizer.step = partial(stepped, type(optimizer).step, optimizer, hold)  # type: ignore[method-assign]
        for batch in serried.record(batches(hold), folder / kind / place, accumulate=1):
            model(batch).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        recorder_doors.finish()
    return {}


def stepped(step: Callable[[Any], Any], optimizer: Any, hold: Hold) -> None:
    with serried.span("OPTIMIZER"):
        hold("step")
    step(optimizer)


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("slow")
    run_ranks(jobs, WORLD, made, made, launched(request, SLOW, SOAKED))
    return made


@pytest.mark.parametrize("at", rows(SLOW, SOAKED), ids=", ".join)
def test_the_rank_that_others_wait_for_is_named(at: tuple[str, str], folder: Path) -> None:
    kind, place = at
    trace = merge([folder / kind / place])
    found = analyse(trace)
    verdict = run_verdict(trace, found)
    assert (verdict.trouble, verdict.ranks) == (Trouble.SLOW_RANK, (SLOW[kind, place],))
    named = [each for each in found.paces if each.is_slow]
    assert [each.rank for each in named] == [SLOW[kind, place]]
    assert named[0].longer[0][0] == PLACES[place]
    blamed = [cause.ranks for cause in trace_causes(trace) if cause.ranks]
    assert blamed == [(SLOW[kind, place],)]
    causes = found.statistics.bubbles
    assert causes is not None
    assert sum(causes.causes.values()) == pytest.approx(causes.of_makespan)
