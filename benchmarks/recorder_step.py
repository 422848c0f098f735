"""What recording costs a real training step, beside torch.profiler; run by ``make bench``.

    step  with  without  with  without …     64 events a step; which of a pair is first is drawn

Two ranks train a small model under DDP over gloo. Steps with and without a recording alternate
in random order, so that whatever else the machine does meets both alike; the ratio is the median
over pairs, with a 95 % confidence interval from resampling them. Beside it stands what does not
drown in noise: the processor time of an event, through each door, times events, over the step.
``torch.profiler`` is timed on the same step, in the same run.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

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
WIDTH, ROWS = 512, 64


class Step:
    """Is one rank's training step of eight microbatches, with names of the user's in it."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(6)]
        self.model = DistributedDataParallel(nn.Sequential(*layers))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.batch = torch.randn(ROWS, WIDTH)
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


def timed(step: Callable[[], None]) -> float:
    """Returns how long a step took, ranks beginning it together."""
    dist.barrier()
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def ab(step: Step, pairs: int, folder: Path) -> tuple[list[float], float, int]:
    """Returns the ratio of each pair, the median step without a recording, and events a step."""
    order = random.Random(0)  # the same on every rank
    ratios, plain_s = [], []
    number = 0

    def recorded() -> None:
        with serried.record_steps(number, 0, 10**9, folder=folder):
            step.run()

    for _ in range(pairs):
        times = {}
        for is_recorded in order.sample((True, False), 2):
            times[is_recorded] = timed(recorded if is_recorded else step.run)
            number += 1
        ratios.append(times[True] / times[False])
        plain_s.append(times[False])
    recorder_doors.finish()
    spans = read_recording(folder / f"rank-{dist.get_rank():05d}.spans").spans
    return ratios, statistics.median(plain_s), round(len(spans) / pairs)


def profiled(step: Step, count: int) -> list[float]:
    """Returns the ratio of each pair of a step under torch.profiler and one without."""
    ratios = []
    for _ in range(count):
        plain = timed(step.run)
        dist.barrier()
        with profile(activities=[ProfilerActivity.CPU]):
            under = timed(step.run)
        ratios.append(under / plain)
    return ratios


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """Returns the median and its 95 % confidence interval, by resampling."""
    draw = random.Random(1)
    medians = sorted(
        statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES)
    )
    low, high = medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES)]
    return statistics.median(ratios), low, high


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


def rank(number: int, store: str, folder: str, pairs: int, say: bool) -> None:
    os.environ["KINETO_LOG_LEVEL"] = "99"
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        store=dist.FileStore(store, WORLD),  # type: ignore[attr-defined]
        rank=number,
        world_size=WORLD,
    )
    step = Step()
    for _ in range(5):
        step.run()
    ratios, step_s, events = ab(step, pairs, Path(folder) / "ab")
    under = profiled(step, max(5, pairs // 10))
    dist.barrier()
    if say:
        tell(ratios, step_s, events, under, doors(Path(folder) / "doors"))
    dist.barrier()
    os._exit(0)


def tell(
    ratios: list[float], step_s: float, events: int, under: list[float], costs: dict[str, float]
) -> None:
    middle, low, high = interval(ratios)
    print(f"a step of {WORLD} ranks takes {step_s * 1e3:.1f} ms; recorded, it has {events} events")
    print(f"recorded / not           {middle:.4f}   95 % interval {low:.4f} to {high:.4f}")
    if low <= 1 + GOAL <= high:
        print(
            f"  (the interval holds 1 + {GOAL:.1%}: this A/B drowns in noise and decides nothing)"
        )
    elif high < 1 + GOAL:
        print(f"  (below 1 + {GOAL:.1%}, the goal)")
    else:
        print(f"  (above 1 + {GOAL:.1%}, the goal)")
    for name, ns in costs.items():
        share = events * ns * 1e-9 / step_s
        print(f"{name:24} {ns:6.0f} ns an event; x {events} / step = {share:.4%}")
    peer, low, high = interval(under)
    print(f"torch.profiler / not     {peer:.4f}   95 % interval {low:.4f} to {high:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100)
    pairs = parser.parse_args().pairs
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store")
        ranks = [
            context.Process(target=rank, args=(number, store, folder, pairs, number == 0))
            for number in range(WORLD)
        ]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()


if __name__ == "__main__":
    main()
