"""What ``serried.guard()`` costs a whole training step, on gloo or NCCL; run by ``make bench``.

    a round   guarded  plain  again │ again  plain  guarded     a block each, in drawn order

Ranks train a small model under DDP that sums ten times over all ranks after each of its six
layers, by calls of Python's, as a tensor parallel job does between its layers: each is written down
by the guard, and DDP's own are counted. A block is some steps in a row; the guard's hooks go in and
out with it. Ratios to the plain blocks of the round are taken by the clock and by the processor, in
the mean of all ranks (``paired/rounds.py``); plain against plain has no other difference than
noise. Beside them: what one guarded operation takes longer than a plain one, in a loop of its own,
times the step's operations, over the step.

    python benchmarks/guard_step.py                   two ranks, gloo
    python benchmarks/guard_step.py --device cuda     one rank, NCCL
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from paired.ranks import run_ranks  # type: ignore[import-not-found]  # stands beside this file
from paired.rounds import (  # type: ignore[import-not-found]  # stands beside this file
    Cost,
    centre,
    of_all_ranks,
    pin,
    ratio_lines,
    rounds_of,
)
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import serried

NAMES = ("plain", "guarded", "again")
TOLD = {"guarded": "guarded / plain", "again": "plain / plain, the noise"}
GOAL = 0.002
LAYERS, SUMS, LOOP = 6, 10, 2000
"""Layers of the model, sums after each, and operations of the loop."""
OPERATIONS = LAYERS * SUMS
SIZES = {"cpu": (512, 256, 2), "cuda": (4096, 4096, 1)}
"""Width of the layers, rows of a batch, and ranks."""


@dataclass(frozen=True)
class Asked:
    """Is what to measure, on what."""

    device: str
    rounds: int
    block: int


class Summing(nn.Module):
    """Is a layer, with sums over all ranks behind it."""

    norm: torch.Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.register_buffer("norm", torch.ones(1024), persistent=False)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Returns the layer's output, and sums."""
        out: torch.Tensor = self.layer(rows).relu()
        for _ in range(SUMS):
            dist.all_reduce(self.norm)
            self.norm /= dist.get_world_size()
        return out


class Step:
    """Is one rank's training step, with sums over all ranks in it."""

    def __init__(self, width: int, rows: int, device: torch.device) -> None:
        torch.manual_seed(0)
        model = nn.Sequential(*(Summing(width) for _ in range(LAYERS))).to(device)
        self.model = DistributedDataParallel(model, broadcast_buffers=False)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.batch = torch.randn(rows, width, device=device)
        self.norm = torch.ones(1024, device=device)

    def run(self) -> None:
        """Trains one step, to its end on the device."""
        loss = self.model(self.batch).pow(2).mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        loss.item()


def rank(number: int, folder: str, asked: Asked) -> None:
    torch.set_num_threads(1)
    width, rows, ranks = SIZES[asked.device]
    pin(number, ranks)
    device = torch.device("cpu")
    if asked.device == "cuda":
        device = torch.device("cuda", 0)
        torch.cuda.set_device(device)
    files = dist.FileStore(f"{folder}/store", ranks)  # type: ignore[attr-defined]
    backend = "nccl" if asked.device == "cuda" else "gloo"
    dist.init_process_group(backend, store=files, rank=number, world_size=ranks)
    os.environ |= {"RANK": str(number), "WORLD_SIZE": str(ranks)}
    step = Step(width, rows, device)

    def block(name: str) -> Cost:
        with guarded(Path(folder), is_on=name == "guarded"):
            dist.barrier()
            cpu, wall = time.process_time(), time.perf_counter()
            for _ in range(asked.block):
                step.run()
            took = time.perf_counter() - wall, time.process_time() - cpu
        return Cost(*(each / asked.block for each in took))

    found = of_all_ranks(rounds_of(NAMES, block, asked.rounds))
    loops = [of_loop(Path(folder), step.norm) for _ in range(5)]
    if number == 0:
        tell(asked, found, loops)
    dist.barrier()
    os._exit(0)


@contextmanager
def guarded(folder: Path, *, is_on: bool) -> Iterator[None]:
    """Guards its body where asked to."""
    with serried.guard(folder / "guard" if is_on else None):
        yield


def of_loop(folder: Path, tensor: torch.Tensor) -> float:
    """Returns how many seconds longer a guarded operation takes than a plain one."""
    took = []
    for is_on in (False, True):
        with guarded(folder, is_on=is_on):
            dist.all_reduce(tensor)
            began = time.process_time()
            for _ in range(LOOP):
                dist.all_reduce(tensor)
            took.append((time.process_time() - began) / LOOP)
            tensor.fill_(1.0).sum().item()
    return took[1] - took[0]


def tell(asked: Asked, found: list[dict[str, Cost]], loops: list[float]) -> None:
    step_s = centre([each["plain"].wall_s for each in found])
    ranks = SIZES[asked.device][2]
    print(
        f"torch {torch.__version__}, {asked.device}, {ranks} ranks, a step takes "
        f"{step_s * 1e3:.1f} ms and has {OPERATIONS} operations of Python's; {asked.rounds} rounds"
    )
    print(*ratio_lines(found, TOLD, "guarded", GOAL), sep="\n")
    us = sorted(loops)[len(loops) // 2] * 1e6
    print(
        f"an operation takes {us:.2f} us of the processor longer guarded; "
        f"x {OPERATIONS} / step = {us * 1e-6 * OPERATIONS / step_s:.4%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=SIZES, default="cpu")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--block", type=int, default=5, help="steps in a row")
    given = parser.parse_args()
    asked = Asked(given.device, given.rounds, given.block)
    run_ranks(rank, SIZES[asked.device][2], asked)


if __name__ == "__main__":
    main()
