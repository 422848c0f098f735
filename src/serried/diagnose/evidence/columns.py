"""Messages that a logger laid out in columns, put together again.

    [10/12/26 10:00:00] ERROR    Watchdog caught collective           train.py:210
                                 operation timeout: WorkNCCL(SeqNum=7

The message is broken between words within its column (rich's RichHandler); the file and line at
the right are the logger's.

>>> rows = [b"[10/12/26 10:00:00] ERROR    Watchdog caught collective  train.py:210",
...         b" " * 29 + b"operation timeout", b"step 3"]
>>> [(place, text[-27:]) for place, text in uncolumned(enumerate(rows))]
[(0, b'ollective operation timeout'), (2, b'step 3')]
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_HEAD = re.compile(rb"(?:\[[\d/\-: T.]{5,26}\]|\s{7,28}) (?:DEBUG|INFO|WARNING|ERROR|CRITICAL) +")
_PLACE = re.compile(rb"\s+[\w.\-]{1,80}\.py:\d{1,6}\s*$")
MOST_PARTS = 60


def uncolumned(rows: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Returns lines with what a column broke off them, each with the place of its first part."""
    whole: list[tuple[int, bytes]] = []
    column = width = parts = 0
    for place, line in rows:
        if head := _HEAD.match(line):
            end = _PLACE.search(line, head.end())
            column, width, parts = head.end(), (end.start() if end else 0) - head.end(), 1
            whole.append((place, line[: end.start()] if end else line))
        elif column and parts < MOST_PARTS and _goes_on(line, column):
            first, text = whole[-1]
            parts += 1
            whole[-1] = (first, _joined(text, line[column:].rstrip(), width))
        else:
            column = 0
            whole.append((place, line))
    return whole


def _goes_on(line: bytes, column: int) -> bool:
    return len(line) > column and not line[:column].strip() and bool(line[column:].strip())


def _joined(text: bytes, more: bytes, width: int) -> bytes:
    """Returns a text with what follows, without a space within a word longer than its column."""
    is_within = len(text.rsplit(b" ", 1)[-1]) + len(more.split(b" ", 1)[0]) > width > 0
    return text + more if is_within else text.rstrip() + b" " + more
