"""What a guard left of one rank, read together: its file, stacks, failure, and its neighbours.

    rank-00003.guard  .stacks  .failed  .neighbours      ──>  GuardedRank

What lies beside the guard's file is text of its own process and may be cut off; what cannot be read
of it is as if it were not there. Of stacks that are cut off nobody knows what the last one was, nor
that there was none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from serried.diagnose.evidence.quote import Quote
from serried.diagnose.evidence.records.guard_file import SUFFIX, GuardFile, read_guard_file
from serried.diagnose.evidence.stacks.stack import Frame, ThreadStack
from serried.errors import InputError
from serried.finding import said
from serried.user_file import read_text

STACKS_SUFFIX, FAILED_SUFFIX, NEIGHBOURS_SUFFIX = ".stacks", ".failed", ".neighbours"
BESIDE = (STACKS_SUFFIX, FAILED_SUFFIX, NEIGHBOURS_SUFFIX)
WENT_ON = "the rank went on"
"""What a line below stacks says once they tell no more where the rank stands."""
THREAD_ENDED = "a thread ended by"
"""What a line above stacks says of an exception that ended a thread other than the main one."""
_MOST_BYTES = 4 << 20

_THREAD = re.compile(r"^(Current thread|Thread) 0x([0-9a-fA-F]+)")
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')
_FAILED_AT = re.compile(r"^# .*wall_ns (\d{1,19})$")
_NAMES = re.compile(r"^[A-Za-z_][\w.]*(: .*)?$")
_WENT_ON = re.compile(rf"^# \S+ {WENT_ON}$")
_THREAD_ENDED = re.compile(rf"^# \S+ {THREAD_ENDED} ")
_BY_WATCH = re.compile(r"^(?:# |Timeout \()")
_FATAL = re.compile(r"^Fatal Python error: (.*)$")


@dataclass(frozen=True)
class StackFrame:
    """Holds one frame of a stack that was left."""

    function: str
    file: str
    line: int


@dataclass(frozen=True)
class LeftStack:
    """Holds the main thread's stack as it was left last."""

    frames: tuple[StackFrame, ...] = ()
    """Innermost first."""
    line: int = 0
    """The line of the file at which it begins."""
    by_signal: bool = False
    """Whether a signal had it written, whichever thread that came to, and not the watch."""
    fatal: Quote | None = None
    """What Python said of a signal that ended the process, such as a segmentation fault."""
    thread: Quote | None = None
    """What ended a thread other than the main one, and with it perhaps what the rank waits for."""
    is_cut_off: bool = False
    """Whether the file ends within a line: what was left last is not there, or not whole."""

    def as_thread(self, source: str) -> ThreadStack:
        """Returns it as stacks of any other source are."""
        frames = tuple(Frame(each.function, each.file, each.line) for each in self.frames)
        return ThreadStack(frames, is_main=True, source=source, line=self.line)


@dataclass(frozen=True)
class LeftFailure:
    """Holds the exception that ended a rank; its whole text is read as a log's is."""

    wall_ns: int
    quote: Quote


@dataclass(frozen=True, eq=False)
class GuardedRank:
    """Holds all that a guard left of one rank."""

    source: str
    """The name of its file."""
    file: GuardFile
    stack: LeftStack = LeftStack()
    failure: LeftFailure | None = None
    neighbours: Mapping[int, str] | None = None
    """Linux's letters for the states of other ranks of its host, or ``gone``."""
    neighbours_ns: int = 0
    """The wall time at which it looked at them."""

    @property
    def rank(self) -> int:
        """The global rank."""
        return self.file.rank

    @property
    def stacks_name(self) -> str:
        """The name of the file of its stacks."""
        return self.source.removesuffix(SUFFIX) + STACKS_SUFFIX


def read_guarded_rank(path: Path) -> GuardedRank:
    """Reads what lies under the name of one guard's file.

    Raises InputError when that file itself cannot be read.
    """
    file = read_guard_file(path)
    neighbours, at_ns = _neighbours(path.with_suffix(NEIGHBOURS_SUFFIX))
    return GuardedRank(
        path.name,
        file,
        stack=_stack(path.with_suffix(STACKS_SUFFIX), file.header.main_thread),
        failure=_failure(path.with_suffix(FAILED_SUFFIX)),
        neighbours=neighbours,
        neighbours_ns=at_ns,
    )


def _text(path: Path) -> str:
    try:
        return read_text(path, _MOST_BYTES, said("what a guard left")) if path.is_file() else ""
    except InputError:
        return ""


def _stack(path: Path, main_thread: int) -> LeftStack:
    """Returns the last stack of the main thread; the others are of the guard and of torch."""
    found = LeftStack()
    frames: list[StackFrame] | None = None
    by_signal = False
    text = _text(path)
    lines = text.splitlines()
    for number, (line, before) in enumerate(zip(lines, ["", *lines], strict=False), 1):
        if match := _THREAD.match(line):
            # A blank line parts the threads of one dump. Only the watch says above its dumps why.
            if before or number == 1:
                by_signal = not _BY_WATCH.match(before)
            frames = [] if int(match[2], 16) == main_thread else None
            if frames is not None:
                found = replace(found, frames=(), line=number, by_signal=by_signal)
        elif frames is not None and (match := _FRAME.match(line)):
            frames.append(StackFrame(match[3], match[1], int(match[2])))
            found = replace(found, frames=tuple(frames))
        elif _WENT_ON.match(line):
            found, frames = LeftStack(fatal=found.fatal, thread=found.thread), None
        elif _THREAD_ENDED.match(line):
            found = replace(found, thread=Quote(path.name, number, line))
        elif _FATAL.match(line):
            found = replace(found, fatal=Quote(path.name, number, line))
    if text and not text.endswith("\n"):
        # An older stack would stand for where the rank is no longer.
        return LeftStack(fatal=found.fatal, thread=found.thread, is_cut_off=True)
    return found


def _failure(path: Path) -> LeftFailure | None:
    lines = _text(path).splitlines()
    at = _FAILED_AT.search(lines[0]) if lines else None
    if at is None:
        return None
    # The last line that begins at the margin names the exception; its message may go on below.
    named = [n for n, line in enumerate(lines, 1) if _NAMES.match(line)]
    number = named[-1] if named else len(lines)
    return LeftFailure(int(at[1]), Quote(path.name, number, lines[number - 1]))


def _neighbours(path: Path) -> tuple[Mapping[int, str] | None, int]:
    told = _told(path)
    states, at_ns = told.get("states"), told.get("wall_ns")
    if not isinstance(states, dict):
        return None, 0
    letters = {int(rank): str(state) for rank, state in states.items() if str(rank).isdecimal()}
    return letters, at_ns if isinstance(at_ns, int) else 0


def _told(path: Path) -> dict[str, object]:
    try:
        told = json.loads(_text(path) or "{}")
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
