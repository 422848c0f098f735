"""Guards' files as the ranks of a job would leave them, written by the guard's own writer."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from serried.diagnose.diagnosis import Diagnosis
from serried.diagnose.evidence.records.guard_file import OPS, GuardedGroup, GuardHeader
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed
from serried.runtime.guard.operations import OperationLog
from serried.trace.model.record import RecordHeader, TracedJob

WORLD = GuardedGroup("0", (0, 1, 2, 3), "default_pg", "gloo")
PAIRS = tuple(
    GuardedGroup(str(number), ranks, "undefined", "gloo")
    for number, ranks in ((1, (0, 1)), (2, (2, 3)), (3, (0, 2)), (4, (1, 3)))
)


class GuardedRanks:
    """Writes the files of four ranks: all in ``WORLD``, and each in two of ``PAIRS``."""

    def __init__(
        self, folder: Path, *, run: str = "run", attempt: int = 0, boot: str = "b"
    ) -> None:
        job = TracedJob("custom", 4, {"dp": 4}, "", "unknown", 1, gpus_per_node=4)
        self.folder = folder
        self.logs = []
        folder.mkdir(parents=True, exist_ok=True)
        for rank in range(4):
            record = RecordHeader(run, rank, job, "host", boot)
            pid = 700 + 10 * attempt + rank
            header = GuardHeader(record, pid, 8, rank, 4, attempt, timeout_s=1.0)
            self.logs.append(OperationLog(folder, header))
            for group in (WORLD, *(pair for pair in PAIRS if rank in pair.ranks)):
                self.logs[rank].add_group(group)
        self.seqs = [[0, 0, 0] for _ in range(4)]

    def collective(
        self, ranks: Iterable[int], group: int, *, ends: bool = True, numel: int = 8
    ) -> None:
        """Lets ranks call an all-reduce of their ``group``: 0 for all, 1 and 2 for a pair."""
        for rank in ranks:
            self.seqs[rank][group] += 1
            seq = self.seqs[rank][group]
            log = self.logs[rank]
            log.count(group + 1, seq)
            number = log.begin(OPS.index("all_reduce"), group + 1, seq, -1, numel, numel, 1)
            if ends:
                log.end(number)

    def message(self, op: str, rank: int, peer: int, *, ends: bool = True) -> None:
        """Lets a rank send to a peer, or receive from it."""
        number = self.logs[rank].begin(OPS.index(op), 1, -1, peer, 8, 8, 1)
        if ends:
            self.logs[rank].end(number)

    def begin_step(self, step: int) -> None:
        for log in self.logs:
            log.begin_step(step)

    def end(self, ranks: Iterable[int], how: int) -> None:
        for rank in ranks:
            self.logs[rank].ended(how)

    def neighbours(self, rank: int, states: dict[int, str]) -> None:
        path = self.logs[rank].path.with_suffix(".neighbours")
        path.write_text(json.dumps({"wall_ns": time.time_ns(), "states": states}))

    def remove(self, ranks: Sequence[int]) -> None:
        for rank in ranks:
            self.logs[rank].path.unlink()

    def diagnosis(self) -> Diagnosis:
        return diagnosed(gather([self.folder]))
