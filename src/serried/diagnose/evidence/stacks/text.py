"""Stacks as text: py-spy's, faulthandler's, and those of gdb and pstack.

    py-spy         Thread 3863 (idle): "MainThread"           send (torch/distributed/x.py:2753)
    faulthandler   Current thread 0x7f… (most recent call first):     File "x.py", line 9 in send
    gdb, pstack    Thread 1 (Thread 0x7f… (LWP 17) "python3"):        #0 0x7f… in poll () from …

>>> text = 'Thread 1 (idle): "MainThread"\\n    send (torch/x.py:9)\\n    train (train.py:124)\\n'
>>> [stack] = stacks_of(text, "pyspy_rank_2.txt")
>>> stack.is_main, [str(frame) for frame in stack.frames]
(True, ['send (torch/x.py:9)', 'train (train.py:124)'])
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from serried.diagnose.evidence.stacks.stack import Frame, ThreadStack

_THREAD = re.compile(
    r'^(?:Thread (?P<number>\S+) \((?P<state>idle|active|active\+gil)[^)]*\)(?:: "(?P<name>.*)")?'
    r"|(?P<current>Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\):"
    r"|Thread (?P<gdb>\d+) \((?:Thread 0x|LWP)[^)]*\)+.*:)"
)
_FRAMES = (
    re.compile(r'^\s+File "(?P<file>[^"]*)", line (?P<line>\d+) in (?P<function>.+)$'),
    re.compile(r"^\s+(?P<function>[^()#]\S*(?: \S+)*?) \((?P<file>[^():]+):(?P<line>\d+)\)$"),
    re.compile(
        r"^#\d+\s+(?:0x[0-9a-f]+ in )?(?P<function>[^(]+?) ?\(.*?\)"
        r"(?: (?:at (?P<file>[^:]+):(?P<line>\d+)|from (?P<library>\S+)))?\s*$"
    ),
    re.compile(r"^\s+(?P<function>[^()#]\S*) \((?P<file>[^():]+\.so[^()]*)\)$"),
)
_PROCESS_OF_MAIN = re.compile(r"\(LWP (\d{1,9})\)")
"""The number of a main thread, as Linux has it, is that of its process."""
_PREFIX = re.compile(r"^\[[A-Za-z]+\d*\]:\s?")
MOST_FRAMES = 200


def looks_like_stacks(head: str) -> bool:
    """Tells by a file's beginning whether it holds stacks."""
    return any(_THREAD.match(line) for line in head.splitlines())


def stacks_of(text: str, name: str) -> Iterator[ThreadStack]:
    """Yields the stacks of a text, thread by thread."""
    begun: re.Match[str] | None = None
    frames, lines, start, in_stack = list[Frame](), list[int](), 0, False
    for number, raw in enumerate(text.splitlines(), 1):
        line = _PREFIX.sub("", raw)
        if thread := _THREAD.match(line):
            if begun and frames:
                yield _stack(begun, frames, lines, name, start)
            begun, frames, lines, start, in_stack = thread, [], [], number, True
        elif in_stack and (frame := frame_of(line)):
            if len(frames) < MOST_FRAMES:
                frames.append(frame)
                lines.append(number)
        elif in_stack and not line.strip():
            in_stack = False
    if begun and frames:
        yield _stack(begun, frames, lines, name, start)


def _stack(
    thread: re.Match[str], frames: list[Frame], lines: list[int], name: str, start: int
) -> ThreadStack:
    is_main, is_active = _is_main(thread), _is_active(thread)
    return ThreadStack(tuple(frames), is_main, name, start, tuple(lines), is_active=is_active)


def breaks_off(text: str) -> bool:
    """Tells whether stacks end in the middle of a line, as where the job died while writing them.

    >>> breaks_off('Thread 1 (idle): "MainThread"\\n    send (torch/x.py:9)\\n    train (tra')
    True
    """
    last = text.rsplit("\n", 1)[-1]
    line = _PREFIX.sub("", last)
    return bool(last.strip()) and not _THREAD.match(line) and frame_of(line) is None


def main_stack(stacks: list[ThreadStack]) -> ThreadStack | None:
    """Returns the main thread's stack: named so, else the one that a module begins."""
    for stack in stacks:
        if stack.is_main:
            return stack
    of_module = [s for s in stacks if s.frames and s.frames[-1].function == "<module>"]
    return of_module[0] if of_module else stacks[0] if len(stacks) == 1 else None


class ThreadStart(NamedTuple):
    """Holds what the first line of a thread's stack tells."""

    is_main: bool
    """Whether it says that it is the main thread's."""
    process: int | None
    """The process, of a main thread whose number is told."""
    is_active: bool | None
    """Whether it ran when it was looked at, where that is told."""


def thread_start(line: str) -> ThreadStart | None:
    """Returns what a line tells that begins a thread's stack, None for one that begins none.

    >>> thread_start('Thread 1 (Thread 0x7f3a40 (LWP 17) "python3"):')
    ThreadStart(is_main=True, process=17, is_active=None)
    """
    if (thread := _THREAD.match(line)) is None:
        return None
    is_main = _is_main(thread)
    number = _PROCESS_OF_MAIN.search(line) if is_main else None
    return ThreadStart(is_main, int(number[1]) if number else None, _is_active(thread))


def _is_active(thread: re.Match[str]) -> bool | None:
    state = thread["state"]
    return state.startswith("active") if state else None


def _is_main(thread: re.Match[str]) -> bool:
    # gdb numbers threads in the order of their birth.
    return thread["name"] == "MainThread" or thread["gdb"] == "1"


def frame_of(line: str) -> Frame | None:
    """Returns the frame that a line of a stack shows, None where it shows none."""
    for pattern in _FRAMES:
        if found := pattern.match(line):
            parts = found.groupdict()
            file = parts.get("file") or parts.get("library") or ""
            return Frame(parts["function"].strip(), file, int(parts.get("line") or 0))
    return None
