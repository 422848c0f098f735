"""The recorder of one rank of any training program: steps begin, spans come, a file grows.

    for batch in serried.record(loader):              a step ends when an optimizer has stepped
    with serried.record_steps(step, 10, 13):          steps 10, 11 and 12
    with serried.span("augment", microbatch=3):       anything else
                  │
          StepRecorder ── a recorded step begins ──> hooks (``hooks``) are put in
                  ├── add     by the rank's own thread, into its file at once
                  └── later   from other threads, or of device events: drained as a step begins

A process has one recorder, so that loops of several epochs go into one file; its steps go on
counting. A full disk ends the recording, not the training.
"""

from __future__ import annotations

import atexit
import logging
from collections import deque
from pathlib import Path

from serried.errors import EnvironmentProblem, InputError
from serried.mesh import Layout
from serried.runtime.hooks import Hooks
from serried.runtime.recorder_clock import Clock, HostClock, Mark, clock_here
from serried.runtime.recorder_job import folder_here, header_here, rank_here
from serried.span import ActionKind
from serried.trace.record import Recorder, file_name

Late = tuple[ActionKind, Mark, Mark, int, int, int, int, int]
_log = logging.getLogger("serried")


class StepRecorder:
    """Keeps the spans of recorded steps in this rank's file, which is made with the first one."""

    def __init__(self, folder: Path, layout: Layout | None = None, framework: str = "") -> None:
        """Makes ``folder``; raises InputError where an earlier recording stands in it."""
        self.asked = folder
        self.folder = folder_here(folder)
        self.step = -1
        self.is_on = False
        self.lost = 0
        """Spans that found no space."""
        self.stages = 1
        """Of the pipeline that hooks have seen, 1 without one."""
        self._layout = layout
        self._framework = framework
        self._clock: Clock = HostClock()
        self._file: Recorder | None = None
        self._late: deque[Late | Mark] = deque()
        self._hooks = Hooks(self)
        self._make_room()
        atexit.register(self.close)

    def begin_step(self, step: int, *, is_recorded: bool) -> None:
        """Begins ``step``; its spans are kept if ``is_recorded``."""
        self.step = step
        if is_recorded and not self.is_on:
            self._clock = clock_here()
            self._hooks.put_in()
        elif self.is_on and not is_recorded:
            self._hooks.take_out()
        self.is_on = is_recorded
        self._hooks.begin_step()
        if not isinstance(self._clock, HostClock):
            self._late.append(self._clock.mark())
        self._drain()

    def end_step(self) -> None:
        """Lets go of the program's functions; what is late comes with the next step."""
        if self.is_on:
            self._hooks.take_out()
        self.is_on = False
        self._drain()

    @property
    def has_stepped(self) -> bool:
        """Whether an optimizer has stepped since the step began."""
        return self._hooks.has_stepped

    def mark(self) -> Mark:
        """Marks this moment, on the device's stream where there is one."""
        return self._clock.mark()

    def add(
        self,
        kind: ActionKind,
        start: Mark,
        *,
        stage: int = -1,
        microbatch: int = -1,
        peer: int = -1,
        name: str = "",
    ) -> None:
        """Keeps a span from ``start`` to now, if the step is recorded; for the rank's thread."""
        if not self.is_on:
            return
        end = self._clock.mark()
        if not isinstance(start, int) or not isinstance(end, int):
            self.later(kind, start, end, stage, microbatch, peer, name)
            return
        try:
            file = self._file or self._open()
            file.add(
                kind,
                start,
                end,
                step=self.step,
                stage=stage,
                microbatch=microbatch,
                peer=peer,
                name=file.number_of(name) if name else 0,
            )
        except EnvironmentProblem as problem:
            self._lose(problem)

    def later(
        self,
        kind: ActionKind,
        start: Mark,
        end: Mark,
        stage: int = -1,
        microbatch: int = -1,
        peer: int = -1,
        name: str = "",
    ) -> None:
        """Keeps a span until its marks have passed; any thread may call."""
        number = 0
        try:
            if name:
                number = (self._file or self._open()).number_of(name)
        except EnvironmentProblem as problem:
            self._lose(problem)
        self._late.append((kind, start, end, self.step, stage, microbatch, peer, number))

    def close(self) -> None:
        """Waits for what is late and closes the file; at once or twice."""
        self.end_step()
        self._hooks.close()
        if self._late:
            last = self._late[-1]
            self._clock.wait(last[2] if isinstance(last, tuple) else last)
            self._drain()
        if self._file:
            self._file.close()
        atexit.unregister(self.close)
        if self.lost:
            _log.warning("%d spans were not recorded: no space in %s", self.lost, self.folder)

    def _drain(self) -> None:
        """Writes late spans up to the first that has not passed; never waits."""
        while self._late:
            late = self._late[0]
            is_span = isinstance(late, tuple)
            if not self._clock.has_passed(late[2] if is_span else late):  # type: ignore[index]
                return
            self._late.popleft()
            if isinstance(late, tuple):
                self._write(late)
            else:
                self._clock.move_zero(late)

    def _write(self, late: Late) -> None:
        kind, start, end, step, stage, microbatch, peer, number = late
        start_ns, end_ns = self._clock.time_ns(start), self._clock.time_ns(end)
        where = {"step": step, "stage": stage, "microbatch": microbatch, "peer": peer}
        try:
            file = self._file or self._open()
            file.add(kind, start_ns, max(start_ns, end_ns), **where, name=number)
        except EnvironmentProblem as problem:
            self._lose(problem)

    def _open(self) -> Recorder:
        framework = self._framework or self._hooks.framework()
        self._file = Recorder(self.folder, header_here(self._layout, framework, self.stages))
        return self._file

    def _lose(self, problem: EnvironmentProblem) -> None:
        if not self.lost:
            _log.warning("%s; the training goes on", problem)
        self.lost += 1

    def _make_room(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EnvironmentProblem(
                "{path} cannot be recorded: {reason}; choose a folder with space that can be "
                "written",
                path=self.folder,
                reason=error.strerror,
            ) from error
        path = self.folder / file_name(rank_here())
        if path.exists():
            raise InputError(
                "{path} holds an earlier recording; choose another folder or remove it", path=path
            )
