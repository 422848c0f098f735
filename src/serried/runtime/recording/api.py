"""The front of a session for a program's own loop: ``record``, ``record_steps`` and ``span``.

    for batch in serried.record(loader, "runs/a"):             every step
    for batch in serried.record(loader, "runs/a", steps=(10, 13)):
    with serried.record_steps(step, 10, 13, folder="runs/a"):  steps 10, 11 and 12
    with serried.span("augment", microbatch=3):                within either

Without a folder, SERRIED_TRACE_DIR names it; without that they do nothing, so that the lines
may stay in a program. SERRIED_METRICS and SERRIED_EXPORT export figures of the running job
(``beside``). A file or a signal moves the window of a running job (``recorder.window``).
A process has one session, so that loops of several epochs go into one file; its steps go on
counting.
"""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Generic, TypeVar

from serried import frameworks
from serried.errors import EnvironmentProblem, InputError
from serried.mesh import Layout
from serried.runtime.hooks.megatron import megatron_layout
from serried.runtime.hooks.program import ProgramHooks
from serried.runtime.recorder.header import folder_here, header_here, rank_here, world_size_here
from serried.runtime.recorder.host_time import HostTime
from serried.runtime.recorder.sink import SpanSink
from serried.runtime.recorder.tracer import Mark
from serried.runtime.recording.beside import exports_asked, watch_beside
from serried.runtime.recording.session import RecordingSession
from serried.trace.model.record import RecordHeader, file_name
from serried.trace.model.record_writer import make_folder

FOLDER = "SERRIED_TRACE_DIR"
MOST_BATCHES = 64
"""Batches of one step after which it is asked whether an optimizer of torch will ever end it."""
_log = logging.getLogger("serried")

Batch = TypeVar("Batch")
Session = RecordingSession[ProgramHooks]
Exported = tuple[str | int | None, str | Sequence[str] | None]
"""Where figures are served, and sent."""
_current: Session | None = None


def record(
    batches: Iterable[Batch],
    folder: str | Path | None = None,
    *,
    steps: tuple[int, int] | None = None,
    accumulate: int | None = None,
    layout: Layout | None = None,
    framework: str = "",
    clock: HostTime | None = None,
    metrics: str | int | None = None,
    export: str | Sequence[str] | None = None,
) -> RecordedBatches[Batch]:
    """Returns ``batches``, with the steps that are made of them recorded into ``folder``.

    A step is what is between two calls of an optimizer, or ``accumulate`` batches. ``steps``
    (first, stop) keeps some, half-open. ``layout`` or the ``framework`` say how the ranks
    stand; without them, all are data parallel. ``clock`` stamps the spans in place of this
    host's own. ``metrics`` ([HOST:]PORT) serves step time, bubble, lateness and stalls to
    Prometheus while the job runs, and ``export`` (KIND[=WHERE], or several) sends them, as
    ``serried diagnose --watch`` does; a process beside rank 0 does both.

    Raises InputError for steps, an ``accumulate`` or a layout that cannot be, and where an
    earlier recording stands in the folder. A folder or disk that cannot be written is said, and
    so is an export that cannot be; the training goes on.
    """
    _require_steps(steps)
    _require_accumulate(accumulate)
    session = _session_for(folder, layout, framework, clock, (metrics, export))
    return RecordedBatches(batches, session, steps, accumulate)


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
    metrics: str | int | None = None,
    export: str | Sequence[str] | None = None,
) -> Iterator[bool]:
    """Records the step in its body if ``start <= step < stop``, and gives whether it does.

    Between two recorded steps the hooks stay in, and keep nothing. With ``stop_training`` the
    program ends, by SystemExit, after step ``stop - 1``. Exports and raises as ``record`` does.
    """
    session = _session_for(folder, layout, framework, clock, (metrics, export))
    is_recorded = session is not None and session.window.holds(step, (start, stop))
    if session:
        session.begin_step(step, is_recorded=is_recorded)
        session.hooks.loading.keep_held()
    goes_on = False
    try:
        yield is_recorded
        goes_on = session is not None and session.window.goes_on(step, (start, stop))
    finally:
        if session:
            session.end_step(goes_on=goes_on)
    if stop_training and step == stop - 1:
        finish()
        raise SystemExit(0)


def span(name: str, microbatch: int = -1, stage: int = -1) -> AbstractContextManager[object]:
    """Records its body under ``name``, or as the action that the name is, such as F or B.

    Does nothing outside recorded steps.
    """
    session = _current
    if session is None or not session.tracer.is_on:
        return _NOTHING
    named = _new(_NamedSpan)  # a class with __init__ would be twice as long in the making
    named.sink, named.name = session.tracer, name
    named.microbatch, named.stage = microbatch, stage
    return named


def finish() -> None:
    """Closes this process's file now; without it that is done as the interpreter ends."""
    global _current
    if _current:
        _current.close()
    _current = None


class RecordedBatches(Generic[Batch]):
    """Gives a loop's batches; going through them begins and ends the steps of the session."""

    def __init__(
        self,
        batches: Iterable[Batch],
        session: Session | None,
        steps: tuple[int, int] | None,
        accumulate: int | None,
    ) -> None:
        self._batches = batches
        self._session = session
        self._steps = steps
        self._accumulate = accumulate

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Batch]:
        if self._session is None:
            yield from self._batches
            return
        session, first = self._session, True
        seen = 0
        try:
            for batch in session.hooks.loading.over(self._batches):
                # A step may take several batches: the optimizer's step, or the number given, tells
                # where it ends.
                done = session.hooks.has_stepped
                if self._accumulate:
                    done = seen % self._accumulate == 0
                if seen == MOST_BATCHES and session.tracer.step == 0 and not done:
                    _log.warning(
                        "no optimizer of torch has stepped in %s batches, so that all are of step "
                        "0; serried.record(batches, accumulate=1) makes a step of each",
                        MOST_BATCHES,
                    )
                if first or done:
                    step = session.tracer.step + 1
                    is_recorded = session.window.holds(step, self._steps)
                    session.begin_step(step, is_recorded=is_recorded)
                session.hooks.loading.keep_held()
                first = False
                seen += 1
                yield batch
        finally:
            session.end_step()


class _NamedSpan:  # kept flat for its cost
    """Times one span of the user's, from entering to leaving."""

    __slots__ = ("microbatch", "name", "sink", "stage", "start")

    sink: SpanSink
    name: str
    microbatch: int
    stage: int
    start: Mark

    def __enter__(self) -> None:
        self.start = self.sink.mark()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        sink = self.sink
        if sink.is_on:
            end = sink.mark()
            try:
                action, number = sink.labels[self.name]
            except KeyError:
                sink.keep_named(self.name, self.start, end, self.stage, self.microbatch)
            else:
                sink.keep(action, self.start, end, self.stage, self.microbatch, -1, number)


_new = object.__new__
_NOTHING: AbstractContextManager[object] = nullcontext()


def _session_for(
    folder: str | Path | None,
    layout: Layout | None,
    framework: str,
    clock: HostTime | None,
    exported: Exported,
) -> Session | None:
    """Returns the process's session into the folder asked for; None where none is."""
    global _current
    asked = folder or os.environ.get(FOLDER)
    if not asked:
        return None
    _require_layout(layout)
    if framework:
        frameworks.find(framework)
    # A program that asks for another folder has ended its recording into the one before.
    if _current is None or _current.folder != folder_here(Path(asked)):
        finish()
        _current = _made_session(Path(asked), layout, framework, clock or HostTime())
        watch_beside(Path(asked), exports_asked(*exported))
    return _current


def _made_session(asked: Path, layout: Layout | None, framework: str, host: HostTime) -> Session:
    """Makes the folder, or says that it cannot; the training goes on without a recording.

    Raises InputError where an earlier recording stands in it.
    """
    folder = folder_here(asked)
    problem = _trouble_with(folder)

    def header() -> RecordHeader:
        hooks = session.hooks
        seen = layout or (None if framework else megatron_layout())
        return header_here(asked, seen, framework or hooks.framework(), hooks.num_stages, host)

    session: Session = RecordingSession(folder, header, ProgramHooks, host=host)
    if problem:
        session.tracer.tell(problem)
    return session


def _trouble_with(folder: Path) -> EnvironmentProblem | OSError | None:
    """Makes ``folder``; returns why it cannot be recorded into, where that is the disk's doing."""
    try:
        make_folder(folder)
        path = folder / file_name(rank_here())
        is_taken = path.exists()
    except (EnvironmentProblem, OSError) as problem:
        return problem
    if is_taken:
        raise InputError(
            "{path} holds an earlier recording; choose another folder or remove it", path=path
        )
    return None


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


atexit.register(finish)
