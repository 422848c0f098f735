r"""What Horovod, JAX and Ascend's HCCL print of processes that do not come to a collective.

    One or more tensors were submitted to be reduced ... by subset of ranks ...
    Stalled ops: allreduce.conv1.weight [missing ranks: 1]        who is missing, for each call
    Stalled ops: allreduce.conv1.weight [ready ranks: 0, 2, 3]    who is there
    6: [horovod_allreduce.0, ...]                                 what a rank is missing in

Signs: ``stall`` (facts ``missing`` or ``ready``: ranks, ``name``: the call), ``task_absent`` (a
process that JAX's coordination service waited for; fact ``barrier``), ``task_lost`` (one whose
heartbeat ceased), ``silent`` (so did that of a part of a program), ``hccl`` (fact ``peer``: whom a
rank of Ascend's waits for, within its group).

Source: horovod/common/stall_inspector.cc 0.13 to 0.28, xla/tsl/distributed_runtime/coordination.

>>> from serried.diagnose.evidence.log_line import log_line
>>> report = StallReport()
>>> rows = ["Stalled ops: allreduce.conv1.weight [missing ranks: 1, 3]",
...         "Barrier timed out. Barrier_id: connect. Timed out task names:",
...         "/job:w/replica:0/task:6"]
>>> signs = [sign for row in rows for sign in report.read(log_line(row, "x", 1))]
>>> signs[0].facts["missing"], signs[1].kind, signs[1].speaker.rank
((1, 3), 'task_absent', 6)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.quote import Numbering
from serried.diagnose.evidence.sign import CollectiveFacts, Sign
from serried.diagnose.evidence.text.pattern import Pattern, first_signs

_SIDE = re.compile(r"(?<![\w./\-])([\w./\-]{1,400}) \[(missing|ready) ranks: ([\d,\s]{1,4000})\]?")
_STALLED = re.compile(r"(?:^|:)\s*(\d{1,6}): \[([\w./\-]+)")
_LISTS = re.compile(r"Stalled ranks:|^Missing ranks:\s*$")
_TASK = re.compile(r"^\s*/job:\w+/replica:\d+/task:(\d{1,6})\s*$")
_BARRIER = re.compile(r"[Bb]arrier timed out\..*?(?:Barrier_id|Id): (\S+)")
_PATTERNS = (
    Pattern("silent", r"[Nn]o heartbeat for components|lack of heartbeats from"),
    Pattern("task_lost", r"Task /job:\w+/replica:\d+/task:(?P<rank>\d+) heartbeat timeout"),
    Pattern(
        "rendezvous",
        r"cluster registration failed|Id: \[Init\]Wait_for_all_tasks_to_register",
    ),
    Pattern(
        "hccl",
        r"has not received the Notify record from remote rank:? ?\[(?P<peer>\d+)\]|"
        r"Getting socket times? ?out|reason=\[(?:task|stream sync) timeout\]|"
        r"(?:error code is|runtime result =) (?:107020|507046|507048)\b|"
        r"hccl \w+ task timeout|Task from HCCL run failed|[Ss]tream sync(?:hronize)? timeout",
    ),
)
MOST_SIDES = 64
"""Calls of one line that are read; a warning may list each parameter of a model."""


class StallReport:
    """Follows lists that go over several lines."""

    def __init__(self) -> None:
        self._barrier: str | None = None
        self._lists_ranks = False

    def read(self, line: LogLine) -> Iterator[Sign]:
        """Yields a sign for each call or process that a line names."""
        yield from first_signs(_PATTERNS, line)
        for side in list(_SIDE.finditer(line.text))[:MOST_SIDES]:
            yield _stall(line, side[2], _ranks(side[3]), side[1])
        if _LISTS.search(line.text):
            self._lists_ranks = True
        elif self._lists_ranks and (found := _STALLED.search(line.quote.text)):
            yield _stall(line, "missing", (int(found[1]),), found[2])
        elif line.text.strip():
            self._lists_ranks = False
        if barrier := _BARRIER.search(line.text):
            self._barrier = barrier[1].rstrip(".")
        elif self._barrier and (task := _TASK.match(line.text)):
            speaker = replace(line.speaker, rank=int(task[1]), numbering=Numbering.GLOBAL)
            facts: dict[str, object] = {"barrier": self._barrier}
            yield Sign("task_absent", line.quote, speaker, line.time, facts=facts)


def _stall(line: LogLine, side: str, ranks: tuple[int, ...], name: str) -> Sign:
    facts: dict[str, object] = {side: ranks, "name": name}
    return Sign("stall", line.quote, line.speaker, line.time, CollectiveFacts(name), facts=facts)


def _ranks(text: str) -> tuple[int, ...]:
    return tuple(sorted({int(number) for number in re.findall(r"\d{1,9}", text)}))
