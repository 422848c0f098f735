"""A recording session: which steps of one rank are recorded, by which clock, into which file.

    a program's own loop: record, record_steps, span    ``api``        all hooks
    serried train, which says what it does itself       ``training``   collectives' hooks
                     │
             RecordingSession ── a recorded step begins ──> the hooks are put in
                     └── spans, through its Tracer ──> ``SpanSink`` ──> the rank's file

Its file is made with the first span, so that a program which records nothing leaves none.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from serried.runtime.recorder.clock import clock_here
from serried.runtime.recorder.garbage import Collections
from serried.runtime.recorder.host_time import HostTime
from serried.runtime.recorder.sink import SpanSink
from serried.runtime.recorder.tracer import Tracer
from serried.runtime.recorder.window import StepWindow
from serried.runtime.recording.pings import Pings, ping_others
from serried.trace.model.record import RecordHeader
from serried.trace.model.record_writer import RecordWriter, make_folder


class StepHooks(Protocol):
    """Wraps functions of a program while its steps are recorded, and gives them back after."""

    @property
    def are_in(self) -> bool:
        """Whether they are put in."""

    def put_in(self) -> None:
        """Puts all into the program."""

    def take_out(self) -> None:
        """Takes them out again; at once or twice."""

    def begin_step(self) -> None:
        """Begins a step, recorded or not."""

    def close(self) -> None:
        """Keeps what is still on its way, and leaves nothing in the program."""


Hooks = TypeVar("Hooks", bound=StepHooks)


class RecordingSession(Generic[Hooks]):
    """Records steps of one rank into its file in ``folder``."""

    def __init__(
        self,
        folder: Path,
        header: Callable[[], RecordHeader],
        hooks: Callable[[Tracer], Hooks],
        *,
        host: HostTime,
        num_local_ranks: int = 0,
    ) -> None:
        """Prepares it: ``header`` is asked for as the file is made.

        ``num_local_ranks`` says how many ranks this host has, where torchrun did not.
        """
        self.folder = folder
        self.tracer = SpanSink(self._open)
        self.window = StepWindow(folder)
        self.hooks = hooks(self.tracer)
        self._collections = Collections(self.tracer, host.now_ns)
        self._header, self._host = header, host
        self._num_local_ranks = num_local_ranks
        self._pings: Pings | None = None

    def begin_step(self, step: int, *, is_recorded: bool) -> None:
        """Begins ``step``; its spans are kept if ``is_recorded``."""
        self._collections.keep()
        if is_recorded and not self.hooks.are_in:
            # CUDA may have come into use since the program began, so the clock is chosen only now.
            self.tracer.use(clock_here(self._host))
            self.hooks.put_in()
            self._collections.put_in()
        elif self.hooks.are_in and not is_recorded:
            self._take_out()
        self.tracer.is_on = is_recorded
        self.hooks.begin_step()
        self.tracer.begin_step(step)

    def end_step(self, *, goes_on: bool = False) -> None:
        """Ends the step; what is late comes with the next, which is recorded too if ``goes_on``.

        Unless it is, the program gets its functions back: to wrap them again with each step would
        cost more than the step's spans, and on a device a wait for its clock.
        """
        self._collections.keep()
        if not goes_on:
            self._take_out()
        self.tracer.is_on = False
        self.tracer.drain()

    def _take_out(self) -> None:
        self.hooks.take_out()
        self._collections.take_out()

    def close(self) -> None:
        """Waits for what is late and closes the file; at once or twice."""
        self.end_step()
        self.hooks.close()
        self.window.close()
        if self._pings:
            self._pings.finish()
        self.tracer.close()

    def _open(self) -> RecordWriter:
        """Makes the rank's file, and begins to compare this host's clock with others'."""
        make_folder(self.folder)  # it may not have been there, or not any more
        header = self._header()
        recorder = RecordWriter(self.folder, header)
        self._pings = ping_others(
            self.folder, header.run, self._host, num_local_ranks=self._num_local_ranks
        )
        return recorder
