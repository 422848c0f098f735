"""The rank processes of one job on this host: started, listened to, and ended together.

parent ── forkserver (torch loaded once) ─┬─ rank 0 ══ events ══> parent
                                          ├─ rank 1 ── failure ─> parent
                                          └─ …          each watches the parent's pipe
       └── looks at their states: a rank that stays stopped is ended
"""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
import time
from collections.abc import Generator, Sequence
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Generic, TypeVar

from serried.errors import SerriedError, listed
from serried.runtime.job.report import Failed, Place
from serried.runtime.run import worker
from serried.runtime.run.stopped_ranks import StoppedRanks

GRACE_S = 2.0
"""How long others may still speak after a first failure, so that the cause is told."""

Told = TypeVar("Told")


def run_locally(
    job: worker.RankJob[Told], *, preload: Sequence[str] = ()
) -> Generator[Told, None, None]:
    """Starts the job's ranks, yields what rank 0 tells, and leaves none running.

    ``preload`` names modules that the ranks would each have to load themselves. Raises what ended
    a rank, with that rank's message first, and EnvironmentProblem before any starts where ranks
    would not reach each other.
    """
    worker.require_loopback()
    with tempfile.TemporaryDirectory(prefix="serried-") as folder:
        ranks: LocalRanks[Told] = LocalRanks(job, preload)
        try:
            ranks.start(Path(folder) / "store")
            yield from ranks.events()
        finally:
            ranks.end()


class LocalRanks(Generic[Told]):
    """Owns the processes of one job on this host."""

    def __init__(self, job: worker.RankJob[Told], preload: Sequence[str] = ()) -> None:
        self.processes: list[ForkServerProcess] = []
        self._job, self._preload = job, preload
        self._channels: dict[Connection, int] = {}
        self._stopped = StoppedRanks(self.processes, job.timeout_s)

    def start(self, store: Path) -> None:
        """Starts every rank; ``store`` is the file in which they find each other."""
        job = self._job
        self._stopped.start()
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["serried.runtime.run.preload", *self._preload])
        start_server()
        for rank in range(job.world_size):
            channel, far_end = context.Pipe(duplex=False)
            place = Place(rank, job.world_size, rank, job.world_size)
            process = context.Process(
                target=worker.run_local,
                args=(job, place, store, far_end),
                name=f"serried-rank-{rank}",
                daemon=True,
            )
            self._channels[channel] = rank
            process.start()
            self.processes.append(process)
            far_end.close()

    def events(self) -> Generator[Told, None, None]:
        """Yields what rank 0 tells until all ranks are done; raises what ended a rank."""
        failures: list[Failed] = []
        while self._channels:
            for channel in wait(list(self._channels)):
                assert isinstance(channel, Connection)
                told = self._receive(channel)
                if isinstance(told, Failed):
                    failures.append(told)
                elif told is not None:
                    yield told
            # A rank that the system kills says nothing: only its exit code tells.
            if failures or self._ended_badly():
                raise self._cause(failures)

    def end(self) -> None:
        """Ends ranks that still run. They keep nothing outside their mapped files, so kill."""
        self._stopped.end()
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.join()
        for channel in self._channels:
            channel.close()

    def _receive(self, channel: Connection) -> Told | Failed | None:
        """Returns what a rank tells; None once it has gone, whose exit is then awaited."""
        try:
            told: Told | Failed = channel.recv()
        except (EOFError, OSError):  # OSError: in the middle of a message
            self.processes[self._channels.pop(channel)].join()
            channel.close()
            return None
        return told

    def _ended_badly(self) -> bool:
        return any(process.exitcode for process in self.processes)

    def _cause(self, failures: list[Failed]) -> SerriedError:
        """Waits a moment for the others' last words, then picks the failure that came first.

        A rank that was killed or is stopped says nothing, and its peers' words are only echoes
        of that: all but wrong input and a machine that lacks something (exit codes 2 and 3).
        """
        # In this order: who was refused or lacks something said so itself; who is stopped or was
        # killed says nothing while its peers complain; else the first that spoke is the cause.
        stopped = self._stopped.ranks()
        if stopped and all(failed.exit_code == 1 for failed in failures):
            return _not_answering(stopped)
        deadline = time.monotonic() + GRACE_S
        while self._channels and (left := deadline - time.monotonic()) > 0:
            for channel in wait(list(self._channels), left):
                assert isinstance(channel, Connection)
                told = self._receive(channel)
                if isinstance(told, Failed):
                    failures.append(told)
        spoke = {failed.rank for failed in failures}
        silent = [
            (rank, process.exitcode)
            for rank, process in enumerate(self.processes)
            if process.exitcode and rank not in spoke
        ]
        aborted = -signal.SIGABRT  # gloo's threads may abort when a peer goes: an echo too
        for rank, code in silent:
            if code != aborted or not failures:
                return _ended(rank, code)
        return min(failures, key=lambda failed: failed.at_ns).error()


def start_server() -> None:
    """Starts the server that forks ranks, deaf to Ctrl+C, which is the parent's to handle.

    It would hear it while it loads torch, for seconds, and end with a traceback of wherever it was.
    A blocked signal stays blocked in processes that are started meanwhile; the parent gets its own
    a moment later.
    """
    resource_tracker.ensure_running()  # it would unblock the signal while the server starts it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _not_answering(ranks: list[int]) -> SerriedError:
    return SerriedError(
        "rank {ranks} does not answer: stopped by a signal, such as SIGSTOP, or by a debugger; "
        "the other ranks were ended",
        ranks=listed(ranks, limit=16),
    )


def _ended(rank: int, code: int) -> SerriedError:
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return SerriedError(
        "rank {rank} ended by {how} without a word; the other ranks were ended",
        rank=rank,
        how=how,
    )
