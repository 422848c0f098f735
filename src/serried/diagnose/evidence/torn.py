"""Messages that something else tore apart: another process, a progress bar, a line of NCCL's.

    [rank3]:[E ...] [Rank 3] Watchdog caught ... WorkNCCL(Seq|
                                                             |[rank4]:[E ...] ... timing out.
    Num=7753, OpType=ALLREDUCE, ...) ran for 600061 milliseconds before timing out.

The message goes on behind what stands within it, on the same line or on the next one. It is put
together only where that gives one that is whole.

>>> from serried.diagnose.evidence.log_line import log_line
>>> row = "[rank{}]:[E ProcessGroupNCCL.cpp:607] [Rank {}] Watchdog caught collective operation " \\
...       "timeout: WorkNCCL(SeqNum=7, OpType=BARRIER) ran for 9 milliseconds before timing out."
>>> one, two = row.format(3, 3), row.format(4, 4)
>>> rows = [one[:99] + two, one[99:], one[:110] + "NCCL version 2.21.5+cuda12.4", one[110:]]
>>> whole = untorn(log_line(row, "x", number) for number, row in enumerate(rows, 1))
>>> [(line.speaker.rank, line.text[-11:]) for line in whole]
[(3, 'timing out.'), (4, 'timing out.'), (3, 'timing out.')]
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

from serried.diagnose.evidence.log_line import LogLine, log_line

_BEGINS = re.compile(
    r"\[rank\d+\]:|\[E(?:\d{3,4} [\d:.]+)? ProcessGroup\w+\.cpp:\d+\] |  what\(\):\s+\[|"
    r"RuntimeError: NCCL communicator was aborted"
)
_ENDS = re.compile(r"before timing out\.?")
_OP = r"_?(?:ALL|REDUCE|BROADCAST|GATHER|SCATTER|SEND|RECV|BARRIER|COALESCED|UNKNOWN)[A-Z_]*"
_FIGURE = r"(?:SeqNum|OpType|NumelIn|NumelOut|TensorShape|Timeout\(ms\))="
_WORK = rf"Work\w*\((?:{_FIGURE}(?:\[[\d, ]*\]|{_OP}|\d+)(?:, ?|(?=\))))+\)"
_COUNTS = r"last enqueued(?: NCCL)? work: -?\d+,(?: last started work: [^,]{1,60},)? last completed"
_WHOLE = re.compile(
    r"(?:\[PG (?:ID )?\w+(?: PG GUID \w+)? ?(?:\(\w+\) ?)?Rank \d+\] *)?"
    r"(?:Exception \(either an error or timeout\) |failure |Process group watchdog thread "
    r"terminated with exception: )?(?:\[Rank \d+\]:? )?(?:"
    rf"Watchdog caught collective operation timeout: {_WORK} ran for \d+ milliseconds before "
    rf"timing out|(?:Work |Collective ){_WORK} (?:timed out in blocking wait|raised the following)|"
    rf"detected by watchdog at work(?: sequence id)?: \d+(?:$|(?:,| PG status:) {_COUNTS})|"
    rf"Timeout at NCCL work: \d+, {_COUNTS}|"
    r"Timed out waiting \d+ms for (?:recv|send) operation to complete|"
    r"Ranks? \d+(?:, \d+)* failed to pass monitoredBarrier in \d+ ms|"
    r"Rank \d+ timed out in monitoredBarrier after \d+ ms|"
    r"Not all ranks joining collective, sequence number: \d+)"
)
"""A message that tells figures, from its group on where it begins with that."""
_OF_INTEREST = re.compile(
    r"atchdog|ProcessGroup|Work[A-Z]\w*\(|\[PG |Timed out|gloo/|\[Rank|Rank \d+ tim|Not all ranks"
)
_BAR = r"\d{1,3}%\|[^|]{0,400}\|\s*[\d.,kMG?]{1,20}/[\d.,kMG?]{1,20} ?\[[^\]]{3,200}\]"
"""A progress bar of tqdm's."""
_STRANGE = re.compile(
    rf"\s*{_BAR}|"
    r"(?:NCCL version \d[\w.+]*|([\w.\-]{1,60}):\d+:\d+ \[\d+\] NCCL (?:INFO|WARN) .*)$"
)
"""What is no part of a message, without a name that stands before a bar."""
_STRANGE_LINE = re.compile(rf"(?:[^|%\[\]]{{0,60}}:)?(?:{_STRANGE.pattern})")
_NAME = re.compile(r"[A-Z][\w .()/\-]{0,40}: *$")
MOST_NAMES = 12


def untorn(lines: Iterable[LogLine]) -> Iterator[LogLine]:
    """Yields lines, each message that another one tore apart as a line of its own."""
    coming = iter(lines)
    ahead: deque[LogLine] = deque()
    while True:
        line = ahead.popleft() if ahead else next(coming, None)
        if line is None:
            return
        if not _OF_INTEREST.search(line.text):
            yield line
            continue
        while len(ahead) < 2 and (following := next(coming, None)):
            ahead.append(following)
        whole, used = _by_process(line, ahead) or _by_stranger(line, ahead) or ((line,), 0)
        yield from whole
        for _ in range(used):
            ahead.popleft()


def _by_process(line: LogLine, ahead: deque[LogLine]) -> tuple[tuple[LogLine, ...], int] | None:
    """Returns the messages of two processes on one line, and how many more lines they take."""
    parts = _torn(line)
    if parts is None:
        return None
    head, inner, tail = parts
    used = 0 if tail.strip() else 1
    if used and not ahead:
        return None
    tail = ahead[0].text if used else tail
    if not _is_whole(head, tail):
        return None
    second = log_line(inner, line.quote.source, line.quote.line)
    return (replace(line, text=head + tail), replace(second, quote=line.quote)), used


def _torn(line: LogLine) -> tuple[str, str, str] | None:
    """Returns what stands before a second message, that message, and what follows it."""
    text = line.text
    begins = _BEGINS.search(text, 1) if "atchdog" in text else None
    ends = _ENDS.search(text, begins.end()) if begins else None
    if begins is None or ends is None or _WHOLE.search(text, 0, begins.start()):
        return None
    return text[: begins.start()], text[begins.start() : ends.end()], text[ends.end() :]


def _by_stranger(line: LogLine, ahead: deque[LogLine]) -> tuple[tuple[LogLine, ...], int] | None:
    """Returns a message without the bar or line of NCCL's within it, and how many lines it took."""
    if found := _STRANGE.search(line.text):
        name = found[1] or ""  # of a host, whose first letters may be the message's last
        head, tail = line.text[: found.start() + len(name)], line.text[found.end() :]
        used = 0 if tail.strip() else 1
    elif ahead and (found := _STRANGE_LINE.match(ahead[0].text)):
        name, head, tail = "", line.text, ahead[0].text[found.end() :]
        used = 1 if tail.strip() else 2
    else:
        return None
    if used > (1 if tail.strip() else len(ahead)):
        return None
    tail = tail if tail.strip() else ahead[used - 1].text
    for end in _heads(head, len(name)):
        if _is_whole(head[:end], tail):
            return (replace(line, text=head[:end] + tail),), used
    return None


def _heads(head: str, longest: int) -> Iterator[int]:
    """Yields where the name of a host or of a bar may begin, the shortest name first."""
    yield from range(len(head), len(head) - longest - 1, -1)
    begins = [n for n, letter in enumerate(head[-60:], max(len(head) - 60, 0)) if letter.isupper()]
    named = (n for n in reversed(begins) if _NAME.match(head, n))
    yield from (n for n, _ in zip(named, range(MOST_NAMES), strict=False))


def _is_whole(head: str, tail: str) -> bool:
    """Tells whether two parts are one message that is whole, and neither is so alone."""
    found = _WHOLE.search(head + tail)
    return found is not None and found.start() < len(head) < found.end()
