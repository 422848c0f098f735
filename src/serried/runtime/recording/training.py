"""Recording: passes a rank's spans to its file, in the steps that are recorded.

    step │ BROADCAST │ F ├ALL_GATHER┤ │ B ├ALL_REDUCE┤ │ REDUCE_GRAD │ OPTIMIZER ├ALL_REDUCE┤ │

The trainer says what it computes and sends; collectives are hooked (``hooks_exchange``), DTensor's
and FSDP2's too, and belong to the computation that they are called in. On a GPU times are events
of its streams, read in a later step; nothing waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from serried.action import COMPUTE, ActionKind
from serried.runtime.hooks.collectives import Exchanges
from serried.runtime.hooks.sharding import fsdp_patches
from serried.runtime.job.settings import TrainSettings
from serried.runtime.recorder.clock import Mark, clock_here
from serried.runtime.recorder.header import first_folder, header_of, keep_run, kept_run
from serried.runtime.recorder.host_time import HostTime
from serried.runtime.recorder.patches import Work
from serried.runtime.recorder.sink import SpanSink
from serried.runtime.recorder.window import Window
from serried.runtime.recording.pings import Pings, ping_others
from serried.trace.model.record_writer import RecordWriter, make_folder


class Recording:
    """Passes one rank's spans to its RecordWriter while a recorded step runs, else drops them."""

    def __init__(
        self,
        settings: TrainSettings,
        open_file: Callable[[], RecordWriter] | None = None,
        host: HostTime | None = None,
        pings: Pings | None = None,
    ) -> None:
        self._settings = settings
        self._host = host or HostTime()
        self._pings = pings
        self._sink = SpanSink(open_file) if open_file else None
        folder = settings.trace_dir
        self._window = Window(folder) if open_file and folder else None
        self._is_on = False
        self._work = Work()
        self._work.begin(-1, -1)
        self._exchanges = Exchanges(self.now, self._keep, self._work)

    @classmethod
    def of(
        cls,
        settings: TrainSettings,
        *,
        run: str,
        rank: int,
        backend: str,
        host: HostTime | None = None,
        num_local_ranks: int = 0,
    ) -> Recording:
        """Creates the rank's file where a trace is asked for, and compares hosts' clocks.

        ``host`` stands for this one where its clocks are to be others.
        """
        host = host or HostTime()
        folder = settings.trace_dir
        if not folder:
            return cls(settings, host=host)
        keep_run(first_folder(folder), run)
        header = header_of(run, rank, settings.job(backend), host)

        def open_file() -> RecordWriter:
            make_folder(folder)
            return RecordWriter(folder, header)

        pings = ping_others(folder, run, host, num_local_ranks=num_local_ranks)
        recording = cls(settings, open_file, host, pings)
        assert recording._sink
        recording._sink.open()  # now, so that a rank without spans has a file too
        return recording

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """Times the collectives that its body calls, where a trace is asked for."""
        if self._sink is None:
            yield
            return
        patches = [*self._exchanges.patches(), *fsdp_patches(self._exchanges)]
        for patch in patches:
            patch.put_in()
        try:
            yield
        finally:
            for patch in reversed(patches):
                patch.take_out()

    def begin_step(self, step: int) -> None:
        """Tells that ``step`` begins; its spans are kept when it lies in the window."""
        if self._sink is None or self._window is None:
            return
        was_on, self._is_on = self._is_on, self._window.holds(step, self._settings.trace_steps)
        if self._is_on and not was_on:
            self._sink.use(clock_here(self._host))
        self._work.is_exchange = False
        self._exchanges.begin_step()
        self._sink.begin_step(step)

    def pause(self) -> None:
        """Drops what comes until the next step begins."""
        self._is_on = False

    def now(self) -> Mark:
        """Marks this moment: CLOCK_MONOTONIC nanoseconds, on a GPU an event of its stream."""
        return self._sink.mark() if self._sink and self._is_on else self._host.now_ns()

    def add(
        self,
        kind: ActionKind,
        start: Mark,
        end: Mark,
        stage: int = -1,
        microbatch: int = -1,
        peer: int = -1,
    ) -> None:
        """Keeps a span of the current step."""
        self._work.is_exchange = False
        if kind in COMPUTE:
            self._work.begin(-1, -1)
        if self._sink and self._is_on:
            self._sink.keep(kind, start, end, stage, microbatch, peer)

    def begin_work(self, stage: int, microbatch: int) -> None:
        """Tells which computation begins; exchanges that come belong to it."""
        self._work.begin(stage, microbatch)

    def begin_exchange(self) -> Mark:
        """Marks the start of an exchange that is added by itself: what it is made of is not."""
        self._work.is_exchange = True
        return self.now()

    def end_exchange(self) -> None:
        """Says that such an exchange has ended; adding its span says so too."""
        self._work.is_exchange = False

    def add_exchange(self, kind: ActionKind, start: Mark, end: Mark, peer: int) -> None:
        """Keeps a span that lies within the computation that runs."""
        self.add(kind, start, end, self._work.stage, self._work.microbatch, peer)

    def close(self) -> None:
        """Closes the rank's file, and tells what was lost."""
        if self._sink is None or self._window is None:
            return
        self._is_on = False
        self._window.close()
        if self._pings:
            self._pings.finish()
        self._sink.close()

    def _keep(self, kind: ActionKind, start: Mark, end: Mark) -> None:
        if self._sink and self._is_on:
            self._sink.keep(kind, start, end, self._work.stage, self._work.microbatch)


def run_before(trace_dir: Path | None) -> str:
    """Returns the run that this job's earlier attempts recorded, or "" where there is none."""
    return kept_run(first_folder(trace_dir)) if trace_dir else ""
