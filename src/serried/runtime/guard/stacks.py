"""Stacks of all threads, written by C while nobody needs the interpreter: ``faulthandler``.

    SIGUSR1, SIGTERM          stacks, then what the signal did before
    a crash                   stacks (SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL)
    the watch says so         stacks
    the watch itself is held  stacks: a thread of C counts, which no lock of the interpreter stops
    the rank goes on          a line that says so: the stacks above it are of an earlier standstill

The file is open from the start and is written to its bound and no further.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import time
from contextlib import suppress
from io import FileIO
from pathlib import Path

from serried.diagnose.evidence.records.left import WENT_ON

MOST_BYTES = 1 << 20
"""What is written into a rank's file of stacks; one of fifty threads takes some 60 kB."""
SUFFIX = ".stacks"


class Stacks:
    """Owns the file of one rank's stacks and all that writes into it."""

    def __init__(self, path: Path, numbers: tuple[signal.Signals, ...]) -> None:
        """Opens the file; raises OSError where that cannot be."""
        self._file: FileIO = path.open("wb", buffering=0)
        self._signals: list[signal.Signals] = []
        self._forking = threading.Lock()
        self._outdated_bytes = 0
        self._holds_crashes = not faulthandler.is_enabled()
        # A program that asked for its own crash stacks, on stderr, keeps them there.
        if self._holds_crashes:
            faulthandler.enable(self._file, all_threads=True)
        for number in numbers:
            self._register(number)

    @property
    def size_bytes(self) -> int:
        """How much has been written, by signals too."""
        return os.fstat(self._file.fileno()).st_size if not self._file.closed else 0

    def write(self, why: str) -> None:
        """Writes all threads' stacks below a line that says why."""
        if self._file.closed or self.size_bytes > MOST_BYTES:
            return
        with suppress(OSError, ValueError):
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            self._file.write(f"# {at} {why}\n".encode())
            faulthandler.dump_traceback(self._file, all_threads=True)

    def outdate(self, size_bytes: int) -> int:
        """Says below what stood in the first ``size_bytes`` that the rank went on after it.

        Returns how many bytes that took: none where it was said before.
        """
        if size_bytes <= self._outdated_bytes or self._file.closed:
            return 0
        written = 0
        with suppress(OSError, ValueError):
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            written = self._file.write(f"# {at} {WENT_ON}\n".encode())
            self._outdated_bytes = self.size_bytes
        return written

    def unless_called_within(self, seconds: float) -> None:
        """Lets C write the stacks unless this is called again within ``seconds``."""
        with self._forking, suppress(OSError, ValueError, RuntimeError):
            if not self._file.closed and self.size_bytes <= MOST_BYTES:
                faulthandler.dump_traceback_later(seconds, file=self._file)

    def close(self) -> None:
        """Gives signals back and closes the file; at once or twice."""
        if self._file.closed:
            return
        with self._forking:
            faulthandler.cancel_dump_traceback_later()
            self._give_back()

    def before_fork(self) -> None:
        """Takes C's thread away until the fork is done.

        A forked process has not got that thread, and would wait for it for ever as it exits
        (``cancel_dump_traceback_later`` in CPython's faulthandler.c).
        """
        self._forking.acquire()
        faulthandler.cancel_dump_traceback_later()

    def after_fork(self, *, in_child: bool) -> None:
        """Lets a forked process go its own way: its signals are not those of the rank."""
        self._forking.release()
        if in_child and not self._file.closed:
            with suppress(Exception):
                self._give_back()

    def _give_back(self) -> None:
        for number in self._signals:
            faulthandler.unregister(number)
        if self._holds_crashes:
            faulthandler.disable()
        self._file.close()

    def _register(self, number: signal.Signals) -> None:
        """Writes stacks at a signal, which then does what it did before.

        SIGUSR1 ends a process that has no handler of it; a rank that is asked for its stacks is to
        go on, so that is left out. SIGTERM ends it as before.
        """
        has_handler = signal.getsignal(number) not in (signal.SIG_DFL, signal.SIG_IGN, None)
        chain = has_handler or number == signal.SIGTERM
        with suppress(RuntimeError, ValueError, OSError, AttributeError):
            faulthandler.register(number, self._file, all_threads=True, chain=chain)
            self._signals.append(number)
