"""Starts local ranks, follows them, and ends them all when one fails or the parent goes.

parent ── forkserver (torch loaded once) ─┬─ rank 0 ══ events ══> parent
                                          ├─ rank 1 ── failure ─> parent
                                          └─ …          each watches the parent's pipe
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import signal
import tempfile
import time
from collections.abc import Generator
from contextlib import closing
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from serried.errors import EnvironmentProblem, InputError, SerriedError
from serried.runtime import worker
from serried.runtime.data import Corpus
from serried.runtime.report import Event, Failed, Place, Progress, TrainResult
from serried.runtime.run_log import RunLog
from serried.runtime.settings import TrainSettings

GRACE_S = 2.0
"""How long others may still speak after a first failure, so that the cause is told."""


def train(settings: TrainSettings, on_progress: Progress = lambda event: None) -> TrainResult:
    """Trains on this host with ``settings.world_size`` ranks and returns what came of it.

    ``on_progress`` is called with each event as it happens. A script that calls this needs
    an ``if __name__ == "__main__"`` guard, as any that starts processes does. Raises
    SerriedError, with the rank's message first, when a rank fails; InputError and
    EnvironmentProblem before any rank starts.
    """
    require_torch()
    check_files(settings)
    events = _local_events(settings.resolved())
    with RunLog(settings, on_progress) as log, closing(events):
        for event in events:
            log.tell(event)
        return log.result()


def join(
    settings: TrainSettings, place: Place, on_progress: Progress = lambda event: None
) -> TrainResult | None:
    """Trains this process's rank of a torchrun job; returns the result on rank 0 only.

    The caller ends the process with ``worker.leave``.
    """
    require_torch()
    check_files(settings)
    if place.rank:
        worker.join(settings, place, lambda event: None)
        return None
    with RunLog(settings, on_progress) as log:
        worker.join(settings, place, log.tell)
        return log.result()


def require_torch() -> None:
    """Raises EnvironmentProblem where torch is not installed."""
    try:
        found = importlib.util.find_spec("torch")
    except ImportError:
        found = None
    if found is None:
        raise EnvironmentProblem(
            "training needs torch, which is not installed; install it with: "
            "pip install 'serried[torch]'"
        )


def check_files(settings: TrainSettings) -> None:
    """Raises InputError for data that is missing, or a trace folder that is taken."""
    Corpus.of(settings.data).require(settings.model.seq_len, settings.data)
    if settings.trace_dir is None:
        return
    if next(settings.trace_dir.glob("rank-*.spans"), None):
        raise InputError(
            "{path} already holds a recording; choose another folder or remove it",
            path=settings.trace_dir,
        )
    try:
        settings.trace_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            "trace folder {path} cannot be made: {reason}",
            path=settings.trace_dir,
            reason=error.strerror,
        ) from error


def _local_events(settings: TrainSettings) -> Generator[Event, None, None]:
    """Starts the ranks, yields their events, and leaves none running, whatever happens."""
    with tempfile.TemporaryDirectory(prefix="serried-") as folder:
        ranks = LocalRanks()
        try:
            ranks.start(settings, Path(folder) / "store")
            yield from ranks.events()
        finally:
            ranks.end()


class LocalRanks:
    """Owns the processes of one run on this host."""

    def __init__(self) -> None:
        self.processes: list[ForkServerProcess] = []
        self._channels: dict[Connection, int] = {}

    def start(self, settings: TrainSettings, store: Path) -> None:
        """Starts every rank; ``store`` is the file in which they find each other."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["serried.runtime.preload"])
        for rank in range(settings.world_size):
            channel, far_end = context.Pipe(duplex=False)
            place = Place(rank, settings.world_size, rank, settings.world_size)
            process = context.Process(
                target=worker.run_local,
                args=(settings, place, store, far_end),
                name=f"serried-rank-{rank}",
                daemon=True,
            )
            self._channels[channel] = rank
            process.start()
            self.processes.append(process)
            far_end.close()

    def events(self) -> Generator[Event, None, None]:
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
            if failures or self._ended_badly():
                raise self._cause(failures)

    def end(self) -> None:
        """Ends ranks that still run. They keep nothing outside their mapped files, so kill."""
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.join()
        for channel in self._channels:
            channel.close()

    def _receive(self, channel: Connection) -> Event | Failed | None:
        """Returns what a rank tells; None once it has gone, whose exit is then awaited."""
        try:
            told: Event | Failed = channel.recv()
        except (EOFError, ConnectionResetError):
            self.processes[self._channels.pop(channel)].join()
            channel.close()
            return None
        return told

    def _ended_badly(self) -> bool:
        return any(process.exitcode for process in self.processes)

    def _cause(self, failures: list[Failed]) -> SerriedError:
        """Waits a moment for the others' last words, then picks the failure that came first.

        A rank that was killed says nothing, and its peers' words are only echoes of that.
        """
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


def _ended(rank: int, code: int) -> SerriedError:
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return SerriedError(
        "rank {rank} ended by {how} without a word; the other ranks were ended",
        rank=rank,
        how=how,
    )
