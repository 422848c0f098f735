"""Python's tracebacks and the last lines of them, from processes whose lines are mixed.

A sign ``traceback`` says that one begins, for its end may be cut off. A sign ``exception`` holds
the exception with its message as ``text`` and these facts: ``name`` (its class without the
module), ``frames`` (tuples of file, line and function, outermost first) and ``is_chained``
(whether another exception came before it and led to it). A sign ``cut_traceback`` holds the frames
of one whose end never comes.

>>> from serried.diagnose.evidence.log_line import log_line
>>> tracebacks = Tracebacks()
>>> rows = ["[rank1]: Traceback (most recent call last):", "[rank0]: step 3",
...         '[rank1]:   File "train.py", line 9, in step', "[rank1]: ValueError: bad label"]
>>> signs = [s for n, row in enumerate(rows) for s in tracebacks.read(log_line(row, "x", n))]
>>> signs[-1].speaker.rank, signs[-1].text, signs[-1].facts["frames"]
(1, 'ValueError: bad label', (('train.py', 9, 'step'),))
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.quote import Numbering, Speaker
from serried.diagnose.evidence.sign import Sign

_BEGINS = "Traceback (most recent call last)"
_FRAME = re.compile(r'^\s*\|?\s*File "?([^"]+?)"?, line (\d+),? in (\S+)')
_BOXED = re.compile(r"^\s*[│|]?\s*(\S+\.py):(\d+) in (\S+)")
"""A frame as rich prints it, in a box."""
_NAMED = re.compile(
    r"^(?:[EF]\s+)?(?P<name>(?:[A-Za-z_]\w*\.)*(?:[A-Za-z_]\w*"
    r"(?:Error|Exception|Interrupt|Failure|Failed|Timeout|Exit|Killed|OutOfMemory|Warning)\w*|"
    r"(?:exc|exceptions?|errors?)\.[A-Z]\w*))"
    r"(?P<rest>:.*|\s*)$"
)
_INLINE = re.compile(
    r"(?:^|[\s\]:])(?P<name>(?:torch\.\w+\.|torch\.)?(?:OutOfMemoryError|DistBackendError|"
    r"DistStoreError|RuntimeError|ValueError|KeyError|TypeError|AssertionError|IndexError|"
    r"AttributeError|FileNotFoundError|ModuleNotFoundError|ImportError|OSError|"
    r"ZeroDivisionError|NotImplementedError|MemoryError|TimeoutError)): (?P<rest>.+)$"
)
_IN_TRACEBACK = re.compile(r"^(?P<name>(?:[A-Za-z_]\w*\.)*[A-Z]\w*)(?P<rest>: .*|:?)$")
_WHOSE = re.compile(r"\(RANK (\d{1,7})\)\s*$")
"""The rank whose traceback another repeats: checkpoints of torch gather those of all ranks."""
_CAUGHT = re.compile(r"Caught \w+ in ")
"""How torch repeats, in the rank, what a worker of its loader raised: what follows is that."""
_SPAWNED = re.compile(
    r"^\s*(?:-- Process (?P<local>\d+) terminated with the following error:|"
    r"\[Rank (?P<rank>\d+)\]:\s*$)"
)
"""What torch.multiprocessing and Ray Train say of a process before they repeat its traceback."""
_CHAINS = (
    "The above exception was the direct cause",
    "During handling of the above exception",
)
_IGNORED = "Exception ignored in"
_GOES_ON = ("Traceback", " ", "|", *_CHAINS)
_LEFT_OUT = " .…\n\t"
"""What a line is made of that people put where they left lines out."""
MOST_FRAMES = 60
MOST_OPEN = 4096
"""Tracebacks that are open at a time: one for each speaker of a job."""


@dataclass
class _Open:
    """Holds the traceback that a speaker is in."""

    is_open: bool = False
    is_chained: bool = False
    frames: list[tuple[str, int, str]] = field(default_factory=list)
    last: LogLine | None = None
    """The line of its last frame."""
    is_ignored: bool = False
    """Whether Python says that it passes over the exception, as in what it cleans up."""
    whose: int | None = None
    """The rank whose traceback the speaker repeats."""
    caught: Sign | None = None
    """An exception that only repeats one of another process, whose own words follow."""


class Tracebacks:
    """Follows the traceback of each speaker until the line that names the exception."""

    def __init__(self) -> None:
        self._open: dict[object, _Open] = {}

    def read(self, line: LogLine) -> Iterator[Sign]:
        """Yields a sign for a line that names an exception."""
        state = self._state(line)
        if _BEGINS in line.text:
            state.is_open, state.frames, state.last = True, [], line
            state.whose = int(named[1]) if (named := _WHOSE.search(line.text)) else None
            yield Sign("traceback", line.quote, line.speaker, line.time)
        elif line.text.startswith(_IGNORED):
            state.is_ignored = True
        elif any(each in line.text for each in _CHAINS):
            state.is_chained = True
        elif frame := _FRAME.match(line.text) or (state.is_open and _BOXED.match(line.text)):
            state.is_open, state.last = True, line
            if len(state.frames) < MOST_FRAMES:
                state.frames.append((frame[1], int(frame[2][:9]), frame[3]))
        elif sign := self._named(line, state):
            yield sign

    def cut(self) -> Iterator[Sign]:
        """Yields a sign ``cut_traceback`` for each traceback that breaks off before its end."""
        for state in self._open.values():
            if state.caught is not None:
                yield state.caught
            elif state.is_open and state.last is not None:
                line = state.last
                facts: dict[str, object] = {"frames": tuple(state.frames)}
                yield Sign("cut_traceback", line.quote, line.speaker, line.time, facts=facts)

    def _named(self, line: LogLine, state: _Open) -> Sign | None:
        text = line.text.strip() if line.text[:1] == "|" else line.text.rstrip()
        found = _NAMED.match(text) or (state.is_open and _IN_TRACEBACK.match(text))
        if not found:
            found = _INLINE.search(text)
        if not found:
            return None
        name, rest = found["name"], found["rest"].lstrip(": ").strip()
        if name.endswith("Warning"):
            return None
        facts: dict[str, object] = {
            "name": name.rsplit(".", 1)[-1],
            "frames": tuple(state.frames),
            "is_chained": state.is_chained,
        }
        speaker = line.speaker
        if state.whose is not None:
            speaker = replace(speaker, rank=state.whose, numbering=Numbering.GLOBAL)
        is_ignored, state.is_ignored = state.is_ignored, False
        state.is_open, state.is_chained, state.frames, state.whose = False, False, [], None
        if is_ignored:
            return None
        said = f"{facts['name']}: {rest}" if rest else str(facts["name"])
        sign = Sign("exception", line.quote, speaker, line.time, text=said, facts=facts)
        state.caught = sign if _CAUGHT.match(rest) else None
        return None if state.caught is not None else sign

    def _state(self, line: LogLine) -> _Open:
        speaker = line.speaker
        key = (line.quote.source, speaker.rank, speaker.numbering, speaker.host, speaker.pid)
        if len(self._open) > MOST_OPEN:
            self._open.clear()
        return self._open.setdefault(key, _Open())


class RepeatedTraceback:
    """Says whose a traceback is whose own lines name nobody: the first line before it does.

        -- Process 2 terminated with the following error:      torch.multiprocessing.spawn
        [Rank 2]:                                              Ray Train
        [2025-05-26 07:48:17 TP2] hit: Traceback (most …       a record that a program logs
        │ Traceback (most recent call last): ...
        │ ValueError: bad label                                as far as its exceptions go

    >>> from serried.diagnose.evidence.log_line import log_line
    >>> def ranks(first):
    ...     rows, repeated = [first, "ValueError: x", "", "end"], RepeatedTraceback()
    ...     return [repeated.own(log_line(row, "x", n)).speaker.rank for n, row in enumerate(rows)]
    >>> ranks("-- Process 2 terminated with the following error:")
    [2, 2, 2, None]
    >>> ranks("[07:48:17 TP2] hit: Traceback (most recent call last):")
    [2, 2, 2, None]
    """

    def __init__(self) -> None:
        self._speaker: Speaker | None = None
        self._is_named = False

    def own(self, line: LogLine) -> LogLine:
        """Returns a line with its rank, where it stands in such a traceback."""
        if found := _SPAWNED.match(line.text):
            rank = int((found["local"] or found["rank"])[:9])
            numbering = Numbering.LOCAL if found["local"] else Numbering.GLOBAL
            speaker = replace(line.speaker, rank=rank, numbering=numbering)
            self._speaker, self._is_named = speaker, False
        elif line.speaker.rank is not None:
            begins = line.text.find(_BEGINS) > 0
            self._speaker, self._is_named = (line.speaker if begins else None), False
        elif line.text.startswith(_CHAINS):
            self._is_named = False
        elif line.text.strip(_LEFT_OUT) and not line.text.startswith(_GOES_ON):
            if self._is_named:
                self._speaker = None
            self._is_named = True
        if self._speaker is None or line.speaker.rank is not None:
            return line
        return replace(line, speaker=self._speaker)
