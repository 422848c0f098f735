"""What recording costs a real training step, beside torch.profiler; run by ``make bench``.

    a round   recorded  plain  profiled  again │ again  profiled  plain  recorded     a block each
              └───────── drawn order ────────┘   └──────── the same, mirrored ────────┘

Ranks train a small model under DDP in four ways: recorded, plain, plain again, and in
torch.profiler. All are the same model, for of two copies one lies better in the processor's caches,
by more than a recording costs. A block is some steps in a row, as recordings are, which begin with
hooks that are put in and end with them taken out. A round gives each way two blocks, mirrored, so
that what drifts meets all alike; its ratio to the plain blocks is taken by the clock and by the
processor time, in the mean of all ranks (``paired/rounds.py``). Plain against plain has no other
difference than the machine's noise: what it spans cannot be seen in the others. Ranks have cores of
their own where there are enough.

Beside them stands what does not drown in noise. The processor time of an event, through each door,
called in a loop of its own, times events, over the step: what the code costs. And what a recording
adds to a step that computes next to nothing, over the step: what it costs in its place, behind
computation and messages that have emptied the processor's caches, with hooks and all.

    python benchmarks/recorder_step.py --rounds 20 --block 3          two ranks, gloo
    python benchmarks/recorder_step.py --device cuda --width 4096     a rank a GPU, NCCL
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from paired.ranks import run_ranks  # type: ignore[import-not-found]  # stands beside this file
from paired.rounds import (  # type: ignore[import-not-found]  # stands beside this file
    Cost,
    centre,
    interval,
    of_all_ranks,
    pin,
    ratio_lines,
    rounds_of,
    verdict,
)
from recorder import doors, window_ns  # type: ignore[import-not-found]
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile

import serried
from serried.runtime.recording import api as recorder_doors
from serried.trace.model.record import read_rank_record

MICROBATCHES, EVENTS = 8, 64
GOAL = 0.002
SIZES = {"cpu": (768, 128), "cuda": (4096, 2048)}
"""Width of the layers, and rows of a microbatch."""
SMALL, SMALL_STEPS, SMALL_ROUNDS = (64, 16), 20, 3
"""Size of the step that hardly computes, steps of a block of it, and its rounds for one above."""
TOLD = {
    "recorded": "recorded / plain",
    "again": "plain / plain, the noise",
    "profiled": "torch.profiler / plain",
}
NAMES = ("plain", *TOLD)
BARE = ("plain", "recorded", "again")


@dataclass(frozen=True)
class Asked:
    """Is what to measure, on what."""

    device: str
    ranks: int
    rounds: int
    block: int
    size: tuple[int, int]


class Step:
    """Is one rank's training step of eight microbatches, with names of the user's in it."""

    def __init__(self, width: int, rows: int, device: torch.device) -> None:
        torch.manual_seed(0)
        layers = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(6)]
        self.model = DistributedDataParallel(nn.Sequential(*layers).to(device))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.batch = torch.randn(rows, width, device=device)
        self.norm = torch.ones((), device=device)

    def run(self) -> None:
        """Trains one step; recorded, that is EVENTS spans, and one more of each further bucket."""
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


class Arms:
    """Is the ways to train a block of steps of a size."""

    def __init__(
        self, size: tuple[int, int], block: int, folder: Path, device: torch.device
    ) -> None:
        self._block, self._folder, self._device = block, folder, device
        self._step = Step(*size, device)
        self._activities = [ProfilerActivity.CPU]
        if device.type == "cuda":
            self._activities.append(ProfilerActivity.CUDA)

    def run(self, name: str) -> Cost:
        """Trains a block in the way of this name."""
        numbers = range(self._block)
        if name == "recorded":
            return self._timed(serried.record(numbers, self._folder, accumulate=1))
        if name == "profiled":
            with profile(activities=self._activities):
                return self._timed(numbers)
        return self._timed(numbers)

    def _timed(self, steps: Iterable[int]) -> Cost:
        """Returns what each of ``steps`` took in the mean, ranks beginning them together."""
        dist.barrier()
        self._settle()
        cpu, wall, count = time.process_time(), time.perf_counter(), 0
        for _ in steps:
            self._step.run()
            count += 1
        self._settle()
        return Cost((time.perf_counter() - wall) / count, (time.process_time() - cpu) / count)

    def _settle(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize()


def rank(number: int, folder: str, asked: Asked) -> None:
    os.environ["KINETO_LOG_LEVEL"] = "99"
    torch.set_num_threads(1)
    pin(number, asked.ranks)
    device = torch.device("cpu")
    if asked.device == "cuda":
        device = torch.device("cuda", number)
        torch.cuda.set_device(device)
    dist.init_process_group(
        "nccl" if asked.device == "cuda" else "gloo",
        store=dist.FileStore(f"{folder}/store", asked.ranks),  # type: ignore[attr-defined]
        rank=number,
        world_size=asked.ranks,
    )
    where = Path(folder)
    large = Arms(asked.size, asked.block, where / "large", device)
    found = of_all_ranks(rounds_of(NAMES, large.run, asked.rounds))
    recorder_doors.finish()
    del large
    small = Arms(SMALL, SMALL_STEPS, where / "small", device)
    bare = of_all_ranks(rounds_of(BARE, small.run, SMALL_ROUNDS * asked.rounds))
    recorder_doors.finish()
    if number == 0:
        tell(asked, found, bare, where)
    dist.barrier()
    os._exit(0)


def tell(
    asked: Asked, found: list[dict[str, Cost]], bare: list[dict[str, Cost]], where: Path
) -> None:
    spans = read_rank_record(where / "large" / "rank-00000.spans").spans
    step_s = centre([each["plain"].wall_s for each in found])
    events = round(len(spans) / asked.block / (1 + 2 * asked.rounds))
    print(
        f"torch {torch.__version__}, {asked.device}, a step of {asked.ranks} ranks takes "
        f"{step_s * 1e3:.1f} ms; recorded, it has {events} events"
    )
    print(*ratio_lines(found, TOLD, "recorded", GOAL), sep="\n")
    for name, ns in doors(where / "doors").items():
        share = events * ns * 1e-9 / step_s
        print(f"{name:24} {ns:6.0f} ns an event; x {events} / step = {share:.4%}")
    tell_small(bare, events, step_s)
    print(f"{'hooks in and out':24} {window_ns(where / 'window') / 1e3:.0f} us, once a recording")


def tell_small(bare: list[dict[str, Cost]], events: int, step_s: float) -> None:
    """Tells what a recording adds to a step that hardly computes, over the one that does."""
    small_s = centre([each["plain"].wall_s for each in bare])
    print(f"in a step of {small_s * 1e3:.1f} ms, which hardly computes, of the processor:")
    added = {
        name: interval([each[name].cpu_s - each["plain"].cpu_s for each in bare]) for name in BARE
    }
    for name, told in (("recorded", "recorded - plain"), ("again", "plain - plain, the noise")):
        us, share = added[name] / 1e-6, added[name] / step_s
        print(f"{told:24} {us.text('.0f')} us; / the step above = {share.text('.4%')}")
    recorded = added["recorded"]
    print(
        f"{f'below {GOAL:.1%}':24} {verdict(recorded / step_s, added['again'] / step_s, GOAL)}; "
        f"{recorded.middle / events * 1e9:.0f} ns an event in its place; below it from steps of "
        f"{recorded.middle / GOAL * 1e3:.0f} ms on, or of {recorded.high / GOAL * 1e3:.0f} ms"
    )


def asked_for() -> Asked:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=SIZES, default="cpu")
    parser.add_argument("--ranks", type=int, help="default: 2, of cuda 1")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--block", type=int, default=3, help="steps in a row")
    parser.add_argument("--width", type=int, help="of a layer; default: 768, of cuda 4096")
    parser.add_argument("--rows", type=int, help="of a microbatch; default: 128, of cuda 2048")
    given = parser.parse_args()
    is_cuda = given.device == "cuda"
    ranks = given.ranks or (1 if is_cuda else 2)
    if is_cuda and torch.cuda.device_count() < ranks:
        parser.error(f"{ranks} ranks need as many GPUs; here are {torch.cuda.device_count()}")
    width, rows = SIZES[given.device]
    size = given.width or width, given.rows or rows
    return Asked(given.device, ranks, given.rounds, given.block, size)


def main() -> None:
    asked = asked_for()
    run_ranks(rank, asked.ranks, asked)


if __name__ == "__main__":
    main()
