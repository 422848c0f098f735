"""The front of a recording session for a training that says itself what it computes and sends.

    │ data ├BROADCAST┤ │ F ├ALL_GATHER┤ │ B ├ALL_REDUCE┤ │ REDUCE_GRAD │ OPTIMIZER ├ALL_REDUCE┤ │

Collectives are hooked (``hooks.collectives``), DTensor's and FSDP2's too, and belong to the
computation that they are called in. On a GPU times are events of its streams, read in a later
step; nothing waits for the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from serried.action import COMPUTE, ActionKind
from serried.errors import InputError
from serried.plan.step_plan import PLAN_FILE, write_step_plan
from serried.runtime.hooks.collectives import CollectiveHooks
from serried.runtime.job.planned import step_plan
from serried.runtime.job.settings import TrainSettings
from serried.runtime.recorder.header import first_folder, header_of, keep_run, kept_run
from serried.runtime.recorder.host_time import HostTime
from serried.runtime.recorder.sink import SpanSink
from serried.runtime.recorder.tracer import Mark, Tracer
from serried.runtime.recording.session import RecordingSession
from serried.trace.measure.ranks.spent import DATA
from serried.trace.model.record import TracedJob
from serried.trace.model.record_writer import RecordWriter


class TrainingRecorder:
    """Tells one rank's session of its trainer's steps and work; does nothing without a session."""

    def __init__(
        self,
        session: RecordingSession[CollectiveHooks] | None = None,
        steps: tuple[int, int] | None = None,
    ) -> None:
        self._session, self._steps = session, steps
        self.tracer: Tracer = session.tracer if session else SpanSink(_no_file)

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
    ) -> TrainingRecorder:
        """Creates the rank's file where a trace is asked for, and compares hosts' clocks.

        ``host`` stands for this one where its clocks are to be others.
        """
        folder = settings.trace_dir
        if not folder:
            return cls()
        made = cls.into(
            *(folder, settings.job(backend)),
            run=run,
            rank=rank,
            steps=settings.trace_steps,
            host=host,
            num_local_ranks=num_local_ranks,
        )
        _keep_plan(folder, settings)
        return made

    @classmethod
    def into(
        cls,
        folder: Path,
        job: TracedJob,
        *,
        run: str,
        rank: int,
        steps: tuple[int, int] | None = None,
        host: HostTime | None = None,
        num_local_ranks: int = 0,
    ) -> TrainingRecorder:
        """Creates the file of ``rank`` in ``folder``, whose header says which ``job`` it is.

        ``steps`` (first, stop) are recorded, all without it.
        """
        host = host or HostTime()
        keep_run(first_folder(folder), run)
        header = header_of(run, rank, job, host)
        session = RecordingSession(
            folder, lambda: header, CollectiveHooks, host=host, num_local_ranks=num_local_ranks
        )
        session.tracer.open()  # now, so that a rank without spans has a file too
        return cls(session, steps)

    def begin_step(self, step: int) -> None:
        """Tells that ``step`` begins; its spans are kept when it lies in the window."""
        session = self._session
        if session:
            is_recorded = session.window.holds(step, self._steps)
            session.begin_step(step, is_recorded=is_recorded)

    def pause(self) -> None:
        """Drops what comes until the next step begins."""
        if self._session:
            self._session.end_step()

    def begin(self, stage: int = -1, microbatch: int = -1) -> Mark:
        """Marks when work begins, whose are the exchanges that come."""
        tracer = self.tracer
        tracer.work.begin(stage, microbatch)
        return tracer.mark() if tracer.is_on else 0

    def end(self, start: Mark, kind: ActionKind, stage: int = -1, microbatch: int = -1) -> None:
        """Keeps a span of the work that began at ``start``."""
        self.tracer.keep_since(start, kind, stage, microbatch)
        if kind in COMPUTE:
            self.tracer.work.begin(-1, -1)

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Times its body as the loading of the step's data."""
        start = self.begin()
        yield
        if self.tracer.is_on:
            self.tracer.keep_named(DATA, start, self.tracer.mark())

    def close(self) -> None:
        """Closes the rank's file, and tells what was lost."""
        if self._session:
            self._session.close()


def _no_file() -> RecordWriter:
    raise AssertionError("nothing is recorded without a trace folder")


def _keep_plan(folder: Path, settings: TrainSettings) -> None:
    """Writes beside the records what was planned of a step, where that is known.

    The first rank of a folder does so; ranks that begin at once write the same. A disk that will
    not do is told of by the recorder, and neither training nor recording needs the plan.
    """
    with suppress(InputError, OSError):
        plan = None if (folder / PLAN_FILE).exists() else step_plan(settings)
        if plan is not None:
            write_step_plan(folder, plan)


def run_before(trace_dir: Path | None) -> str:
    """Returns the run that this job's earlier attempts recorded, or "" where there is none."""
    return kept_run(first_folder(trace_dir)) if trace_dir else ""
