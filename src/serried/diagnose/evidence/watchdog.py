"""What torch's NCCL watchdog prints: the collective that timed out, with its figures.

>>> from serried.diagnose.evidence.log_line import log_line
>>> raw = (
...     "[rank4]:[E1206 ProcessGroupNCCL.cpp:607] [Rank 4] Watchdog caught collective operation "
...     "timeout: WorkNCCL(SeqNum=7753, OpType=_REDUCE_SCATTER_BASE, NumelIn=544997376, "
...     "NumelOut=68124672, Timeout(ms)=600000) ran for 600099 milliseconds before timing out."
... )
>>> [sign] = timeouts(log_line(raw, "job.log", 1))
>>> sign.speaker.rank, sign.collective.op, sign.collective.seq
(4, '_REDUCE_SCATTER_BASE', 7753)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.sign import CollectiveFacts, Sign

_WORK = re.compile(
    r"WorkNCCL\((?:SeqNum=(?P<seq>\d+), )?OpType=(?P<op>\w+)"
    r"(?:, NumelIn=(?P<numel_in>\d+))?(?:, NumelOut=(?P<numel_out>\d+))?"
    r"(?:, Timeout\(ms\)=(?P<timeout_ms>\d+))?"
)
_RAN = re.compile(r"ran for (\d+) milliseconds")


def timeouts(line: LogLine) -> Iterator[Sign]:
    """Yields a sign ``timeout`` for a collective that the watchdog gave up."""
    work = _WORK.search(line.text)
    if not work:
        return
    ran = _RAN.search(line.text)
    facts = CollectiveFacts(
        work["op"],
        seq=_number(work["seq"]),
        numel_in=_number(work["numel_in"]),
        numel_out=_number(work["numel_out"]),
        timeout_ms=_number(work["timeout_ms"]),
        ran_ms=int(ran[1]) if ran else None,
    )
    yield Sign("timeout", line.quote, line.speaker, collective=facts)


def _number(text: str | None) -> int | None:
    return int(text) if text else None
