"""``serried.guard``: at a time-out, signal or crash a rank leaves its state, stacks, flight record.

    with serried.guard("runs/a"):         or once, at the top of the script
        train()

    rank-00003.guard       its last operations, groups and counts, all the time     mapped memory
    rank-00003.stacks      all threads' stacks                                      faulthandler
    rank-00003.fr.json     torch's flight recorder                                  a thread
    rank-00003.failed      the exception that ended it
    rank-00003.neighbours  this host's other ranks: stopped, gone

No rank needs another. What needs the interpreter is only the better part: the operations stand in
the file before anything hangs, and stacks are written by C, also while C++ holds the lock.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook

from serried.diagnose.evidence.records.guard_file import (
    FAILED,
    LEFT,
    RUNS,
    GuardHeader,
    guard_name,
    read_guard_file,
)
from serried.diagnose.evidence.records.left import THREAD_ENDED
from serried.diagnose.evidence.records.process import start_of
from serried.errors import InputError
from serried.mesh import Layout
from serried.runtime.guard.calls import TorchCalls
from serried.runtime.guard.endings import EndingHooks, failure_in
from serried.runtime.guard.left import (
    FAILED_SUFFIX,
    FR_SUFFIX,
    NEIGHBOURS_SUFFIX,
    leave_failure,
    leave_flight_record,
    leave_neighbours,
    summary_of,
)
from serried.runtime.guard.operations import OperationLog
from serried.runtime.guard.stacks import SUFFIX as STACKS_SUFFIX
from serried.runtime.guard.stacks import Stacks
from serried.runtime.recorder.header import (
    attempt_here,
    folder_here,
    header_of,
    job_here,
    rank_here,
    world_size_here,
)
from serried.runtime.recorder.host_time import HostTime
from serried.runtime.recorder.torch_private import groups_here
from serried.trace.model.record import RecordHeader

FOLDER = "SERRIED_GUARD_DIR"
TIMEOUT_S = 120.0
LOOK_S = 0.5
"""How often a rank leaves a sign of life."""
RECORDING_S = 2.0
"""How long a rank that fails waits for its flight record to be written, as it ends with it."""
MOST_DUMPS = 4
"""How often one standstill is written of: at the time-out and at 2, 4 and 8 times it."""
_log = logging.getLogger("serried")
_current: Guard | None = None


def guard(
    folder: str | Path | None = None,
    *,
    timeout_s: float = TIMEOUT_S,
    layout: Layout | None = None,
    signals: Sequence[str] = ("USR1", "TERM"),
) -> Guard:
    """Guards this rank from now on and returns what ends that: itself a context manager.

    ``folder`` (or SERRIED_GUARD_DIR; without either it does nothing) takes some 100 kB of the rank,
    and a few MB where it hangs. ``timeout_s`` is how long the rank may not go on (no operation
    begun or ended, no step) before it leaves its stacks and flight record; the training goes on.
    ``signals`` leave the stacks too: after TERM the process ends as before, after the others it
    goes on. ``layout`` says how ranks stand. A process has one guard; another call returns it.

    Raises InputError for a time-out or a signal that cannot be. A folder or disk that cannot be
    written is said, and the training goes on unguarded.
    """
    asked = folder or os.environ.get(FOLDER)
    numbers = tuple(map(_signal, signals))
    if not timeout_s > 0:
        raise InputError(
            "a time-out of {seconds:g} s cannot be; give more than 0", seconds=timeout_s
        )
    if not asked:
        return Guard(None)
    if _current is not None:
        return _current
    folder = folder_here(Path(asked))
    rank, local = rank_here(), int(os.environ.get("LOCAL_RANK", "0"))
    record = header_of(_run_here(), rank, job_here(layout), HostTime())
    size = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return begin(folder, record, local, size, timeout_s=timeout_s, numbers=numbers)


def begin(
    folder: Path,
    record: RecordHeader,
    local_rank: int,
    local_world_size: int,
    *,
    timeout_s: float,
    numbers: tuple[signal.Signals, ...] = (),
) -> Guard:
    """Guards the rank that ``record`` names; the process's only guard."""
    global _current
    header = GuardHeader(
        record=record,
        pid=os.getpid(),
        process_start=start_of(os.getpid()),
        local_rank=local_rank,
        local_world_size=local_world_size,
        attempt=attempt_here(),
        timeout_s=timeout_s,
        main_thread=threading.main_thread().ident or 0,
    )
    made: Guard
    try:
        folder.mkdir(parents=True, exist_ok=True)
        made = Guard(_Guarded(folder, header, numbers))
    except (OSError, InputError) as error:
        _log.warning("%s cannot be guarded into: %s; the training goes on", folder, error)
        return Guard(None)
    _current = made
    return made


def current() -> Guard | None:
    """Returns the guard of this process, where there is one."""
    return _current


class Guard:
    """Stands for the guard of this process; ends it, where it is used as a context manager."""

    def __init__(self, guarded: _Guarded | None) -> None:
        self._guarded = guarded

    @property
    def is_on(self) -> bool:
        """Whether the rank is guarded: a folder was given, and can be written."""
        return self._guarded is not None

    def begin_step(self, step: int) -> None:
        """Says which step begins; without it steps are counted by the optimizer's."""
        if self._guarded:
            self._guarded.begin_step(step)

    def failed(self, error: BaseException) -> None:
        """Leaves an exception that ends the rank in a way that Python does not tell of."""
        if self._guarded:
            self._guarded.failed(error)

    def dump(self, why: str) -> None:
        """Leaves stacks, flight record and neighbours now."""
        if self._guarded:
            self._guarded.dump(why)

    def close(self) -> None:
        """Ends guarding and gives everything back; at once or twice."""
        global _current
        if self._guarded:
            self._guarded.close()
        self._guarded = None
        if _current is self:
            _current = None

    def __enter__(self) -> Guard:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if (failure := failure_in(error)) is not None:
            self.failed(failure)
        self.close()


class _Guarded:
    """Owns what guards a rank."""

    def __init__(
        self, folder: Path, header: GuardHeader, numbers: tuple[signal.Signals, ...]
    ) -> None:
        rank = header.record.rank
        self._place = folder / guard_name(rank)
        self._header, self._pid = header, os.getpid()
        for suffix in (FR_SUFFIX, FAILED_SUFFIX, NEIGHBOURS_SUFFIX):
            self._beside(suffix).unlink(missing_ok=True)  # an earlier run's
        self.log = OperationLog(folder, header)
        self._stacks = Stacks(self._beside(STACKS_SUFFIX), numbers)
        self._calls = TorchCalls(self.log)
        self._calls.put_in()
        self._how = RUNS
        self._told_step = False
        self._optimizer: int | None = None
        self._is_over = threading.Event()
        self._counter = register_optimizer_step_post_hook(self._stepped)
        self._hooks: tuple[Any, Any] = sys.excepthook, threading.excepthook
        sys.excepthook, threading.excepthook = self._uncaught, self._uncaught_in_thread
        os.register_at_fork(
            before=self._stacks.before_fork,
            after_in_parent=lambda: self._stacks.after_fork(in_child=False),
            after_in_child=self._forked,
        )
        self._endings = EndingHooks(self._process_ends, lambda: self.log.num_begun)
        self._watch = threading.Thread(target=self._watching, name="serried-guard", daemon=True)
        self._watch.start()

    def _beside(self, suffix: str) -> Path:
        return self._place.with_suffix(suffix)

    # ------------------------------------------------------------------ steps

    def begin_step(self, step: int) -> None:
        self._told_step = True
        self.log.begin_step(step)

    def _stepped(self, optimizer: Any, args: Any, options: Any) -> None:
        """Counts steps by the first optimizer that is met."""
        if self._optimizer is None:
            self._optimizer = id(optimizer)
        if not self._told_step and self._optimizer == id(optimizer):
            self.log.begin_step(max(self.log.step, 0) + 1)

    # ------------------------------------------------------------------ watching

    def _watching(self) -> None:
        """Leaves signs of life, and what the rank is in once it has not gone on for long."""
        timeout_s = self._header.timeout_s
        look_s = min(LOOK_S, timeout_s / 8)
        moved: tuple[int, ...] = ()
        moved_ns, dumps, size = time.monotonic_ns(), 0, self._stacks.size_bytes
        while True:
            # This thread cannot run while C++ holds the interpreter: then a thread of C writes.
            self._stacks.unless_called_within(max(timeout_s, 2 * look_s))
            if self._is_over.wait(look_s):
                return
            for group in groups_here():
                self._calls.meet(group)
            if (now := self._calls.moved()) != moved:
                moved, moved_ns, dumps = now, time.monotonic_ns(), 0
                size += self._stacks.outdate(size)
            self.log.live(moved_ns=moved_ns)
            still_s = (time.monotonic_ns() - moved_ns) / 1e9
            if still_s >= timeout_s * 2**dumps and dumps < MOST_DUMPS:
                dumps += 1
                self.dump(f"no progress for {still_s:.0f} s")
            elif self._stacks.size_bytes > size:
                self._leave_rest()  # somebody asked by a signal
            size = self._stacks.size_bytes

    def dump(self, why: str) -> None:
        self._stacks.write(f"{why}; rank {self._header.record.rank}, step {self.log.step}")
        self._leave_rest()

    def _leave_rest(self) -> None:
        leave_neighbours(self._beside(NEIGHBOURS_SUFFIX), self._neighbours())
        leave_flight_record(self._beside(FR_SUFFIX))

    def _neighbours(self) -> dict[int, tuple[int, int]]:
        """Returns the processes of this host's other ranks, by the files that they keep here."""
        header, rank = self._header, self._header.record.rank
        first = rank - header.local_rank
        found: dict[int, tuple[int, int]] = {}
        for other in range(first, first + header.local_world_size):
            if other == rank:
                continue
            try:
                theirs = read_guard_file(self._place.with_name(guard_name(other))).header
            except InputError:
                continue
            if theirs.record.boot == header.record.boot and theirs.record.run == header.record.run:
                found[other] = theirs.pid, theirs.process_start
        return found

    # ------------------------------------------------------------------ the end

    def failed(self, error: BaseException) -> None:
        if self._how == RUNS:
            self._how = FAILED
            leave_failure(
                self._beside(FAILED_SUFFIX), self._header.record.rank, self.log.step, error
            )
            self.log.ended(FAILED)
            leave_neighbours(self._beside(NEIGHBOURS_SUFFIX), self._neighbours())
            leave_flight_record(self._beside(FR_SUFFIX)).join(RECORDING_S)

    def _process_ends(self, failure: BaseException | None) -> None:
        if failure is not None and os.getpid() == self._pid:
            self.failed(failure)
        self.close()

    def _uncaught(self, kind: Any, error: BaseException, where: Any) -> None:
        if not isinstance(error, SystemExit):
            self.failed(error)
        self._hooks[0](kind, error, where)

    def _uncaught_in_thread(self, args: Any) -> None:
        """Leaves the stacks: whether a thread's exception ends the rank, the program decides."""
        if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
            self._stacks.write(f"{THREAD_ENDED} {summary_of(args.exc_value)}")
        self._hooks[1](args)

    def _forked(self) -> None:
        """Leaves a forked process, such as a DataLoader's worker, without a guard."""
        global _current
        self._stacks.after_fork(in_child=not self._is_over.is_set())
        if self._is_over.is_set():
            return
        _current = None
        self._calls.take_out()
        self._counter.remove()
        self._endings.forget()

    def close(self) -> None:
        if self._is_over.is_set() or os.getpid() != self._pid:
            return
        self._is_over.set()
        if threading.current_thread() is not self._watch:
            self._watch.join(timeout=2)
        self._calls.take_out()
        self._counter.remove()
        self._stacks.close()
        if sys.excepthook == self._uncaught:
            sys.excepthook = self._hooks[0]
        if threading.excepthook == self._uncaught_in_thread:
            threading.excepthook = self._hooks[1]
        self.log.live(moved_ns=time.monotonic_ns())
        if self._how == RUNS:
            self._how = LEFT
            self.log.ended(LEFT)
        self._endings.forget()


def _run_here() -> str:
    """Returns what all ranks call the run, as the launcher told them; they need no store."""
    if world_size_here() == 1:
        return uuid.uuid4().hex[:8]
    names = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID", "SLURM_STEP_ID")
    return " ".join(filter(None, (os.environ.get(name, "") for name in names)))


def _signal(name: str) -> signal.Signals:
    number = getattr(signal, f"SIG{name.removeprefix('SIG')}", None)
    if not isinstance(number, signal.Signals) or number in (signal.SIGKILL, signal.SIGSTOP):
        raise InputError("{name} is no signal that can be caught; give one such as USR1", name=name)
    return number
