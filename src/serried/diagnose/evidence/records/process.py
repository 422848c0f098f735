"""The state of a process of this host, by its pid and when it began: a pid is given out again.

>>> import os
>>> state_of(os.getpid(), start_of(os.getpid()))
'R'
>>> state_of(os.getpid(), 1)
'gone'
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

GONE = "gone"
STOPPED = frozenset("Tt")
"""Letters of Linux for a process that is held by a signal, or by a debugger."""
DEAD = frozenset({GONE, "Z", "X"})


def start_of(pid: int) -> int:
    """Returns when a process began, in ticks since its host did; 0 where that is not told."""
    told = _told(pid)
    return int(told[19]) if len(told) > 19 and told[19].isdecimal() else 0


def state_of(pid: int, start: int) -> str:
    """Returns Linux's letter for a process that began at ``start``; ``gone`` where it is not."""
    told = _told(pid)
    if not told or (start and start_of(pid) != start):
        return GONE
    return told[0]


def holders_of(files: Iterable[Path]) -> dict[Path, int]:
    """Returns by file the process of this host that has it mapped, as a recorder has its record."""
    wanted = {str(file.resolve()): file for file in files}
    found: dict[Path, int] = {}
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):
            for line in maps.read_text(encoding="utf-8", errors="replace").splitlines():
                path = line[line.find("/") :] if "/" in line else ""
                if path in wanted:
                    found[wanted[path]] = int(maps.parent.name)
    return found


def _told(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    # The name in brackets may hold blanks and brackets of its own.
    return text.rpartition(")")[2].split()
