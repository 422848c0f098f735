"""What recording costs a real training step, beside torch.profiler; run by ``make bench``.

    a round   recorded  plain  profiled  again │ again  profiled  plain  recorded     a block each
              └───────── drawn order ────────┘   └──────── the same, mirrored ────────┘

Two ranks train a small model under DDP over gloo, a copy of it for each of four: recorded, plain,
a plain one again, and one in torch.profiler. A block is some steps in a row, as recordings are,
which begin with hooks that are put in and end with them taken out. A round gives each of the four
two blocks, mirrored, so that what drifts meets all alike; its ratio to the plain blocks is taken
by the clock and by the processor time of one rank, and the median over rounds has a 95 %
confidence interval from resampling them. Plain against plain has no other difference than the
machine's noise: what it spans cannot be seen in the others.

Beside them stands what does not drown in noise. The processor time of an event, through each door,
called in a loop of its own, times events, over the step: what the code costs. And what a recording
adds to a step that computes next to nothing, over the step: what it costs in its place, behind
computation and messages that have emptied the processor's caches, with hooks and all.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile

import serried
from serried.runtime import recorder_doors
from serried.span import ActionKind
from serried.trace.record import read_recording

WORLD, MICROBATCHES, EVENTS = 2, 8, 64
GOAL = 0.002
RESAMPLES = 4000
LARGE, SMALL = (768, 128), (64, 16)
"""Width of the layers, and rows of a microbatch: of the step, and of one that hardly computes."""
TOLD = {
    "recorded": "recorded / plain",
    "again": "plain / plain, the noise",
    "profiled": "torch.profiler / plain",
}
NAMES = ("plain", *TOLD)
BARE = ("plain", "recorded", "again")


class Step:
    """Is one rank's training step of eight microbatches, with names of the user's in it."""

    def __init__(self, width: int, rows: int) -> None:
        torch.manual_seed(0)
        layers = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(6)]
        self.model = DistributedDataParallel(nn.Sequential(*layers))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.batch = torch.randn(rows, width)
        self.norm = torch.ones(())

    def run(self) -> None:
        """Trains one step; recorded, that is EVENTS spans."""
        for microbatch in range(MICROBATCHES):
            with self.model.no_sync() if microbatch + 1 < MICROBATCHES else serried.span("last"):
                loss = self.model(self.batch).pow(2).mean()
                loss.backward()
            for name in ("data", "loss", "log", "check", "copy"):
                with serried.span(name, microbatch=microbatch, stage=0):
                    pass
        dist.all_reduce(self.norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        for _ in range(EVENTS - 7 * MICROBATCHES - 4):
            with serried.span("tail"):
                pass


class Cost(NamedTuple):
    """Is what a step of a block took on this rank: by the clock, and of the processor."""

    wall_s: float
    cpu_s: float


def timed(step: Step, steps: Iterable[int]) -> Cost:
    """Returns what each of ``steps`` took in the mean, ranks beginning them together."""
    dist.barrier()
    cpu, wall, count = time.process_time(), time.perf_counter(), 0
    for _ in steps:
        step.run()
        count += 1
    return Cost((time.perf_counter() - wall) / count, (time.process_time() - cpu) / count)


class Arms:
    """Is the ways to train a block of steps of a size."""

    def __init__(
        self, names: tuple[str, ...], size: tuple[int, int], block: int, folder: Path
    ) -> None:
        self.names = names
        self._block, self._folder = block, folder
        self._steps = {name: Step(*size) for name in names}

    def run(self, name: str) -> Cost:
        """Trains a block in the way of this name."""
        step, numbers = self._steps[name], range(self._block)
        if name == "recorded":
            return timed(step, serried.record(numbers, self._folder, accumulate=1))
        if name == "profiled":
            with profile(activities=[ProfilerActivity.CPU]):
                return timed(step, numbers)
        return timed(step, numbers)


def rounds_of(arms: Arms, count: int) -> list[dict[str, Cost]]:
    """Returns what a step took in each way and round, after a block of each that does not count."""
    order = random.Random(0)  # the same on every rank
    for name in arms.names:
        arms.run(name)
    found = []
    for _ in range(count):
        drawn = order.sample(arms.names, len(arms.names))
        costs: dict[str, list[Cost]] = {name: [] for name in arms.names}
        for name in (*drawn, *reversed(drawn)):
            costs[name].append(arms.run(name))
        found.append({name: mean(both) for name, both in costs.items()})
    return found


def mean(costs: list[Cost]) -> Cost:
    return Cost(*(statistics.fmean(each) for each in zip(*costs, strict=True)))


def interval(values: list[float]) -> tuple[float, float, float]:
    """Returns the median and its 95 % confidence interval, by resampling."""
    draw = random.Random(1)
    medians = sorted(
        statistics.median(draw.choices(values, k=len(values))) for _ in range(RESAMPLES)
    )
    low, high = medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES)]
    return statistics.median(values), low, high


def doors(folder: Path) -> dict[str, float]:
    """Returns the processor's nanoseconds of an event through each door, the best of several."""
    one = torch.ones(1)
    backward = torch.autograd.backward  # what a hooked call costs beyond the call itself
    found: dict[str, float] = {}
    with serried.record_steps(0, 0, 1, folder=folder):
        recorder = recorder_doors._current
        assert recorder is not None
        sink, now = recorder.sink, time.monotonic_ns()
        hooked = recorder._hooks._exchanges.timed(ActionKind.ALL_REDUCE)(lambda tensor: None)

        def span() -> None:
            with serried.span("augment", 3):
                pass

        calls: dict[str, Callable[[], object]] = {
            "sink.keep (the event)": lambda: sink.keep(ActionKind.F, now, now, 0, 0),
            "with serried.span(…)": span,
            "a hooked collective": lambda: hooked(one),
        }
        for name, call in calls.items():
            found[name] = best(call) - best(lambda: None)
    recorder_doors.finish()
    assert torch.autograd.backward is backward
    return found


def best(call: Callable[[], object], count: int = 5000, rounds: int = 9) -> float:
    def once() -> float:
        start = time.process_time_ns()
        for _ in range(count):
            call()
        return (time.process_time_ns() - start) / count

    return min(once() for _ in range(rounds))


def window_ns(folder: Path) -> float:
    """Returns what it takes to begin a recording and to end it, hooks in and out."""
    with serried.record_steps(0, 0, 1, folder=folder):
        recorder = recorder_doors._current
        assert recorder is not None

    def window() -> None:
        recorder.begin_step(0, is_recorded=True)
        recorder.end_step()

    found = best(window, count=200)
    recorder_doors.finish()
    return found


def rank(number: int, store: str, folder: str, rounds: int, block: int) -> None:
    os.environ["KINETO_LOG_LEVEL"] = "99"
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        store=dist.FileStore(store, WORLD),  # type: ignore[attr-defined]
        rank=number,
        world_size=WORLD,
    )
    where = Path(folder)
    found = rounds_of(Arms(NAMES, LARGE, block, where / "large"), rounds)
    recorder_doors.finish()
    bare = rounds_of(Arms(BARE, SMALL, 10 * block, where / "small"), rounds)
    recorder_doors.finish()
    dist.barrier()
    if number == 0:
        spans = read_recording(where / "large" / "rank-00000.spans").spans
        step_s = statistics.median(each["plain"].wall_s for each in found)
        events = round(len(spans) / block / (1 + 2 * rounds))
        print(
            f"a step of {WORLD} ranks takes {step_s * 1e3:.1f} ms; recorded, it has {events} events"
        )
        tell_ratios(found)
        tell_events(doors(where / "doors"), events, step_s)
        tell_small(bare, window_ns(where / "window"), events, step_s)
    dist.barrier()
    os._exit(0)


def tell_ratios(found: list[dict[str, Cost]]) -> None:
    print(f"{'':24} {'by the clock':28} by the processor")
    for name, told in TOLD.items():
        intervals = [
            interval([each[name][by] / each["plain"][by] for each in found]) for by in (0, 1)
        ]
        texts = [f"{middle:.4f} ({low:.4f} to {high:.4f})" for middle, low, high in intervals]
        print(f"{told:24} {texts[0]:28} {texts[1]}")
        if name == "recorded":
            verdicts = [verdict(low, high) for _, low, high in intervals]
    print(f"{f'below 1 + {GOAL:.1%}':24} {verdicts[0]:28} {verdicts[1]}")


def verdict(low: float, high: float) -> str:
    """Says whether an interval lies below the goal, above it, or around it."""
    if high < 1 + GOAL:
        return "yes"
    return "no" if low > 1 + GOAL else "drowns in noise"


def tell_events(costs: dict[str, float], events: int, step_s: float) -> None:
    for name, ns in costs.items():
        share = events * ns * 1e-9 / step_s
        print(f"{name:24} {ns:6.0f} ns an event; x {events} / step = {share:.4%}")


def tell_small(bare: list[dict[str, Cost]], window: float, events: int, step_s: float) -> None:
    """Tells what a recording adds to a step that hardly computes, over the one that does."""
    small_s = statistics.median(each["plain"].wall_s for each in bare)
    print(f"in a step of {small_s * 1e3:.1f} ms, which hardly computes, of the processor:")
    for name, told in (("recorded", "recorded - plain"), ("again", "plain - plain, the noise")):
        middle, low, high = interval([each[name].cpu_s - each["plain"].cpu_s for each in bare])
        print(
            f"{told:24} {middle * 1e6:6.0f} us ({low * 1e6:.0f} to {high * 1e6:.0f}); "
            f"/ the step above = {middle / step_s:.4%}, / {events} = "
            f"{middle / events * 1e9:.0f} ns an event in its place"
        )
    print(f"{'hooks in and out':24} {window / 1e3:6.0f} us, once a recording")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--block", type=int, default=3, help="steps in a row")
    asked = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store")
        ranks = [
            context.Process(target=rank, args=(number, store, folder, asked.rounds, asked.block))
            for number in range(WORLD)
        ]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()


if __name__ == "__main__":
    main()
