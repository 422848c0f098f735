"""The doors ``serried.record``, ``serried.record_steps`` and ``serried.span``.

    for batch in serried.record(loader, "runs/a"):             every step
    for batch in serried.record(loader, "runs/a", steps=(10, 13)):
    with serried.record_steps(step, 10, 13, folder="runs/a"):  steps 10, 11 and 12
    with serried.span("augment", microbatch=3):                within either

Without a folder, SERRIED_TRACE_DIR names it; without that they do nothing, so that the lines
may stay in a program. A file or a signal moves the window of a running job
(``recorder_window``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Generic, TypeVar

from serried import frameworks
from serried.errors import InputError
from serried.mesh import Layout
from serried.runtime.recorder.clock import Mark
from serried.runtime.recorder.header import world_size_here
from serried.runtime.recorder.host_time import HostTime
from serried.runtime.recording.session import StepRecorder

FOLDER = "SERRIED_TRACE_DIR"

Batch = TypeVar("Batch")
_current: StepRecorder | None = None


def record(
    batches: Iterable[Batch],
    folder: str | Path | None = None,
    *,
    steps: tuple[int, int] | None = None,
    accumulate: int | None = None,
    layout: Layout | None = None,
    framework: str = "",
    clock: HostTime | None = None,
) -> Recorded[Batch]:
    """Returns ``batches``, with the steps that are made of them recorded into ``folder``.

    A step is what is between two calls of an optimizer, or ``accumulate`` batches. ``steps``
    (first, stop) keeps some, half-open. ``layout`` or the ``framework`` say how the ranks
    stand; without them, all are data parallel. ``clock`` stamps the spans in place of this
    host's own. Raises InputError for steps, an ``accumulate``
    or a layout that cannot be, and where an earlier recording stands in the folder. A folder or
    disk that cannot be written is said, and the training goes on.
    """
    _require_steps(steps)
    _require_accumulate(accumulate)
    return Recorded(batches, _recorder(folder, layout, framework, clock), steps, accumulate)


@contextmanager
def record_steps(
    step: int,
    start: int,
    stop: int,
    stop_training: bool = False,
    *,
    folder: str | Path | None = None,
    layout: Layout | None = None,
    framework: str = "",
    clock: HostTime | None = None,
) -> Iterator[bool]:
    """Records the step in its body if ``start <= step < stop``, and gives whether it does.

    Between two recorded steps the hooks stay in, and keep nothing. With ``stop_training`` the
    program ends, by SystemExit, after step ``stop - 1``. Raises as ``record`` does.
    """
    recorder = _recorder(folder, layout, framework, clock)
    is_recorded = recorder is not None and recorder.window.holds(step, (start, stop))
    if recorder:
        recorder.begin_step(step, is_recorded=is_recorded)
    goes_on = False
    try:
        yield is_recorded
        goes_on = recorder is not None and recorder.window.goes_on(step, (start, stop))
    finally:
        if recorder:
            recorder.end_step(goes_on=goes_on)
    if stop_training and step == stop - 1:
        finish()
        raise SystemExit(0)


def span(name: str, microbatch: int = -1, stage: int = -1) -> AbstractContextManager[object]:
    """Records its body under ``name``, or as the action that the name is, such as F or B.

    Does nothing outside recorded steps.
    """
    recorder = _current
    if recorder is None or not recorder.is_on:
        return _NOTHING
    named = _new(_Named)  # a class with __init__ would be twice as long in the making
    named.recorder, named.name = recorder, name
    named.microbatch, named.stage = microbatch, stage
    return named


def finish() -> None:
    """Closes this process's file now; without it that is done as the interpreter ends."""
    global _current
    if _current:
        _current.close()
    _current = None


class Recorded(Generic[Batch]):
    """Is a loop's batches; going through them begins and ends the steps of the recorder."""

    def __init__(
        self,
        batches: Iterable[Batch],
        recorder: StepRecorder | None,
        steps: tuple[int, int] | None,
        accumulate: int | None,
    ) -> None:
        self._batches = batches
        self._recorder = recorder
        self._steps = steps
        self._accumulate = accumulate

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Batch]:
        if self._recorder is None:
            yield from self._batches
            return
        recorder, first = self._recorder, True
        seen = 0
        try:
            for batch in self._batches:
                done = recorder.has_stepped
                if self._accumulate:
                    done = seen % self._accumulate == 0
                if first or done:
                    step = recorder.step + 1
                    is_recorded = recorder.window.holds(step, self._steps)
                    recorder.begin_step(step, is_recorded=is_recorded)
                first = False
                seen += 1
                yield batch
        finally:
            recorder.end_step()


class _Named:  # kept flat for its cost
    """Is one span of the user's, from entering to leaving."""

    __slots__ = ("microbatch", "name", "recorder", "stage", "start")

    recorder: StepRecorder
    name: str
    microbatch: int
    stage: int
    start: Mark

    def __enter__(self) -> None:
        self.start = self.recorder.sink.mark()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        recorder = self.recorder
        if recorder.is_on:
            sink = recorder.sink
            end = sink.mark()
            try:
                action, number = sink.labels[self.name]
            except KeyError:
                sink.keep_named(self.name, self.start, end, self.stage, self.microbatch)
            else:
                sink.keep(action, self.start, end, self.stage, self.microbatch, -1, number)


_new = object.__new__
_NOTHING: AbstractContextManager[object] = nullcontext()


def _recorder(
    folder: str | Path | None, layout: Layout | None, framework: str, clock: HostTime | None
) -> StepRecorder | None:
    """Returns the process's recorder into the folder asked for; None where none is."""
    global _current
    asked = folder or os.environ.get(FOLDER)
    if not asked:
        return None
    _require_layout(layout)
    if framework:
        frameworks.find(framework)
    if _current is None or _current.asked != Path(asked):
        finish()
        _current = StepRecorder(Path(asked), layout, framework, clock)
    return _current


def _require_steps(steps: tuple[int, int] | None) -> None:
    if steps is not None and not 0 <= steps[0] < steps[1]:
        raise InputError(
            "steps {start} to {stop} hold none; give the first, and the one to stop at",
            start=steps[0],
            stop=steps[1],
        )


def _require_accumulate(accumulate: int | None) -> None:
    if accumulate is not None and accumulate < 1:
        raise InputError(
            "accumulate={count} makes no step; give the batches of one, 1 or more",
            count=accumulate,
        )


def _require_layout(layout: Layout | None) -> None:
    world_size = world_size_here()
    if layout is not None and layout.world_size != world_size:
        raise InputError(
            "the layout is of {asked} ranks, and this job has {found}; give one of {found}",
            asked=layout.world_size,
            found=world_size,
        )
