"""The process that a watch goes with: a watch which a job started itself ends after it.

    rank 0  ──────────────────x                  the process ends, killed or not
    watch   ─────────────────────── leave_s ──x  nothing goes on any more: the watch ends

The other ranks may end later, and what is seen last should still be fetched.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from serried.diagnose.evidence.records.process import DEAD, start_of, state_of
from serried.errors import InputError

LEAVE_S = 5.0
"""How long a job may do nothing, once the process has ended, before the watch ends."""


@dataclass
class Lifetime:
    """Follows a process of this host.

    >>> import os
    >>> Lifetime(os.getpid()).is_over(now=100.0, moved_at=0.0)
    False
    """

    pid: int
    leave_s: float = LEAVE_S
    _start: int = field(init=False)
    _ended_at: float | None = None

    def __post_init__(self) -> None:
        """Raises InputError where there is no such process."""
        if self.pid < 1 or not _lives(self.pid, 0):
            raise InputError(
                "--pid {pid} is no process of this machine; it takes the id of one that runs",
                pid=self.pid,
            )
        self._start = start_of(self.pid)

    def is_over(self, now: float, moved_at: float) -> bool:
        """Tells whether it has ended, and the job has done nothing since for ``leave_s``.

        ``now``, and ``moved_at``, when the job last went on, are seconds since 1970.
        """
        if self._ended_at is None and not _lives(self.pid, self._start):
            self._ended_at = now
        return self._ended_at is not None and now - max(self._ended_at, moved_at) >= self.leave_s


def _lives(pid: int, start: int) -> bool:
    if Path("/proc/self/stat").exists():
        return state_of(pid, start) not in DEAD
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
