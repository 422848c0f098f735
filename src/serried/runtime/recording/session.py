"""The recorder of one rank of any training program: steps begin, spans come, a file grows.

    for batch in serried.record(loader):              a step ends when an optimizer has stepped
    with serried.record_steps(step, 10, 13):          steps 10, 11 and 12
    with serried.span("augment", microbatch=3):       anything else
                  │
          StepRecorder ── a recorded step begins ──> hooks (``hooks``) are put in
                  └── spans ──> ``recorder_sink`` ──> the rank's file

A process has one recorder, so that loops of several epochs go into one file; its steps go on
counting.
"""

from __future__ import annotations

import atexit
from pathlib import Path

from serried.action import ActionKind
from serried.errors import EnvironmentProblem, InputError
from serried.mesh import Layout
from serried.runtime.hooks.megatron import megatron_layout
from serried.runtime.hooks.program import Hooks
from serried.runtime.recorder.clock import Mark, clock_here
from serried.runtime.recorder.header import folder_here, header_here, rank_here
from serried.runtime.recorder.host_time import HostTime
from serried.runtime.recorder.sink import SpanSink
from serried.runtime.recorder.window import Window
from serried.runtime.recording.pings import Pings, ping_others
from serried.trace.model.record import file_name
from serried.trace.model.record_writer import RecordWriter, make_folder


class StepRecorder:
    """Keeps the spans of recorded steps in this rank's file, which is made with the first one."""

    def __init__(
        self,
        folder: Path,
        layout: Layout | None = None,
        framework: str = "",
        host: HostTime | None = None,
    ) -> None:
        """Makes ``folder``, or says that it cannot; the training goes on without a recording.

        Raises InputError where an earlier recording stands in it.
        """
        self.asked = folder
        self.folder = folder_here(folder)
        self.is_on = False
        self.sink = SpanSink(self._open)
        self.stages = 1
        """Of the pipeline that hooks have seen, 1 without one."""
        self._layout = layout
        self._framework = framework
        self._host = host or HostTime()
        self._pings: Pings | None = None
        self._make_room()
        self.window = Window(self.folder)
        self._hooks = Hooks(self)
        atexit.register(self.close)

    @property
    def step(self) -> int:
        """The step that runs, or ran last; -1 before the first."""
        return self.sink.step

    def begin_step(self, step: int, *, is_recorded: bool) -> None:
        """Begins ``step``; its spans are kept if ``is_recorded``."""
        if is_recorded and not self._hooks.are_in:
            self.sink.use(clock_here(self._host))
            self._hooks.put_in()
        elif self._hooks.are_in and not is_recorded:
            self._hooks.take_out()
        self.is_on = is_recorded
        self._hooks.begin_step()
        self.sink.begin_step(step)

    def end_step(self, *, goes_on: bool = False) -> None:
        """Ends the step; what is late comes with the next, which is recorded too if ``goes_on``.

        Unless it is, the program gets its functions back: to wrap them again with each step would
        cost more than the step's spans, and on a device a wait for its clock.
        """
        if not goes_on:
            self._hooks.take_out()
        self.is_on = False
        self.sink.drain()

    @property
    def has_stepped(self) -> bool:
        """Whether an optimizer has stepped since the step began."""
        return self._hooks.has_stepped

    def mark(self) -> Mark:
        """Marks this moment, on the device's stream where there is one."""
        return self.sink.mark()

    def add(
        self,
        kind: ActionKind,
        start: Mark,
        stage: int = -1,
        microbatch: int = -1,
        peer: int = -1,
    ) -> None:
        """Keeps a span from ``start`` to now, if the step is recorded; for the rank's thread."""
        if self.is_on:
            sink = self.sink
            sink.keep(kind, start, sink.mark(), stage, microbatch, peer)

    def close(self) -> None:
        """Waits for what is late and closes the file; at once or twice."""
        self.end_step()
        self._hooks.close()
        self.window.close()
        if self._pings:
            self._pings.finish()
        self.sink.close()
        atexit.unregister(self.close)

    def _open(self) -> RecordWriter:
        framework = self._framework or self._hooks.framework()
        layout = self._layout or (None if self._framework else megatron_layout())
        header = header_here(self.asked, layout, framework, self.stages, self._host)
        make_folder(self.folder)  # it may not have been there, or not any more
        recorder = RecordWriter(self.folder, header)
        self._pings = ping_others(self.folder, header.run, self._host)
        return recorder

    def _make_room(self) -> None:
        try:
            make_folder(self.folder)
            path = self.folder / file_name(rank_here())
            is_taken = path.exists()
        except (EnvironmentProblem, OSError) as problem:
            self.sink.tell(problem)
            return
        if is_taken:
            raise InputError(
                "{path} holds an earlier recording; choose another folder or remove it", path=path
            )
