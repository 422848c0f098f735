"""The doors ``serried.record``, ``serried.record_steps`` and ``serried.span``.

    for batch in serried.record(loader, "runs/a"):             every step
    for batch in serried.record(loader, "runs/a", steps=(10, 13)):
    with serried.record_steps(step, 10, 13, folder="runs/a"):  steps 10, 11 and 12
    with serried.span("augment", microbatch=3):                within either

Without a folder, SERRIED_TRACE_DIR names it; without that they do nothing, so that the lines
may stay in a program. ``echo 500:520 > runs/a/steps`` moves the window of a running job.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Generic, TypeVar

from serried.errors import InputError
from serried.mesh import Layout
from serried.runtime.recorder import StepRecorder
from serried.span import ActionKind

FOLDER = "SERRIED_TRACE_DIR"
WINDOW_FILE = "steps"
"""Name of the file in the folder that moves the window: first step, colon, step to stop at."""

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
) -> Recorded[Batch]:
    """Returns ``batches``, with the steps that are made of them recorded into ``folder``.

    A step is what is between two calls of an optimizer, or ``accumulate`` batches. ``steps``
    (first, stop) keeps some, half-open. ``layout`` or the ``framework`` say how the ranks
    stand; without them, all are data parallel. Raises InputError where an earlier recording
    stands in the folder, EnvironmentProblem where none can be made.
    """
    return Recorded(batches, _recorder(folder, layout, framework), Window(steps), accumulate)


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
) -> Iterator[bool]:
    """Records the step in its body if ``start <= step < stop``, and gives whether it does.

    With ``stop_training`` the program ends, by SystemExit, after step ``stop - 1``. Raises as
    ``record`` does.
    """
    recorder = _recorder(folder, layout, framework)
    is_recorded = recorder is not None and start <= step < stop
    if recorder:
        recorder.begin_step(step, is_recorded=is_recorded)
    try:
        yield is_recorded
    finally:
        if recorder:
            recorder.end_step()
    if stop_training and step == stop - 1:
        finish()
        raise SystemExit(0)


def span(name: str, microbatch: int = -1, stage: int = -1) -> AbstractContextManager[object]:
    """Records its body under ``name``, or as the action that the name is, such as F or B.

    Does nothing outside recorded steps.
    """
    if _current is None or not _current.is_on:
        return _NOTHING
    return _Named(_current, name, microbatch, stage)


def finish() -> None:
    """Closes this process's file now; without it that is done as the interpreter ends."""
    global _current
    if _current:
        _current.close()
    _current = None


class Window:
    """Says which steps are recorded: those asked for, or those that a file asks for since."""

    def __init__(self, steps: tuple[int, int] | None) -> None:
        """Raises InputError unless ``steps`` are two numbers, the first below the second."""
        if steps is not None and not 0 <= steps[0] < steps[1]:
            raise InputError(
                "steps {start} to {stop} hold none; give the first, and the one to stop at",
                start=steps[0],
                stop=steps[1],
            )
        self._steps = steps
        self._changed_ns = 0

    def holds(self, step: int, folder: Path) -> bool:
        """Tells whether ``step`` is recorded; looks at the file's time, and reads it when new."""
        path = folder / WINDOW_FILE
        try:
            changed_ns = path.stat().st_mtime_ns
            if changed_ns != self._changed_ns:
                start, _, stop = path.read_text(encoding="utf-8").partition(":")
                self._steps, self._changed_ns = (int(start), int(stop)), changed_ns
        except (OSError, ValueError):
            pass  # none there, or half written: what was asked before holds
        return self._steps is None or self._steps[0] <= step < self._steps[1]


class Recorded(Generic[Batch]):
    """Is a loop's batches; going through them begins and ends the steps of the recorder."""

    def __init__(
        self,
        batches: Iterable[Batch],
        recorder: StepRecorder | None,
        window: Window,
        accumulate: int | None,
    ) -> None:
        self._batches = batches
        self._recorder = recorder
        self._window = window
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
                    is_recorded = self._window.holds(step, recorder.folder)
                    recorder.begin_step(step, is_recorded=is_recorded)
                first = False
                seen += 1
                yield batch
        finally:
            recorder.end_step()


class _Named:
    """Is one span of the user's, from entering to leaving."""

    __slots__ = ("_kind", "_name", "_recorder", "_start", "_where")

    def __init__(self, recorder: StepRecorder, name: str, microbatch: int, stage: int) -> None:
        self._recorder = recorder
        self._kind = ActionKind.__members__.get(name, ActionKind.SPAN)
        self._name = name if self._kind == ActionKind.SPAN else ""
        self._where = (microbatch, stage)

    def __enter__(self) -> None:
        self._start = self._recorder.mark()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        microbatch, stage = self._where
        self._recorder.add(
            self._kind, self._start, stage=stage, microbatch=microbatch, name=self._name
        )


_NOTHING: AbstractContextManager[object] = nullcontext()


def _recorder(
    folder: str | Path | None, layout: Layout | None, framework: str
) -> StepRecorder | None:
    """Returns the process's recorder into the folder asked for; None where none is."""
    global _current
    asked = folder or os.environ.get(FOLDER)
    if not asked:
        return None
    if _current is None or _current.asked != Path(asked):
        finish()
        _current = StepRecorder(Path(asked), layout, framework)
    return _current
