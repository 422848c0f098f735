"""Stacks that Python itself prints into logs: faulthandler's, at a signal, a limit or a crash.

    [default1]:Current thread 0x00007ff2 (most recent call first):
    [default1]:  File "torch/distributed/distributed_c10d.py", line 5356 in barrier
    [default1]:  File "train.py", line 76 in main
    [default1]:  File "train.py", line 80 in <module>

>>> from serried.diagnose.evidence.log_line import log_line
>>> text = ("Current thread 0x1 (most recent call first):", '  File "a.py", line 9 in <module>')
>>> stacks = StacksInLog()
>>> for number, each in enumerate(text, 1):
...     stacks.read(log_line("[rank1]: " + each, "job.log", number))
>>> [(sign.speaker.rank, str(sign.facts["stack"].frames[0])) for sign in stacks.signs()]
[(1, '<module> (a.py:9)')]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.quote import Quote, Speaker
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.stacks.stack import Frame, ThreadStack
from serried.diagnose.evidence.stacks.text import MOST_FRAMES

KIND = "stack"
_BEGINS = re.compile(r"\s*(?:Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\):")
_FRAME = re.compile(r'\s*File "([^"]*)", line (\d{1,9}) in (.+)$')
_OUTERMOST = "<module>"
"""What a main thread's stack ends in."""
_WORKER = "torch/utils/data/_utils/worker.py"
"""What the stacks of a data loader's workers go through, which print into the log of their rank."""


@dataclass
class _Open:
    """Collects one thread's stack."""

    quote: Quote
    frames: list[Frame] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


class StacksInLog:
    """Collects the last stack of each main thread, from lines of several ranks that are mixed."""

    def __init__(self) -> None:
        self._open: dict[Speaker, _Open] = {}
        self._last: dict[Speaker, _Open] = {}

    def read(self, line: LogLine) -> None:
        """Takes in one line of a log."""
        if _BEGINS.match(line.text):
            self._open[line.speaker] = _Open(line.quote)
        elif (begun := self._open.get(line.speaker)) is None:
            return
        elif found := _FRAME.match(line.text):
            if len(begun.frames) < MOST_FRAMES:
                begun.frames.append(Frame(found[3].strip(), found[1], int(found[2])))
                begun.lines.append(line.quote.line)
            if found[3].strip() == _OUTERMOST:
                self._close(line.speaker)
        else:
            del self._open[line.speaker]

    def _close(self, speaker: Speaker) -> None:
        whole = self._open.pop(speaker)
        if not any(_WORKER in frame.file for frame in whole.frames):
            self._last[speaker] = whole

    def signs(self) -> Iterator[Sign]:
        """Yields a sign with the last stack of each speaker that printed its main thread's."""
        for speaker, each in self._last.items():
            quote = each.quote
            stack = ThreadStack(
                tuple(each.frames), True, quote.source, quote.line, tuple(each.lines)
            )
            yield Sign(KIND, quote, speaker, facts={"stack": stack})
