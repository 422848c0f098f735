"""Which steps of a running job are recorded: those asked for, or those asked for since.

    echo 500:520 > runs/a/steps        the file in the folder: steps 500 to 519, on every rank
    kill -USR2 PID                     of any rank, under SERRIED_TRACE_SIGNAL=USR2:20: its
                                       process writes that file, for 20 steps from the next but
                                       two on

Every rank looks at the file's time as a step begins, a matter of 2 us. Ranks are at most a step
apart where each step waits for the others (on a GPU: for the device, somewhere); so all of them
see a window before it begins that lies two steps ahead. A signal while a window is open or waits
is for that same window, so that all ranks may get one.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from serried.errors import InputError

SIGNAL = "SERRIED_TRACE_SIGNAL"
WINDOW_FILE = "steps"
"""Name of the file in the folder that moves the window: first step, colon, step to stop at."""

AHEAD = 3
"""How many steps after the one that a signal is seen in the window begins."""
_STEPS = 10
_log = logging.getLogger("serried")

Steps = tuple[int, int]


class StepWindow:
    """Says which steps are recorded into one folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / WINDOW_FILE
        self._place = str(self._path)
        self._seen = (0, 0)
        self._moved: Steps | None = None
        self._signal = WindowSignal.asked_for()

    def holds(self, step: int, asked: Steps | None) -> bool:
        """Tells whether ``step`` is recorded: by the file, else ``asked``.

        Where that is None all steps are, or where a signal is listened to none before it comes.
        """
        self._look()
        if self._signal and self._signal.has_come():
            self._open(step + AHEAD, self._signal.num_steps)
        steps = self._moved or asked
        if steps is None:
            return self._signal is None
        return steps[0] <= step < steps[1]

    def goes_on(self, step: int, asked: Steps) -> bool:
        """Tells whether the step after ``step`` is recorded, by what is known now."""
        start, stop = self._moved or asked
        return start <= step + 1 < stop

    def close(self) -> None:
        """Gives the signal back."""
        if self._signal:
            self._signal.give_back()

    def _look(self) -> None:
        """Reads the file where it is new; mostly there is none, and no error is made of that."""
        if not os.access(self._place, os.F_OK):
            return
        try:
            status = self._path.stat()
            seen = (status.st_mtime_ns, status.st_ino)
            if seen != self._seen:
                start, _, stop = self._path.read_text(encoding="utf-8").partition(":")
                self._moved, self._seen = (int(start), int(stop)), seen
        except (OSError, ValueError):
            pass  # none there, or half written: what was asked before holds

    def _open(self, start: int, num_steps: int) -> None:
        """Writes the window for all ranks, unless one is open or waits."""
        if self._moved and self._moved[1] > start - AHEAD:
            return
        # Other ranks look at the file at any time, so it comes into place whole, by a rename.
        part = self._path.with_name(f"{WINDOW_FILE}.{os.getpid()}")
        try:
            part.write_text(f"{start}:{start + num_steps}", encoding="utf-8")
            part.replace(self._path)
        except OSError as error:
            _log.warning("%s cannot be written: %s", self._path, error.strerror)
            with suppress(OSError):
                part.unlink(missing_ok=True)
        self._look()


class WindowSignal:
    """Listens to a signal that its user chose; an earlier handler of it still gets its turn."""

    def __init__(self, number: signal.Signals, num_steps: int) -> None:
        self.num_steps = num_steps
        self._number = number
        self._has_come = False
        self._before: Any = signal.signal(number, self._hear)

    @classmethod
    def asked_for(cls) -> WindowSignal | None:
        """Returns the signal that the environment asks for; raises InputError for what is none."""
        text = os.environ.get(SIGNAL, "")
        if not text:
            return None
        # USR2, SIGUSR2 and USR2:20 are all taken.
        name, _, steps = text.partition(":")
        number = getattr(signal, f"SIG{name.removeprefix('SIG')}", None)
        has_steps = not steps or (steps.isdecimal() and int(steps) > 0)
        if not isinstance(number, signal.Signals) or number in _UNCATCHABLE or not has_steps:
            raise InputError(
                "{variable}={text} names no signal that can be caught; give one such as USR2, or "
                "USR2:20 for 20 steps",
                variable=SIGNAL,
                text=text,
            )
        # Python lets only the main thread set a signal's handler.
        if threading.current_thread() is not threading.main_thread():
            _log.warning("%s is not heard: only the main thread can listen to a signal", SIGNAL)
            return None
        return cls(number, int(steps or _STEPS))

    def has_come(self) -> bool:
        """Tells whether the signal came since this was last asked."""
        has_come, self._has_come = self._has_come, False
        return has_come

    def give_back(self) -> None:
        """Gives the signal back to who had it, unless another has taken it since."""
        if signal.getsignal(self._number) == self._hear:
            signal.signal(self._number, self._before or signal.SIG_DFL)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._has_come = True
        if callable(self._before):
            self._before(number, frame)


_UNCATCHABLE = (signal.SIGKILL, signal.SIGSTOP)
