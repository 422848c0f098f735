"""Draws of clocks and wires: two hosts record a job by clocks that are known to be wrong.

    host 0   now = t + skew + drift (t - begun)      pings, and F and B with their messages,
    host 1   the same, of other draws                recorded through runtime.recording

From one recording come traces of every kind: with the pings or without, with the messages or
with computations alone; of each it is known where every span should stand.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import serried
from serried.action import ActionKind
from serried.runtime.job.report import Place
from serried.runtime.job.settings import TrainSettings
from serried.runtime.recorder.host_time import HostTime
from serried.runtime.recording import api as recorder_doors
from serried.runtime.recording.training import TrainingRecorder
from serried.runtime.run.worker import TrainJob
from serried.trace.clocks.align import aligned
from serried.trace.clocks.pings import read_pings
from serried.trace.formats.reading import read_trace
from serried.trace.merge.in_memory import merge
from serried.trace.model.messages import measure_messages
from serried.trace.model.pairs import RECEIVES, SENDS
from serried.trace.model.trace import Trace
from tests.runtime.hosts import PATIENCE_S, Hosts, Wire, answering

STEPS, MICROBATCHES = 10, 4
SECOND = 1_000_000_000
Ways = Callable[[random.Random], tuple[float, float, float]]


@dataclass(frozen=True)
class WrongClock:
    """Is a clock that shows ``skew_ns`` too much at ``begun_ns``, and drifts from then on."""

    begun_ns: int
    skew_ns: int
    drift_ppb: int

    def __call__(self) -> int:
        return self.shows(time.monotonic_ns())

    def shows(self, true_ns: int) -> int:
        return true_ns + self.skew_ns + (true_ns - self.begun_ns) * self.drift_ppb // SECOND

    def true_ns(self, shown_ns: np.ndarray) -> np.ndarray:
        """Returns when it showed that, less ``begun_ns``."""
        return (shown_ns - self.begun_ns - self.skew_ns) / (1 + self.drift_ppb / SECOND)


@dataclass(frozen=True)
class WrongWall:
    """Is the wall clock, set wrong by ``off_ns``."""

    off_ns: int

    def __call__(self) -> int:
        return time.time_ns() + self.off_ns


@dataclass(frozen=True)
class Draw:
    """Is one recorded job, and the clocks it was recorded by."""

    folder: Path
    hosts: tuple[HostTime, HostTime]
    job: str = "messages"


def drawn(rng: random.Random, host: int) -> HostTime:
    """Returns a host whose clock is off by seconds, and drifts by up to 100 ppm."""
    clock = WrongClock(
        time.monotonic_ns(),
        skew_ns=rng.randrange(10 * SECOND),
        drift_ppb=rng.randint(-100_000, 100_000),
    )
    return HostTime(clock, WrongWall(rng.randint(-3, 3) * SECOND), f"host-{host}", "boot")


def record_all(rank: int, address: str, gate: Barrier, draws: Sequence[Draw]) -> int:
    """Is one rank on its host: records a short job for each draw, by a clock of its own.

    Before each and after each it waits at ``gate`` for whoever sets the wires.
    """
    os.environ.update(GLOO_SOCKET_IFNAME="eth0", MASTER_ADDR=address, LOCAL_WORLD_SIZE="1")
    for number, each in enumerate(draws):
        gate.wait(PATIENCE_S)
        JOBS[each.job](rank, address, 29600 + number, each)
        gate.wait(PATIENCE_S)
    return len(draws)


def send_messages(rank: int, address: str, port: int, draw: Draw) -> None:
    """Hands tensors on and back, as a pipeline does."""
    with joined(rank, address, port=port):
        _record(rank, draw.folder, draw.hosts[rank])


def record_a_foreign_job(rank: int, address: str, port: int, draw: Draw) -> None:
    """Trains by DDP, in a loop that knows only ``serried.record``."""
    with joined(rank, address, port=port):
        model = DistributedDataParallel(nn.Linear(4, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in serried.record(_steps(draw.folder), draw.folder, clock=draw.hosts[rank]):
            model(torch.randn(2, 4)).sum().backward()
            optimizer.step()
        recorder_doors.finish()


def train(rank: int, address: str, port: int, draw: Draw) -> None:
    """Trains a small model, a stage on each host."""
    limit = timedelta(seconds=PATIENCE_S)
    store = dist.TCPStore(address, port, 2, rank == 0, limit)  # type: ignore[attr-defined]
    settings = TrainSettings(world_size=2, pp=2, steps=3, device="cpu", trace_dir=draw.folder)
    job = TrainJob(settings.resolved(), draw.hosts[rank])
    job.run_rank(Place(rank, 2, 0, 1), {"store": store}, lambda event: None)
    dist.destroy_process_group()


JOBS: dict[str, Callable[[int, str, int, Draw], None]] = {
    "messages": send_messages,
    "record": record_a_foreign_job,
    "train": train,
}


@contextmanager
def joined(rank: int, address: str, *, port: int) -> Iterator[None]:
    """Joins two hosts' ranks into a job."""
    limit = timedelta(seconds=PATIENCE_S)
    store = dist.TCPStore(address, port, 2, rank == 0, limit)  # type: ignore[attr-defined]
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=limit)
    yield
    dist.barrier()
    dist.destroy_process_group()


def record_draws(
    rng: random.Random, made: Hosts, wire: Wire, folder: Path, *, jobs: Sequence[str], ways: Ways
) -> list[Draw]:
    """Records jobs on two hosts, each with clocks and a wire of its own draw."""
    draws = [
        Draw(folder / f"draw-{number}", (drawn(rng, 0), drawn(rng, 1)), job)
        for number, job in enumerate(jobs)
    ]
    gate = multiprocessing.get_context("forkserver").Barrier(3)
    for each in draws:
        each.folder.mkdir()
    given = [(host, made.address(0), gate, draws) for host in range(2)]
    with answering(made, record_all, given) as answers:
        for _ in draws:
            wire.set(*ways(rng))
            gate.wait(PATIENCE_S)
            gate.wait(PATIENCE_S)
        assert answers() == [len(draws)] * 2
    return draws


def uneven(rng: random.Random) -> tuple[float, float, float]:
    """Returns how long frames take out, how long back, and their jitter, each of its own draw."""
    return rng.expovariate(500), rng.expovariate(500), 0.0002


def even(rng: random.Random) -> tuple[float, float, float]:
    """Returns the same with both ways alike."""
    way = rng.expovariate(500)
    return way, way, 0.0002


def calm(rng: random.Random) -> tuple[float, float, float]:
    """Returns the same from a tenth of a millisecond, without jitter: all noise is the hosts'."""
    way = 0.0001 * 50 ** rng.random()
    return way, way, 0.0


def _record(rank: int, folder: Path, host: HostTime) -> None:
    settings = TrainSettings(
        world_size=2, pp=2, microbatches=MICROBATCHES, steps=STEPS, trace_dir=folder
    )
    recorder = TrainingRecorder.of(
        settings, run=folder.name, rank=rank, backend="gloo", host=host, num_local_ranks=1
    )
    for step in _steps(folder):
        recorder.begin_step(step)
        for microbatch in range(MICROBATCHES):
            _work(recorder, rank, microbatch)
    recorder.close()


def _steps(folder: Path) -> Iterator[int]:
    """Yields some steps, and more until a ping was written: threads start when they may."""
    for step in count():
        pinged = torch.tensor(int(any(folder.glob("clock-*.jsonl"))))
        dist.all_reduce(pinged, op=dist.ReduceOp.MIN)
        if step >= STEPS and pinged.item():
            return
        yield step


def _work(recorder: TrainingRecorder, rank: int, microbatch: int) -> None:
    """Computes on stage 0, on stage 1, and back on both, a message between each."""
    tensor = torch.zeros(64)
    if rank == 0:
        _compute(recorder, ActionKind.F, 0, microbatch)
        _send(recorder, ActionKind.SEND_F, tensor, 0, microbatch)
        _receive(recorder, ActionKind.RECV_B, tensor, 0, microbatch)
        _compute(recorder, ActionKind.B, 0, microbatch)
    else:
        _receive(recorder, ActionKind.RECV_F, tensor, 1, microbatch)
        _compute(recorder, ActionKind.F, 1, microbatch)
        _compute(recorder, ActionKind.B, 1, microbatch)
        _send(recorder, ActionKind.SEND_B, tensor, 1, microbatch)


def _compute(recorder: TrainingRecorder, kind: ActionKind, stage: int, microbatch: int) -> None:
    start = recorder.begin(stage, microbatch)
    for _ in range(20):
        torch.ones(100).cumsum(0)
    recorder.end(start, kind, stage, microbatch)


def _send(
    recorder: TrainingRecorder,
    kind: ActionKind,
    tensor: torch.Tensor,
    stage: int,
    microbatch: int,
) -> None:
    start = recorder.tracer.mark()
    dist.send(tensor, 1 - stage)
    recorder.tracer.keep_since(start, kind, stage, microbatch, 1 - stage)


def _receive(
    recorder: TrainingRecorder,
    kind: ActionKind,
    tensor: torch.Tensor,
    stage: int,
    microbatch: int,
) -> None:
    start = recorder.tracer.mark()
    dist.recv(tensor, 1 - stage)
    recorder.tracer.keep_since(start, kind, stage, microbatch, 1 - stage)


# ----------------------------------------------------------------------- what came of it


@dataclass(frozen=True)
class Outcome:
    """Says of one draw, in nanoseconds, how far off it was and how far it said it might be."""

    source: str
    error_ns: float
    stated_ns: float
    symmetric_ns: float
    violations: int
    checked: int


WITH = {
    "pings": (True, False),
    "pings+messages": (True, True),
    "messages": (False, True),
    "order": (False, False),
}
"""What each kind of trace has beside its computations: pings, messages."""


def outcome(draw: Draw) -> Outcome:
    """Returns what reading a recording made of its clocks."""
    return _outcome(merge([draw.folder]), read_trace([draw.folder]), draw.hosts)


def outcomes(draw: Draw) -> dict[str, Outcome]:
    """Returns what alignment made of a recording, by what it was given."""
    trace = merge([draw.folder])
    pings = read_pings([draw.folder], trace)
    is_message = np.isin(trace.spans.kind, SENDS + RECEIVES)
    found = {}
    for name, (has_pings, has_messages) in WITH.items():
        spans = trace.spans if has_messages else trace.spans.where(~is_message)
        given = replace(trace, spans=spans)
        found[name] = _outcome(given, aligned(given, pings if has_pings else None), draw.hosts)
    return found


def _outcome(before: Trace, after: Trace, hosts: Sequence[HostTime]) -> Outcome:
    zero, one = (host.now_ns for host in hosts)
    assert isinstance(zero, WrongClock) and isinstance(one, WrongClock)
    mine = before.spans.rank == 1
    shown = before.spans.start_ns[mine] + before.base_ns - before.hosts[1].offset_ns
    true = one.true_ns(shown) + one.begun_ns - zero.begun_ns
    wanted = zero.begun_ns + zero.skew_ns + true * (1 + zero.drift_ppb / SECOND)
    wanted_ns = wanted.astype(np.int64) + before.hosts[0].offset_ns - after.base_ns
    clock = after.clocks[1]
    assert clock.uncertainty_ns is not None and clock.symmetric_ns is not None
    _, alignment = measure_messages(after, np.unique(after.spans.step))
    return Outcome(
        clock.source,
        float(np.abs(after.spans.start_ns[mine] - wanted_ns).max()),
        clock.uncertainty_ns,
        clock.symmetric_ns,
        alignment.causality_violations,
        alignment.checked,
    )
