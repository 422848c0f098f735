"""Where one rank's spans go: at once into its file, or when their marks have passed; or nowhere.

    keep(F, start, end)
      ├── times      ──> file                     a few hundred nanoseconds
      ├── events     ──> late ──> file            drained as a step begins, never waited for
      └── no space   ──> counted, in the file's header too; tried again with the next step

The training goes on whatever the disk does: it may be full, fail, be read-only, or lose the folder.
Why is said once, as it happens, and how many spans were lost as the file is closed.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from serried.action import ActionKind
from serried.runtime.recorder.clock import Clock, MonotonicClock
from serried.runtime.recorder.tracer import CurrentWork, KeepSpan, Mark, SpanParts, Tracer
from serried.trace.model.record_writer import RecordWriter
from serried.trace.model.traffic import CollectiveMove

_log = logging.getLogger("serried")


class SpanSink(Tracer):
    """Writes spans of the current step into the file that ``open_file`` makes when one comes."""

    keep: KeepSpan
    """The file's own ``add`` while there is one, it has space, and marks are times."""

    def __init__(self, open_file: Callable[[], RecordWriter]) -> None:
        self.is_on = False
        self.step = -1
        self.work = CurrentWork()
        self.lost = 0
        """Spans that could not be written."""
        self.mark: Callable[[], Mark] = time.monotonic_ns
        self.keep = self._keep_slowly
        self.labels: dict[str, tuple[ActionKind, int]] = {
            kind.name: (kind, 0) for kind in ActionKind if kind is not ActionKind.SPAN
        }
        """The kind and the name's number by which a span of that name is kept, once it is known."""
        self.reason = ""
        """Why spans were lost first."""
        self._open_file = open_file
        self._clock: Clock = MonotonicClock()
        self._file: RecordWriter | None = None
        self._is_full = self._has_told = False
        self._unread = 0
        """Spans whose times cannot be had."""
        self._late: deque[SpanParts | Mark] = deque()

    def use(self, clock: Clock) -> None:
        """Marks by ``clock`` from here on."""
        self._clock, self.mark, self.keep = clock, clock.mark, self._keep_slowly

    def begin_step(self, step: int) -> None:
        """Says which step spans belong to that come, and writes what has passed of earlier ones."""
        self.step, self._is_full = step, False
        if self._file:
            self._file.begin_step(step)
        if not isinstance(self._clock, MonotonicClock):
            self._late.append(self._clock.mark())
            self._clock.compare()
        self.drain()

    def keep_named(
        self, name: str, start: Mark, end: Mark, stage: int = -1, microbatch: int = -1
    ) -> None:
        """Keeps a span of a name that has no label yet."""
        file = self.open()
        if file is None:
            self._lose()
            return
        try:
            number = file.number_of(name) if name else 0
        except Exception as problem:
            self._lose(problem)
            return
        if number:
            self.labels[name] = (ActionKind.SPAN, number)
        self.keep(ActionKind.SPAN, start, end, stage, microbatch, name=number)

    def _keep_slowly(self, *parts: Any, **named: Any) -> None:
        """Keeps the first span of a file, one of a device, or counts one that is lost."""
        if not isinstance(self._clock, MonotonicClock):
            self.keep_late(SpanParts(*parts, **{**named, "step": self.step}))
            return
        file = self.open()
        if file is None:
            self._lose()
            return
        self.keep = file.add  # type: ignore[assignment]  # by the host's clock marks are times
        self.keep(*parts, **named)

    def keep_late(self, span: SpanParts) -> None:
        """Keeps a span until its marks have passed; any thread may call."""
        self._late.append(span)

    def keep_moves(self) -> None:
        """Keeps what collectives moved as parts of the span that was kept last."""
        moves, self.work.moves = tuple(self.work.moves), []
        if isinstance(self._clock, MonotonicClock):
            self._write_moves(moves)
        elif self._late and isinstance(late := self._late[-1], SpanParts):
            self._late[-1] = late._replace(moves=late.moves + moves)

    def _write_moves(self, moves: tuple[CollectiveMove, ...]) -> None:
        file = self._file
        if file is None or self._is_full or not moves:
            return
        try:
            file.add_moves(moves)
        except (OSError, ValueError) as problem:
            self.tell(problem)

    def drain(self) -> None:
        """Writes late spans up to the first that has not passed; never waits."""
        while self._late and self._has_passed(self._late[0]):
            late = self._late.popleft()
            try:
                if isinstance(late, SpanParts):
                    self._write(late)
                else:
                    self._clock.move_zero(late)
            except RuntimeError as error:  # what is wrong is the training's to meet
                if not self._unread:
                    _log.warning("a span's times cannot be had: %s", error)
                self._unread += isinstance(late, SpanParts)

    def close(self) -> None:
        """Waits for what is late and closes the file; at once or twice."""
        while self._late:  # streams pass marks in orders of their own: the last may pass first
            with suppress(RuntimeError):  # it is told as the span is drained
                for mark in _marks(self._late[0]):
                    self._clock.wait(mark)
            self.drain()
        if self._unread:
            _log.warning("%d spans were not recorded: their times cannot be had", self._unread)
            self._unread = 0
        if self._file:
            self._close(self._file)
        if self.lost:
            lost, self.lost = self.lost, 0
            _log.warning("%d spans were not recorded: %s", lost, self.reason)

    def _close(self, file: RecordWriter) -> None:
        """Closes the file, and counts all that is in it as lost where its folder was removed."""
        if file.is_removed:
            self.lost += file.count
            self.reason = f"{file.path} was removed"
        try:
            file.close()
        except Exception as problem:
            self.tell(problem)

    def _has_passed(self, late: SpanParts | Mark) -> bool:
        try:
            return all(map(self._clock.has_passed, _marks(late)))
        except RuntimeError:  # a graph's event, or a device in trouble: reading it says so again
            return True

    def _write(self, late: SpanParts) -> None:
        start_ns, end_ns = self._clock.time_ns(late.start), self._clock.time_ns(late.end)
        file = self.open()
        if file is None:
            self._lose()
            return
        file.add(late.kind, start_ns, max(start_ns, end_ns), *late[3:8])
        self._write_moves(late.moves)

    def open(self) -> RecordWriter | None:
        """Returns the file, made now where there is none; None where nothing can be written."""
        if self._is_full:
            return None
        if self._file is None:
            try:
                self._file = file = self._open_file()
            except Exception as problem:  # whatever it is, it is no reason to end a training
                self._is_full = True
                self.tell(problem)
                return None
            file.when_full = self._lose
            file.when_misfit = self._misfit
            file.begin_step(self.step)
        return self._file

    def tell(self, problem: Exception) -> None:
        """Says once why spans are lost."""
        self.reason = self.reason or str(problem)
        if not self._has_told:
            _log.warning("%s; the training goes on", problem)
        self._has_told = True

    def _lose(self, problem: Exception | None = None) -> None:
        """Counts a span that found no space; no other is tried before the next step begins."""
        self._is_full, self.keep = True, self._keep_slowly
        self._count_lost(problem)

    def _misfit(self, problem: Exception) -> None:
        """Counts a span that is too large or small a number for its record; others go on."""
        self._count_lost(ValueError(f"a span's number does not fit its record: {problem}"))

    def _count_lost(self, problem: Exception | None) -> None:
        if problem:
            self.tell(problem)
        self.lost += 1
        if self._file:
            self._file.lose()


def _marks(late: SpanParts | Mark) -> tuple[Mark, ...]:
    """Returns the marks that must have passed: a span may begin and end on two streams."""
    return (late.start, late.end) if isinstance(late, SpanParts) else (late,)
