"""Ends and names local ranks that stay stopped, whatever the others wait for.

    state of rank 2   S R S T T T T T T     one stop, as long as the time-out: ended, and named
    state of rank 3   S T T S R S T S R     two stops, neither as long

Others may wait without a time-out for what a stopped rank has in its hands: the lock of the
store's file, the rest of a message to the parent, its own exit. So the parent looks at states.
Linux tells them in /proc; where there is none, no rank counts as stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

LOOK_S = 0.5
"""How often states are looked at."""
SWITCHES = ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")
"""What Linux counts each time a process goes on or is taken off its core."""


class StoppedRanks:
    """Watches the processes of ranks, in the order of ranks; more may come while it does."""

    def __init__(self, processes: Sequence[BaseProcess], timeout_s: float) -> None:
        self._processes = processes
        self._timeout_s = timeout_s
        self._ended: set[int] = set()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="stopped-ranks", daemon=True)

    def start(self) -> None:
        """Begins to watch, in a thread: the parent itself may wait for half a message."""
        self._thread.start()

    def end(self) -> None:
        """Watches no more."""
        self._is_over.set()
        self._thread.join()

    def ranks(self) -> list[int]:
        """Returns the ranks that were ended for a stop, and those that are stopped now."""
        now = {rank for rank, process in enumerate(self._processes) if stop_of(process.pid)}
        return sorted(self._ended | now)

    def _watch(self) -> None:
        """Counts the looks at one stop: its age would count a pause of the whole job, Ctrl+Z."""
        seen: dict[int, tuple[str, int]] = {}
        while not self._is_over.wait(LOOK_S):
            for rank, process in enumerate(self._processes):
                stop = stop_of(process.pid)
                # What tells a stop changes once the process runs again, so another stop is counted
                # anew.
                before, looks = seen.get(rank, ("", 0))
                looks = looks + 1 if stop and stop == before else 0
                seen[rank] = stop, looks
                if looks * LOOK_S >= self._timeout_s:
                    self._ended.add(rank)
                    process.kill()


def stop_of(pid: int | None) -> str:
    """Returns what tells one stop of a process from its others; "" where it is not stopped.

    That is its state and how often it was switched: neither changes before it runs again.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return ""  # it has gone
    told = dict(line.partition(":\t")[::2] for line in lines)
    if told.get("State", "gone")[0] not in "Tt":  # by a signal, by a debugger
        return ""
    return " ".join(told.get(name, "") for name in ("State", *SWITCHES))
