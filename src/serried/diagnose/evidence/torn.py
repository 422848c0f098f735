"""Messages of two processes on one line, where the second stands within the first.

    [rank3]:[E ...] [Rank 3] Watchdog caught ... WorkNCCL(Seq|
                                                             |[rank4]:[E ...] ... timing out.
    Num=7753, OpType=ALLREDUCE, ...) ran for 600061 milliseconds before timing out.

The first goes on behind the second, on the same line or on the next one. It is put together only
where that gives a time-out of the watchdog that is whole.

>>> from serried.diagnose.evidence.log_line import log_line
>>> row = "[rank{}]:[E ProcessGroupNCCL.cpp:607] [Rank {}] Watchdog caught collective operation " \\
...       "timeout: WorkNCCL(SeqNum=7, OpType=BARRIER) ran for 9 milliseconds before timing out."
>>> one, two = row.format(3, 3), row.format(4, 4)
>>> rows = [one[:99] + two, one[99:]]
>>> whole = untorn(log_line(row, "x", number) for number, row in enumerate(rows, 1))
>>> [(line.speaker.rank, line.text[-11:]) for line in whole]
[(3, 'timing out.'), (4, 'timing out.')]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from serried.diagnose.evidence.log_line import LogLine, log_line

_BEGINS = re.compile(
    r"\[rank\d+\]:|\[E(?:\d{3,4} [\d:.]+)? ProcessGroup\w+\.cpp:\d+\] |  what\(\):\s+\[|"
    r"RuntimeError: NCCL communicator was aborted"
)
_ENDS = re.compile(r"before timing out\.?")
_WHOLE = re.compile(
    r"Watchdog caught collective operation timeout: Work\w*\([^()]*(?:\(ms\)[^()]*)?\) "
    r"ran for \d+ milliseconds before timing out"
)


def untorn(lines: Iterable[LogLine]) -> Iterator[LogLine]:
    """Yields lines, each message that another one tore apart as a line of its own."""
    coming = iter(lines)
    for line in coming:
        parts = _torn(line)
        if parts is None:
            yield line
            continue
        head, inner, tail = parts
        if tail.strip():
            yield from _put_together(line, head, inner, tail) or (line,)
            continue
        following = next(coming, None)
        if following is None:
            yield line
        else:
            yield from _put_together(line, head, inner, following.text) or (line, following)


def _torn(line: LogLine) -> tuple[str, str, str] | None:
    """Returns what stands before a second message, that message, and what follows it."""
    text = line.text
    begins = _BEGINS.search(text, 1) if "atchdog" in text else None
    ends = _ENDS.search(text, begins.end()) if begins else None
    if begins is None or ends is None or _WHOLE.search(text, 0, begins.start()):
        return None
    return text[: begins.start()], text[begins.start() : ends.end()], text[ends.end() :]


def _put_together(
    line: LogLine, head: str, inner: str, tail: str
) -> tuple[LogLine, LogLine] | None:
    whole = _WHOLE.search(head + tail)
    if whole is None or not whole.start() < len(head) < whole.end():
        return None
    second = log_line(inner, line.quote.source, line.quote.line)
    return replace(line, text=head + tail), replace(second, quote=line.quote)
