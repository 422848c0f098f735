"""A thread's stack: frames with their places, the innermost first, and whose they are.

>>> Frame("train", "train.py", 124).is_users
True
>>> Frame("send", "torch/distributed/distributed_c10d.py", 2753).is_users
False
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NOT_THE_USERS = re.compile(
    r"(^|/)(site-packages|dist-packages|lib(64)?/python\d[^/]*|lib|torch|megatron|deepspeed)/"
    r"|(^|/)serried/runtime/"
    r"|^(threading|queue|selectors|socket|subprocess|runpy|contextlib|multiprocessing/.*)\.py$"
    r"|^<"
)


@dataclass(frozen=True)
class Frame:
    """Holds one frame of a stack."""

    function: str
    file: str = ""
    line: int = 0

    @property
    def is_users(self) -> bool:
        """Whether it is neither Python's own code nor of an installed package or a C library."""
        return self.file.endswith(".py") and not _NOT_THE_USERS.search(self.file)

    def __str__(self) -> str:
        return f"{self.function} ({self.file}:{self.line})" if self.file else self.function


@dataclass(frozen=True)
class ThreadStack:
    """Holds the stack of one thread."""

    frames: tuple[Frame, ...]
    """The innermost first."""
    is_main: bool
    source: str
    line: int
    """Where it begins in its file, counted from 1."""
    lines: tuple[int, ...] = ()
    """Where each frame stands there, as far as that is known."""
    is_active: bool | None = None
    """Whether it ran on a processor when it was taken; None where nothing tells, as elsewhere
    than in py-spy's stacks."""

    def line_of(self, place: int) -> int:
        """Returns the line of a frame, by its place from the innermost on."""
        return self.lines[place] if place < len(self.lines) else self.line
