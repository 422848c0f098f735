"""A recorded run whose bubble is known: 1F1B placed by longest path, written by RecordWriter.

Forward and backward take fixed times and messages none, so every step's window is exactly
(m + p - 1)(f + b) and its bubble exactly (p - 1) / (m + p - 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from serried.action import Action, ActionKind, Span, Spans
from serried.pipeline import one_f_one_b
from serried.trace.model.record import RecordHeader, TracedJob
from serried.trace.model.record_writer import RecordWriter

FORWARD_NS = 1_000_000
BACKWARD_NS = 2_000_000
SEND_NS = 5_000
OPTIMIZER_NS = 700_000
GAP_NS = 300_000
WALL_NS = 1_700_000_000_000_000_000
"""Wall time at the run's instant 0."""


@dataclass(frozen=True)
class Run:
    """Is a small run: ``pp`` stages, ``tp * dp`` pipelines, in Megatron's default order."""

    pp: int = 4
    tp: int = 1
    dp: int = 1
    num_microbatches: int = 8
    num_steps: int = 2
    compute: str = "emulated"
    schedule: str = "1f1b"
    """What the job says; the spans are always those of 1F1B."""
    name: str = "run-a"

    @property
    def world_size(self) -> int:
        return self.pp * self.tp * self.dp

    @property
    def job(self) -> TracedJob:
        return TracedJob(
            framework="megatron",
            world_size=self.world_size,
            sizes={"tp": self.tp, "cp": 1, "pp": self.pp, "dp": self.dp, "ep": 1, "edp": self.dp},
            order="tp-cp-ep-dp-pp",
            schedule=self.schedule,
            num_microbatches=self.num_microbatches,
            compute=self.compute,
        )

    @property
    def window_ns(self) -> int:
        return (self.num_microbatches + self.pp - 1) * (FORWARD_NS + BACKWARD_NS)

    @property
    def busy_ns(self) -> int:
        return self.world_size * self.num_microbatches * (FORWARD_NS + BACKWARD_NS)

    def spans(self) -> list[Span]:
        """Returns the spans of all ranks, rank by rank, in the order a rank records them."""
        pipelines = self.world_size // self.pp
        one = [_step(self.pp, self.num_microbatches, step, self) for step in range(self.num_steps)]
        return [
            replace(span, rank=_rank(span.rank), peer=_rank(span.peer))
            for stage in range(self.pp)
            for pipeline in range(pipelines)
            for _rank in [_ranks_of(pipeline, pipelines)]
            for step in one
            for span in step[stage]
        ]

    def write(
        self,
        folder: Path,
        *,
        keep: Callable[[Span], bool] = lambda span: True,
        only: Iterable[int] | None = None,
        clocks: Sequence[Clock] | None = None,
        longer: Mapping[int, int] | None = None,
    ) -> Path:
        """Records the spans that ``keep`` says, of ranks ``only``, and returns ``folder``.

        ``clocks`` holds each rank's; without it all ranks share host a's. ``longer`` says by how
        many nanoseconds a rank's forwards begin earlier, which nobody waits for.
        """
        folder.mkdir(parents=True, exist_ok=True)
        spans = self.spans()
        for rank in range(self.world_size) if only is None else only:
            clock = clocks[rank] if clocks else Clock("a")
            recorder = RecordWriter(folder, clock.header(self.name, rank, self.job))
            for span in spans:
                if span.rank == rank and keep(span):
                    if span.action.kind == ActionKind.F:
                        early = (longer or {}).get(rank, 0)
                        span = replace(span, start_ns=span.start_ns - early)
                    record(recorder, span, clock.ahead_ns)
            recorder.close()
        return folder


@dataclass(frozen=True)
class Clock:
    """Is a host's monotonic clock, which shows ``ahead_ns`` at the run's instant 0.

    ``late_ns`` is how long the rank was held up between reading its two clocks.
    """

    host: str
    ahead_ns: int = 0
    late_ns: int = 0
    boot: str = "boot"

    def header(self, run: str, rank: int, job: TracedJob) -> RecordHeader:
        wall_ns = WALL_NS + self.late_ns
        return RecordHeader(run, rank, job, self.host, self.boot, self.ahead_ns, wall_ns)


def record(recorder: RecordWriter, span: Span, shift_ns: int = 0) -> None:
    """Adds ``span`` with its times moved by ``shift_ns``."""
    recorder.add(
        span.action.kind,
        span.start_ns + shift_ns,
        span.end_ns + shift_ns,
        step=span.step,
        stage=span.action.stage,
        microbatch=span.action.microbatch,
        peer=span.peer,
    )


def table(spans: Sequence[Span]) -> Spans:
    """Returns ``spans`` as columns, in their order."""
    rows = [
        (s.rank, s.action.stage, s.action.kind, s.action.microbatch, s.step, s.peer) for s in spans
    ]
    times = np.array([(s.start_ns, s.end_ns) for s in spans], dtype=np.int64).reshape(-1, 2)
    return Spans(*np.array(rows, dtype=np.int32).reshape(-1, 6).T, *times.T)


def _ranks_of(pipeline: int, pipelines: int) -> Callable[[int], int]:
    """Returns the map from a stage of one pipeline to its global rank; -1 stays -1."""
    return lambda stage: -1 if stage < 0 else stage * pipelines + pipeline


def _step(p: int, m: int, step: int, run: Run) -> list[list[Span]]:
    """Returns one pipeline's spans of one step, by stage."""
    zero = step * (run.window_ns + OPTIMIZER_NS + GAP_NS)
    actions = [[each for each in rank if each.kind in _DURATION] for rank in one_f_one_b(p, m)]
    ends: dict[Action, int] = {}
    spans: list[list[Span]] = [[] for _ in range(p)]
    at = [zero] * p
    done = [0] * p
    while any(done[s] < len(actions[s]) for s in range(p)):
        for s in range(p):
            while done[s] < len(actions[s]) and (source := _source(actions[s][done[s]], p)) in {
                None,
                *ends,
            }:
                action = actions[s][done[s]]
                arrival = zero if source is None else ends[source]
                spans[s] += _performed(action, source, at[s], max(at[s], arrival), step)
                ends[action] = at[s] = max(at[s], arrival) + _DURATION[action.kind]
                spans[s] += _sent(action, p, at[s], step)
                done[s] += 1
    last = max(at)
    for s in range(p):
        end = last + OPTIMIZER_NS
        spans[s].append(Span(s, Action(ActionKind.OPTIMIZER), step, last, end))
    return spans


_DURATION = {ActionKind.F: FORWARD_NS, ActionKind.B: BACKWARD_NS}


def _source(action: Action, p: int) -> Action | None:
    """Returns the action on another stage whose output ``action`` must wait for."""
    if action.kind == ActionKind.F:
        return Action(ActionKind.F, action.stage - 1, action.microbatch) if action.stage else None
    if action.stage == p - 1:
        return None
    return Action(ActionKind.B, action.stage + 1, action.microbatch)


def _performed(
    action: Action, source: Action | None, ready: int, start: int, step: int
) -> Iterator[Span]:
    """Yields the wait for ``action``'s message, if it has one, and the action itself."""
    s, i = action.stage, action.microbatch
    if source is not None:
        kind = ActionKind.RECV_F if action.kind == ActionKind.F else ActionKind.RECV_B
        yield Span(s, Action(kind, s, i), step, ready, start, source.stage)
    yield Span(s, action, step, start, start + _DURATION[action.kind])


def _sent(action: Action, p: int, end: int, step: int) -> Iterator[Span]:
    """Yields the send of what ``action`` made, where a neighbour waits for it.

    It ends with the action, for a message takes no time here.
    """
    s, i = action.stage, action.microbatch
    times = (end - SEND_NS, end)
    if action.kind == ActionKind.F and s < p - 1:
        yield Span(s, Action(ActionKind.SEND_F, s, i), step, *times, s + 1)
    if action.kind == ActionKind.B and s > 0:
        yield Span(s, Action(ActionKind.SEND_B, s, i), step, *times, s - 1)
