"""The job that is slow: a pipeline of torch's or DDP alone, recorded, with one fault.

Computation is emulated by sleeping, so that other processes of the machine make it no longer. Only
a processor that is to be throttled is really used.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

import serried
from benchmarks.diagnosis.faults import throttle
from benchmarks.diagnosis.faults.fault import Fault
from serried.runtime.recording.api import finish

WIDTH, ROWS, LONG_ROWS = 16, 4, 4096
"""Numbers in a row, and rows of a microbatch; of a link that is slow more has to be seen."""
COMPUTE_S = 0.05
"""One forward of a microbatch; a backward takes as long again."""
SLOWER, UNEVEN = 1.2, 1.5
LOADING_S = 0.1
WORK_S = 0.02
"""What a computation takes of a processor that may be throttled."""
SCATTER = 0.5
"""The standard deviation of the logarithm of how long a sequence takes."""


class Processor:
    """Computes by really using a processor, and knows how much of one it got."""

    def __init__(self) -> None:
        self._used = self._took = 0.0

    def work(self, seconds: float) -> None:
        """Uses a processor for so long, however long that takes."""
        began, began_used = time.monotonic(), time.thread_time()
        while time.thread_time() < began_used + seconds:
            pass
        self._used += time.thread_time() - began_used
        self._took += time.monotonic() - began

    @property
    def share(self) -> float:
        """What part of one it got."""
        return self._used / self._took


class _Held(torch.autograd.Function):
    """Passes on what it gets, after as long as a computation of it would take."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, seconds: float, spend: Callable[[float], None]
    ) -> torch.Tensor:
        ctx.seconds, ctx.spend = seconds, spend
        spend(seconds)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        ctx.spend(ctx.seconds)
        return gradient, None, None


class Layers(torch.nn.Module):
    """Is the layers of one stage."""

    def __init__(self, spend: Callable[[float], None]) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(WIDTH, WIDTH)
        self.seconds: Iterator[float] = iter(())
        self.spend = spend

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        held: torch.Tensor = _Held.apply(y, next(self.seconds), self.spend)  # type: ignore[no-untyped-call]
        return held


def batches(fault: Fault, rank: int) -> Iterator[torch.Tensor]:
    """Yields a batch for each step; a slow loader takes its time over each."""
    for _ in range(fault.steps):
        if fault.kind == "slow loader" and rank == fault.rank:
            time.sleep(LOADING_S)
        yield torch.ones(ROWS, WIDTH)


def seconds_of(fault: Fault, rank: int, step: int) -> Iterator[float]:
    """Yields how long a rank computes over the forward of each microbatch of a step."""
    lengths = random.Random(f"{fault.seed} {rank % fault.dp} {step}")
    while True:
        scatter = SCATTER if fault.kind == "varying length" else 0.0
        yield _seconds(fault, rank, step) * lengths.lognormvariate(0.0, scatter)


def _seconds(fault: Fault, rank: int, step: int) -> float:
    if fault.kind == "throttled":
        return WORK_S
    if fault.kind == "slow rank" and rank == fault.rank and step >= fault.step // 2:
        return COMPUTE_S * SLOWER
    return COMPUTE_S * UNEVEN if fault.kind == "uneven stage" and rank in fault.roots else COMPUTE_S


def run_slowed(fault: Fault, rank: int, evidence: Path, work: Path) -> None:
    """Is one rank of the job, from its start to its end."""
    dist.init_process_group(
        "gloo",
        store=dist.FileStore(str(work / "store"), fault.world_size),  # type: ignore[attr-defined]
        rank=rank,
        world_size=fault.world_size,
        timeout=timedelta(seconds=60),
    )
    stage, replica = divmod(rank, fault.dp)
    lines = [[p * fault.dp + d for p in range(fault.pp)] for d in range(fault.dp)]
    pipelines = [dist.new_group(line) for line in lines]
    replicas = [
        dist.new_group([p * fault.dp + d for d in range(fault.dp)]) for p in range(fault.pp)
    ]
    processor = Processor()
    layers = Layers(processor.work if fault.kind == "throttled" else time.sleep)
    optimizer = torch.optim.SGD(layers.parameters(), 1e-3)
    run = _pipeline(fault, stage, layers, pipelines[replica]) if fault.pp > 1 else _alone(layers)
    layout = serried.layout(world_size=fault.world_size, pp=fault.pp)
    for step, batch in enumerate(serried.record(batches(fault, rank), evidence, layout=layout)):
        layers.seconds = seconds_of(fault, rank, step)
        if fault.kind == "throttled" and rank == fault.rank and step == 1 + fault.step // 2:
            throttle.throttle(work, processor.share)
        run(batch)
        if fault.dp > 1:
            for parameter in layers.parameters():
                dist.all_reduce(parameter.grad, group=replicas[stage])
        if fault.kind == "GC pauses" and rank == fault.rank and step % 3 == 2:
            _collect()
        optimizer.step()
        optimizer.zero_grad()
    finish()
    dist.barrier()


def _pipeline(fault: Fault, stage: int, layers: Layers, group: dist.ProcessGroup) -> Any:
    placed = PipelineStage(layers, stage, fault.pp, torch.device("cpu"), group=group)
    made = (ScheduleGPipe, Schedule1F1B)[fault.seed % 2]
    count = max(fault.microbatches, fault.pp)
    schedule = made(placed, count, loss_fn=lambda y, _: y.square().mean())

    whole = torch.ones((LONG_ROWS if fault.kind == "slow link" else ROWS) * count, WIDTH)

    def run(batch: torch.Tensor) -> None:
        if stage == 0:
            schedule.step(whole)
        elif stage == fault.pp - 1:
            schedule.step(target=whole)
        else:
            schedule.step()

    return run


def _alone(layers: Layers) -> Any:
    def run(batch: torch.Tensor) -> None:
        layers(batch).square().mean().backward()

    return run


def _collect() -> None:
    """Makes objects that point in circles, and lets Python find that nobody needs them."""
    began = time.perf_counter()
    while time.perf_counter() - began < 3 * COMPUTE_S:
        circles: list[Any] = []
        for _ in range(20_000):
            one: list[Any] = []
            one.append(one)
            circles.append(one)
        del circles
        gc.collect()
