"""Runs many faults side by side, each slot a process of its own on cores of its own.

queue of faults ──> slot 0, cores 0 8 ──> verdicts as they come, whoever crashes
                ──> slot 1, cores 1 9
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.diagnosis.faults.fault import Fault
from benchmarks.diagnosis.faults.injected import outcome_of

LONGEST_RUN_S = 240.0
ENDING_S = 10.0

Ran = tuple[Fault, Path, "dict[str, Any] | str"]
"""A fault, where its evidence lies, and what is said of it, or why it could not be run."""


@dataclass(frozen=True)
class Campaign:
    """Says which faults are run, how many at once, where."""

    faults: Sequence[Fault]
    place: Path
    parallel: int = 1
    cores: tuple[int, ...] = ()
    for_s: float = float("inf")
    """After how long no run is begun any more."""

    def outcomes(self) -> Generator[Ran, None, None]:
        """Yields each run as it ends; closing the iterator ends the runs that go on."""
        waiting: queue.SimpleQueue[Fault] = queue.SimpleQueue()
        for fault in self.faults:
            waiting.put(fault)
        came: queue.SimpleQueue[Ran | None] = queue.SimpleQueue()
        until = time.monotonic() + self.for_s
        slots = [_Slot(self.place, self._cores(n)) for n in range(self.parallel)]
        threads = [
            threading.Thread(target=slot.serve, args=(waiting, came.put, until), daemon=True)
            for slot in slots
        ]
        for thread in threads:
            thread.start()
        try:
            ended = 0
            while ended < len(threads):
                ran = came.get()
                ended += ran is None
                if ran is not None:
                    yield ran
        finally:
            for slot in slots:
                slot.end()

    def _cores(self, slot: int) -> tuple[int, ...]:
        if not self.cores:
            return ()
        mine = self.cores[slot :: self.parallel]
        return mine or (self.cores[slot % len(self.cores)],)


class _Slot:
    """Is a process that runs one fault after the other, and another in its place if it dies."""

    def __init__(self, place: Path, cores: tuple[int, ...]) -> None:
        self._place, self._cores = place, cores
        self._process: multiprocessing.process.BaseProcess | None = None
        self._is_over = False
        self._lock = threading.Lock()

    def serve(
        self, waiting: queue.SimpleQueue[Fault], told: Callable[[Ran | None], None], until: float
    ) -> None:
        """Runs faults until none waits, the time is over, or the slot is ended."""
        pipe: Connection | None = None
        while not self._is_over and time.monotonic() < until:
            try:
                fault = waiting.get_nowait()
            except queue.Empty:
                break
            folder = self._place / f"{fault.kind.replace(' ', '-')}-{fault.seed}"
            pipe = pipe or self._start()
            answer = _asked(pipe, fault, folder) if pipe else "the slot was ended"
            if answer is None:
                self._kill()
                pipe, answer = None, "the process that ran it died, or took too long"
            if not self._is_over:
                told((fault, folder, answer))
        self.end()
        told(None)

    def end(self) -> None:
        """Ends the process and all ranks that it started."""
        self._is_over = True
        self._kill()

    def _start(self) -> Connection | None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        with self._lock:
            if self._is_over:
                return None
            self._process = context.Process(target=_run_faults, args=(theirs, self._cores))
            self._process.start()
        theirs.close()
        return ours

    def _kill(self) -> None:
        with self._lock:
            process, self._process = self._process, None
            if process is None or process.pid is None:
                return
            process.terminate()  # it takes down the hosts and disks that it made
            process.join(ENDING_S)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.join()


def _asked(pipe: Connection, fault: Fault, folder: Path) -> dict[str, Any] | str | None:
    try:
        pipe.send((fault, folder))
        if not pipe.poll(LONGEST_RUN_S):
            return None
        answer: dict[str, Any] | str = pipe.recv()
    except (OSError, EOFError):
        return None
    return answer


def _run_faults(pipe: Connection, cores: tuple[int, ...]) -> None:
    """Is the process of a slot, the head of a group in which all its ranks are."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if cores:
        os.sched_setaffinity(0, cores)
    while True:
        try:
            fault, folder = pipe.recv()
        except EOFError:
            return
        try:
            answer: dict[str, Any] | str = outcome_of(fault, folder).answer
        except Exception:
            answer = traceback.format_exc()
        pipe.send(answer)


@contextmanager
def stopped_softly() -> Iterator[None]:
    """Makes SIGTERM and SIGINT leave a block by an exception, so that what came so far is kept."""

    def leave(number: int, _: Any) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    before = {each: signal.signal(each, leave) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
