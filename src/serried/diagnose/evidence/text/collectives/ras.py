"""What NCCL's RAS tells of its communicators: counters that differ, processes that are gone.

    #0-0 (fa93daea854b060b) MISMATCH
      Communicator ranks have different AllGather operation counts
      30 ranks have launched up to operation 640
      2 ranks have launched up to operation 641
      Rank 12 -- GPU 4 managed by process 323032 on node 10.0.0.124

Signs: ``ras_counts`` (facts ``counts``: tuples of a number of ranks and their counter; ``listed``:
tuples of rank, GPU, process and node, the minority), ``ras_missing`` (a process that does not
answer) and ``ras_absent`` (fact ``ranks``: the rank of the communicator that it holds).

>>> from serried.diagnose.evidence.log_line import log_line
>>> report = RasReport()
>>> rows = ["  Communicator ranks have different AllGather operation counts",
...         "  3 ranks have launched up to operation 6", "  1 rank has launched up to operation 5",
...         "  Rank 2 -- GPU 2 managed by process 77 on node 10.0.0.1"]
>>> signs = [s for row in rows for s in report.read(log_line(row, "ras.txt", 1))]
>>> signs[-1].facts["counts"], signs[-1].facts["listed"][0][0]
(((3, 6), (1, 5)), 2)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.sign import CollectiveFacts, Sign
from serried.diagnose.evidence.text.pattern import Pattern

_COMM = re.compile(r"#\d+-\d+ \(([0-9a-f]+)\) (\w+)")
_OP = re.compile(r"Communicator ranks have different (\w+) operation counts")
_COUNT = re.compile(r"(\d+) ranks? (?:have|has) (?:launched|enqueued) up to operation (\d+)")
_LISTED = re.compile(
    r"Rank (\d+) -- GPU (\d+) managed by process (\d+) on node ([\w.:\-]+)(?P<rest>.*)"
)
_INCOMPLETE = re.compile(r"Missing communicator data from \d+ ranks?\b")
_MISSING = Pattern("ras_missing", r"Missing communicator data from (?P<number>\d+) job process")
_GONE = Pattern(
    "ras_missing",
    r"Process (?P<pid>\d+) on node (?P<host>[\w.:\-]+) managing GPUs? (?P<gpu>\d+).*",
)
_DEAD = Pattern("ras_missing", r"considered dead|(?:Dead|DEAD) (?:peer|process|job process)")


class RasReport:
    """Reads a report line by line; each count or rank repeats the sign with all that is known."""

    def __init__(self) -> None:
        self._comm: str | None = None
        self._op: str | None = None
        self._counts: list[tuple[int, int]] = []
        self._listed: list[tuple[int, int, int, str]] = []
        self._is_incomplete = False

    def read(self, line: LogLine) -> Iterator[Sign]:
        """Yields a sign where a line adds to what is known."""
        if found := _COMM.search(line.text):
            self.__init__()  # type: ignore[misc]
            self._comm = found[1]
        elif found := _OP.search(line.text):
            self._op, self._counts, self._listed = found[1], [], []
        elif self._op and (found := _COUNT.search(line.text)):
            self._counts.append((int(found[1]), int(found[2])))
        elif self._op and (found := _LISTED.search(line.text)):
            self._listed.append((int(found[1]), int(found[2]), int(found[3]), found[4]))
        elif self._is_incomplete and (found := _LISTED.search(line.text)):
            yield self._absent(line, int(found[1]))
            return
        elif _INCOMPLETE.search(line.text):
            self._is_incomplete = True
            return
        else:
            for pattern in (_MISSING, _GONE, _DEAD):
                if sign := pattern.sign(line):
                    yield sign
            return
        if self._counts:
            yield self._sign(line)

    def _absent(self, line: LogLine, rank: int) -> Sign:
        facts = CollectiveFacts(group=f"comm {self._comm}" if self._comm else None)
        return Sign(
            "ras_absent", line.quote, line.speaker, line.time, facts, facts={"ranks": (rank,)}
        )

    def _sign(self, line: LogLine) -> Sign:
        most = max(self._counts)
        facts = CollectiveFacts(
            self._op, seq=most[1], group=f"comm {self._comm}" if self._comm else None
        )
        return Sign(
            "ras_counts",
            line.quote,
            line.speaker,
            line.time,
            facts,
            facts={"counts": tuple(self._counts), "listed": tuple(self._listed)},
        )
