"""Messages that torch marks as information: what they mention is no failure, however it sounds.

    [I628 20:15:42 ProcessGroupNCCL.cpp:1501] [PG  Rank 1] main process destroyed cuda before ...
    CUDA kernel errors might be asynchronously reported ...        ┐ belong to it: they have
    frame #0: c10::Error::Error(...)                               ┘ no heading of their own

>>> from serried.diagnose.evidence.log_line import log_line
>>> asides = Asides()
>>> rows = "[I628 ProcessGroupNCCL.cpp:9] caught: CUDA error: x", "frame #0: c10::x", "step 3"
>>> [asides.holds(log_line(row, "x", n)) for n, row in enumerate(rows)]
[True, True, False]
"""

from __future__ import annotations

import re

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.text.progress import PROGRESS_KINDS

_INFORMS = re.compile(r"\s*\[I(?:\d{3,4})? (?:[\d:.]+ )?(?:\d+ )?\w+\.cpp:\d+\]")
_GOES_ON = re.compile(
    r"CUDA kernel errors might|For debugging consider|Compile with `|Device-side assert|"
    r"Exception raised from|frame #\d+|$"
)
KEPT = PROGRESS_KINDS | {"status", "dump_signal", "nccl_call", "actions"}
"""Signs of such messages that count: they tell of calls and of work, not of failures."""


class Asides:
    """Tells which lines belong to a message of information."""

    def __init__(self) -> None:
        self._is_inside = False

    def holds(self, line: LogLine) -> bool:
        """Tells whether a line begins such a message or goes on with it."""
        begins = _INFORMS.match(line.text) is not None
        self._is_inside = begins or (self._is_inside and _GOES_ON.match(line.text) is not None)
        return self._is_inside
