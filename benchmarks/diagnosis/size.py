"""How long a diagnosis takes of a job of 1,024 and of 16,384 ranks; run by ``make bench``.

    python -m benchmarks.diagnosis.size                          1,024 and 16,384 ranks
    python -m benchmarks.diagnosis.size --ranks 4096 --steps 4

The job is simulated: tp 8 x dp x pp 8 ranks, each with the file that ``serried.guard`` keeps,
written by its own writer. One rank never joins the all-reduce of its tp group in the last step;
its stage stands, then its pipeline, then everybody in the all-reduce of dp. What is timed is all
of ``serried diagnose``: reading the files, the graph of waits, its root, the answer in JSON.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import tempfile
import time
from pathlib import Path

from serried.diagnose.evidence.records.guard_file import (
    LIFE,
    LIFE_PLACE,
    OPS,
    SUFFIX,
    GuardedGroup,
    GuardHeader,
)
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed
from serried.runtime.guard.operations import OperationLog
from serried.trace.model.record import RecordHeader, TracedJob
from serried.views.cli.entry import VALUES_BETWEEN_SEARCHES
from serried.views.diagnose.document import diagnosis_document

TP, PP, MICROBATCHES = 8, 8, 4
GOALS_S = {1024: 10.0, 16384: 60.0}
ALL_REDUCE, SEND, RECV = (OPS.index(name) for name in ("all_reduce", "send", "recv"))
WIDTH = 4096


class SimulatedRank:
    """Writes what one rank would, up to where it stands."""

    def __init__(self, folder: Path, rank: int, world_size: int) -> None:
        self.rank, self.inside = rank, world_size // PP
        self.stage = rank // self.inside
        replica, shard = divmod(rank % self.inside, TP)
        sizes = {"tp": TP, "pp": PP, "dp": world_size // (TP * PP)}
        job = TracedJob("megatron", world_size, sizes, "", "gpipe", MICROBATCHES, gpus_per_node=8)
        record = RecordHeader("simulated", rank, job, f"node{rank // 8}", f"boot{rank // 8}")
        header = GuardHeader(record, 1, 1, rank % 8, 8, timeout_s=120.0, num_rows=256)
        self.log = OperationLog(folder, header)
        first = self.stage * self.inside
        lines = self.stage * self.inside // TP + replica
        tp = tuple(range(rank - shard, rank - shard + TP))
        dp = tuple(range(first + shard, first + self.inside, TP))
        self.groups = [
            self.log.add_group(GuardedGroup("0", tuple(range(world_size)), "default_pg", "nccl")),
            self.log.add_group(GuardedGroup(f"{1 + lines}", tp, "tp", "nccl")),
            self.log.add_group(
                GuardedGroup(f"{100_000 + self.stage * TP + shard}", dp, "dp", "nccl")
            ),
        ]
        self.seqs = [0, 0, 0]

    def call(self, group: int, *, ends: bool = True) -> None:
        """Writes an all-reduce of a group: 1 is tp, 2 is dp."""
        self.seqs[group] += 1
        self.log.count(self.groups[group], self.seqs[group])
        row = (ALL_REDUCE, self.groups[group], self.seqs[group], -1, WIDTH, WIDTH, 4)
        number = self.log.begin(*row)
        if ends:
            self.log.end(number)

    def message(self, op: int, way: int, *, ends: bool = True) -> None:
        """Writes a message to or from a neighbouring stage."""
        number = self.log.begin(op, 1, -1, self.rank + way * self.inside, WIDTH, WIDTH, 4)
        if ends:
            self.log.end(number)

    def step(self, step: int) -> None:
        """Writes a whole step."""
        self.log.begin_step(step)
        for _ in range(MICROBATCHES):
            self.forward()
        for _ in range(MICROBATCHES):
            if self.stage < PP - 1:
                self.message(RECV, 1)
            self.call(1)
            if self.stage:
                self.message(SEND, -1)
        self.call(2)

    def forward(self) -> None:
        """Writes one microbatch's forward."""
        if self.stage:
            self.message(RECV, -1)
        self.call(1)
        if self.stage < PP - 1:
            self.message(SEND, 1)

    def last_step(self, step: int, root: int) -> None:
        """Writes how far the rank comes where ``root`` never joins its first collective."""
        self.log.begin_step(step)
        of_root, at = root // self.inside, root // TP
        is_line = self.rank % self.inside // TP == root % self.inside // TP
        if self.rank == root:
            if self.stage:
                self.message(RECV, -1)
        elif self.rank // TP == at:
            if self.stage:
                self.message(RECV, -1)
            self.call(1, ends=False)
        elif is_line and self.stage < of_root:
            self.forward()
            self.message(RECV if self.stage < of_root - 1 else SEND, 1, ends=False)
        elif is_line:
            self.message(RECV, -1, ends=False)
        else:
            self.step(step)
            self.seqs[2] -= 1
            self.call(2, ends=False)


def written(folder: Path, world_size: int, steps: int) -> int:
    """Writes the files of all ranks, and returns who is at fault."""
    root = world_size // 2 + 3
    for rank in range(world_size):
        simulated = SimulatedRank(folder, rank, world_size)
        for step in range(steps):
            simulated.step(step)
        simulated.last_step(steps, root)
    _live_alike(folder)
    return root


def _live_alike(folder: Path) -> None:
    """Gives all ranks the same last sign of life: to write thousands one by one takes minutes."""
    now = LIFE.pack(time.monotonic_ns(), time.time_ns(), time.monotonic_ns())
    for path in folder.glob(f"*{SUFFIX}"):
        with path.open("r+b") as file:
            file.seek(LIFE_PLACE)
            file.write(now)


def main() -> None:
    """Prints a line for each number of ranks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diagnosis.size")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1024, 16384])
    parser.add_argument("--steps", type=int, default=3, help="whole steps before it stands")
    asked = parser.parse_args()
    gc.set_threshold(VALUES_BETWEEN_SEARCHES)  # as the command does
    for world_size in asked.ranks:
        with tempfile.TemporaryDirectory(prefix="serried-size-") as place:
            root = written(Path(place), world_size, asked.steps)
            began, busy = time.perf_counter(), time.process_time()
            answer = diagnosis_document(diagnosed(gather([Path(place)])))
            size = len(json.dumps(answer))
            took, busy = time.perf_counter() - began, time.process_time() - busy
        right = "right" if answer["ranks"] == [root] else f"wrong: {answer['verdict']}"
        goal = GOALS_S.get(world_size)
        told = f", goal {goal:.0f} s" if goal else ""
        print(
            f"{world_size:>6} ranks: {took:.1f} s, {busy:.1f} s of them computing{told}; "
            f"root {right}, {len(answer['waiting'])} wait, {size / 1e6:.1f} MB of JSON, at most "
            f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB of memory"
        )


if __name__ == "__main__":
    main()
