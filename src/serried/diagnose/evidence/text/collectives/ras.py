"""What NCCL's RAS tells of its communicators: counters that differ, processes that are gone.

    #0-0 (fa93daea854b060b) MISMATCH
      Communicator ranks have different AllGather operation counts
      30 ranks have launched up to operation 640
      2 ranks have launched up to operation 641
      Rank 12 -- GPU 4 managed by process 323032 on node 10.0.0.124

      Rank 7 has launched up to operation 639 -- GPU 7 managed by ...     alone in its minority

Signs: ``ras_counts`` (facts ``counts``: tuples of a number of ranks and their counter; ``listed``:
the ranks of the minorities), ``ras_status`` (ranks start, run or end at one time), ``ras_missing``
(a process that does not answer) and ``ras_absent`` (fact ``ranks``: the rank of the communicator
that it holds). A
communicator counts its own ranks: where the report's tables tell that it holds fewer than the job,
fact ``is_part`` says so.

>>> from serried.diagnose.evidence.log_line import log_line
>>> report = RasReport()
>>> rows = ["  Communicator ranks have different AllGather operation counts",
...         "  3 ranks have launched up to operation 6", "  1 rank has launched up to operation 5",
...         "  Rank 2 -- GPU 2 managed by process 77 on node 10.0.0.1"]
>>> signs = [s for row in rows for s in report.read(log_line(row, "ras.txt", 1))]
>>> signs[-1].facts["counts"], signs[-1].facts["listed"][0]
(((3, 6), (1, 5)), 2)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.sign import CollectiveFacts, Sign
from serried.diagnose.evidence.text.pattern import Pattern

_COMM = re.compile(r"#(?P<group>\d+)-\d+ \((?P<comm>[0-9a-f]+)\) \w+")
_TOTALS = re.compile(r"^\s*\(total\).*\(total\)\s*$")
_NUMBERS = re.compile(r"^\s*\d[\d\s\-]*$")
"""The row below that heading, whose last number is that of all GPUs of the job."""
_GROUP = re.compile(r"^\s*(?P<group>\d+)\s+\d+\s+\d+\s+[\d\-]+\s+(?P<size>\d+)\s+\d+\s+[A-Z]")
"""A row of the table of communicators: its fifth number is that of the ranks of each."""
_OP = re.compile(r"Communicator ranks have different (\w+) operation counts")
_STATUS = re.compile(
    r"Communicator ranks have different status|\d+ ranks have status [A-Z]+|"
    r"Rank \d+ has status [A-Z]+ -- "
)
_LAUNCHED = (
    r"(?:have|has) (?:(?:launched|enqueued) up to operation (?P<count>\d+)|"
    r"not (?:launched|enqueued) any operations?)"
)
_COUNT = re.compile(rf"(?P<ranks>\d+) ranks? {_LAUNCHED}")
_LISTED = re.compile(
    rf"Rank (?P<rank>\d+)(?: (?P<own>{_LAUNCHED}))? -- (?:\[process information not found\]|"
    r"GPU (?P<gpu>\d+)(?: \(NVML \d+\))? managed by process (?P<pid>\d+) on node "
    r"(?P<node>[\w.:\-]+))"
)
"""A rank of a minority, with its own counter where it is alone in it."""
_NAMED = re.compile(r"^\s*The missing ranks?: (?P<ranks>\d+(?:, ?\d+)*)\s*$")
_INCOMPLETE = re.compile(r"Missing communicator data from \d+ ranks?\b")
_MISSING = Pattern("ras_missing", r"Missing communicator data from (?P<number>\d+) job process")
_GONE = Pattern(
    "ras_missing",
    r"Process (?P<pid>\d+) on node (?P<host>[\w.:\-]+) managing GPUs? (?P<gpu>\d+).*",
)
_ANY = "collective"
"""What NCCL before 2.26 prints in place of the name of an operation; of a report without its
heading none is told."""
_DEAD = Pattern("ras_missing", r"considered dead|(?:Dead|DEAD) (?:peer|process|job process)")


def _count(found: re.Match[str]) -> tuple[int, int]:
    return int(found["ranks"]), int(found["count"] or 0)


class RasReport:
    """Reads a report line by line; each count or rank repeats the sign with all that is known."""

    def __init__(self) -> None:
        self._gpus: int | None = None
        self._is_below_totals = False
        self._sizes: dict[str, int] = {}
        self._begin(None, None)

    def _begin(self, comm: str | None, size: int | None) -> None:
        self._comm, self._size = comm, size
        self._op: str | None = None
        self._counts: list[tuple[int, int]] = []
        self._listed: list[int] = []
        self._is_incomplete = False

    def read(self, line: LogLine) -> Iterator[Sign]:
        """Yields a sign where a line adds to what is known."""
        self._read_tables(line.text)
        if found := _COMM.search(line.text):
            self._begin(found["comm"], self._sizes.get(found["group"]))
        elif found := _OP.search(line.text):
            self._op, self._counts, self._listed = found[1], [], []
        elif _STATUS.search(line.text):
            group = CollectiveFacts(group=self._group)
            yield Sign("ras_status", line.quote, line.speaker, line.time, group)
            return
        elif counts := [_count(found) for found in _COUNT.finditer(line.text)]:
            self._counts += counts
        elif (self._op or self._counts) and (found := _LISTED.search(line.text)):
            self._listed.append(int(found["rank"]))
            if found["own"]:
                self._counts.append((1, int(found["count"] or 0)))
        elif self._is_incomplete and (found := _LISTED.search(line.text)):
            yield from self._absent(line, (int(found["rank"]),))
            return
        elif found := _NAMED.search(line.text):
            yield from self._absent(line, tuple(int(rank) for rank in found["ranks"].split(",")))
            return
        elif _INCOMPLETE.search(line.text):
            self._is_incomplete = True
            return
        else:
            for pattern in (_MISSING, _GONE, _DEAD):
                if sign := pattern.sign(line):
                    yield sign
            return
        if self._counts and (self._op or len(self._counts) > 1):
            yield self._sign(line)

    def _read_tables(self, text: str) -> None:
        if self._is_below_totals and _NUMBERS.match(text):
            self._gpus = int(text.replace("-", " ").split()[-1])
        self._is_below_totals = bool(_TOTALS.match(text))
        if found := _GROUP.match(text):
            self._sizes[found["group"]] = int(found["size"])

    @property
    def _group(self) -> str | None:
        """The communicator as signs call it; None before the first is told."""
        return f"comm {self._comm}" if self._comm else None

    @property
    def _is_part(self) -> bool:
        """Whether the communicator holds a part of the job, so that its ranks are not the job's."""
        most = max([self._gpus or 0, *self._sizes.values()])
        return self._size is not None and self._size < most

    def _absent(self, line: LogLine, ranks: tuple[int, ...]) -> Iterator[Sign]:
        known = tuple(rank for rank in ranks if self._size is None or rank < self._size)
        if known:
            facts: dict[str, object] = {"ranks": known, "is_part": self._is_part}
            group = CollectiveFacts(group=self._group)
            yield Sign("ras_absent", line.quote, line.speaker, line.time, group, facts=facts)

    def _sign(self, line: LogLine) -> Sign:
        most = max(self._counts)
        op = None if self._op == _ANY else self._op
        facts = CollectiveFacts(op, seq=most[1], group=self._group)
        return Sign(
            "ras_counts",
            line.quote,
            line.speaker,
            line.time,
            facts,
            facts={
                "counts": tuple(self._counts),
                "listed": tuple(self._listed),
                "is_part": self._is_part,
            },
        )
