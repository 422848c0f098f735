"""Stacks that stand in logs: those that Python prints itself, and those that somebody put there.

    [default1]:Current thread 0x00007ff2 (most recent call first):         faulthandler's, at a
    [default1]:  File "torch/distributed/x.py", line 5356 in barrier       signal, a limit, a crash
    [default1]:  File "train.py", line 80 in <module>

    Process 4242: python train.py                                          py-spy's, and gdb's
    Thread 4242 (idle): "MainThread"                                       alike; whose they are
        barrier (torch/distributed/x.py:5356)                              their lines tell, or
        <module> (train.py:80)                                             the process

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
from dataclasses import dataclass, field, replace

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.quote import Quote, Speaker
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.stacks.stack import Frame, ThreadStack
from serried.diagnose.evidence.stacks.text import MOST_FRAMES, ThreadStart, frame_of, thread_start

KIND = "stack"
_PROCESS = re.compile(r"\s*Process (\d{1,9}): \S")
"""What py-spy prints above the threads of a process."""
_WITHIN = " " * 8
"""What local variables stand behind, which py-spy prints below a frame."""
_OUTERMOST = "<module>"
"""What a main thread's stack ends in."""
_WORKER = "torch/utils/data/_utils/worker.py"
"""What the stacks of a data loader's workers go through, which print into the log of their rank."""


@dataclass
class _Open:
    """Collects one thread's stack, and whose it is."""

    quote: Quote
    speaker: Speaker
    is_main: bool
    """Whether its first line says so; else it is by where it ends."""
    is_active: bool | None = None
    frames: list[Frame] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


def is_by_python(first: str) -> bool:
    """Tells by a stack's first line whether Python printed it of itself, as it does at a crash."""
    return "(most recent call first):" in first


class StacksInLog:
    """Collects the last stack of each main thread, from lines of several ranks that are mixed."""

    def __init__(self) -> None:
        self._open: dict[Speaker, _Open] = {}
        self._last: dict[Speaker, _Open] = {}
        self._process: dict[Speaker, int] = {}
        """The process whose threads come next, of those who print them."""

    def read(self, line: LogLine) -> None:
        """Takes in one line of a log."""
        if thread := thread_start(line.text.lstrip()):
            self._interrupt(line.speaker)
            self._begin(line, thread)
        elif begun := self._open.get(line.speaker):
            text = line.text.strip()
            if frame := frame_of(text) or frame_of(" " + text):
                self._add(begun, frame, line)
            elif not line.text.startswith(_WITHIN):
                self._interrupt(line.speaker)
        if process := _PROCESS.match(line.text):
            self._process[line.speaker] = int(process[1])

    def _begin(self, line: LogLine, thread: ThreadStart) -> None:
        # py-spy alone says whether a thread runs; "Process 3: ..." of a program is no heading.
        above = self._process.get(line.speaker) if thread.is_active is not None else None
        process = thread.process or above
        whose = replace(line.speaker, pid=process) if process else line.speaker
        self._open[line.speaker] = _Open(line.quote, whose, thread.is_main, thread.is_active)

    def _add(self, begun: _Open, frame: Frame, line: LogLine) -> None:
        if len(begun.frames) < MOST_FRAMES:
            begun.frames.append(frame)
            begun.lines.append(line.quote.line)
        if frame.function == _OUTERMOST:
            begun.is_main = True
            self._interrupt(line.speaker)

    def _interrupt(self, speaker: Speaker) -> None:
        """Ends the stack that a speaker was printing; that of another thread is let go."""
        whole = self._open.pop(speaker, None)
        if whole is None or not whole.is_main or not whole.frames:
            return
        if not any(_WORKER in frame.file for frame in whole.frames):
            self._last[whole.speaker] = whole

    def signs(self) -> Iterator[Sign]:
        """Yields a sign with the last stack of each speaker that printed its main thread's."""
        for speaker in list(self._open):
            self._interrupt(speaker)
        for speaker, each in self._last.items():
            quote = each.quote
            stack = ThreadStack(
                tuple(each.frames),
                True,
                quote.source,
                quote.line,
                tuple(each.lines),
                is_active=each.is_active,
            )
            yield Sign(KIND, quote, speaker, facts={"stack": stack})
