"""Analysis: all that is measured of a recorded run, in one value for every view.

Trace ──> statistics     bubble, idle time by cause, messages        (complete steps)
      ├─> order          which schedule ran, and where a rank left it
      ├─> planned        the bubble that schedule would have
      ├─> throughput     microbatches and tokens a second
      ├─> paces          ranks beside the others of their stages
      ├─> slow_stage     the stage that all others wait for
      ├─> periods        what ranks spent their steps on, where there is no pipeline
      ├─> path           what the step's length is made of
      ├─> traffic        what kinds of groups moved, and how fast
      └─> replayed       what the step would be without somebody's slowness
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from serried.action import Spans
from serried.errors import InputError
from serried.finding import said
from serried.pipeline import ideal_bubble
from serried.trace.measure.overlay import Overlay, overlay_of
from serried.trace.measure.path.gaps import Gap, largest_gaps
from serried.trace.measure.path.recorded_path import RecordedPath, recorded_path
from serried.trace.measure.planned_bubble import PlannedBubble, planned_bubble
from serried.trace.measure.ranks.period import StepPeriods, step_periods
from serried.trace.measure.ranks.slow_stage import SlowStage, slow_stage
from serried.trace.measure.ranks.slowest import RankPace, paces
from serried.trace.measure.recognition import Recognition, recognise
from serried.trace.measure.replay_spans import replay_of_trace
from serried.trace.measure.span_traffic import span_traffic
from serried.trace.measure.statistics import Statistics, measure
from serried.trace.measure.step_table import StepTable, step_table
from serried.trace.measure.throughput import Throughput, throughput
from serried.trace.measure.what_if import WhatIf, what_if
from serried.trace.model.group_traffic import GroupTraffic
from serried.trace.model.messages import CLOSED_FORM
from serried.trace.model.progress import LARGE_SPANS, Listener, unheard
from serried.trace.model.record import UNKNOWN_SCHEDULE
from serried.trace.model.recorded_order import RecordedOrder, recorded_order, whole_pipeline
from serried.trace.model.trace import Trace


@dataclass(frozen=True, eq=False)
class Analysis:
    """Holds what is measured of a trace; what cannot be told of it is None or empty."""

    statistics: Statistics
    schedule: str | None
    """The schedule that the job names, else the one whose order was recorded."""
    order: RecordedOrder | None
    """The first pipeline's, in the first complete step; None, as all of the schedule, without."""
    recognition: Recognition | None
    planned: PlannedBubble | None
    throughput: Throughput | None
    paces: tuple[RankPace, ...]
    """Empty where spans hold the waits for their inputs, which are nobody's slowness."""
    slow_stage: SlowStage | None
    periods: StepPeriods | None
    """None with a pipeline, whose bubble says where its time went."""
    path: RecordedPath | None
    gaps: tuple[Gap, ...]
    """The longest waits of ranks, each with what it came from; empty as ``paces``."""
    replayed: WhatIf | None
    traffic: tuple[GroupTraffic, ...]
    """What kinds of groups moved; empty where spans do not carry it."""
    spans: Spans
    """Those of complete steps, the warm-up's too."""

    def table(self) -> StepTable:
        """Returns what every rank did for every stage in every step."""
        return step_table(self.spans)


def analyse(
    trace: Trace, *, tokens_per_microbatch: int | None = None, listener: Listener = unheard
) -> Analysis:
    """Measures a trace in every way there is; ``listener`` hears of each where it is large."""
    hear = listener if len(trace.spans) >= LARGE_SPANS else unheard
    found = analyse_findings(trace, listener=hear)
    steps = np.array([each.step for each in found.statistics.steps], dtype=np.int32)
    usual = _usual(found.spans, found.statistics)
    # A replay asks about every rank by itself, so a long run is replayed in part.
    sample = _sample(trace, steps)
    hear(said("replaying {count:,} spans without each rank's slowness", count=len(sample.spans)))
    replay = replay_of_trace(sample)
    return replace(
        found,
        throughput=throughput(trace, usual, tokens_per_microbatch=tokens_per_microbatch),
        path=recorded_path(trace, usual) if len(steps) else None,
        replayed=what_if(replay) if replay else None,
        traffic=tuple(span_traffic(trace)),
    )


def analyse_findings(trace: Trace, *, listener: Listener = unheard) -> Analysis:
    """Returns of an analysis what a run is judged by; what is only described by it is left out."""
    listener(said("measuring the steps of {count:,} spans", count=len(trace.spans)))
    stats = measure(trace)
    steps = np.array([each.step for each in stats.steps], dtype=np.int32)
    spans = trace.spans.where(np.isin(trace.spans.step, steps))
    usual = _usual(spans, stats)
    order = recognition = planned = None
    listener(said("comparing the order with schedules, and finding the critical path"))
    if len(steps) and trace.has_pipeline:
        first = whole_pipeline(trace.layout, trace.job.world_size, trace.ranks)
        order = recorded_order(spans, int(steps[0]), first)
    is_named = trace.has_pipeline and trace.job.schedule != UNKNOWN_SCHEDULE
    schedule = trace.job.schedule if is_named else None
    if order is not None:
        recognition = recognise(order)
        planned = planned_bubble(trace, usual, order, recognition)
        # Only an order that fits to the last action says which ideal the run is to be held against.
        if schedule is None and recognition is not None and recognition.is_exact:
            schedule = recognition.best.name
            stats = _with_ideal(stats, schedule, order)
    found = () if trace.waits_inside else paces(trace, steps)
    counted = np.array([each.step for each in stats.counted], dtype=np.int32)
    has_stages = trace.has_pipeline and bool(found)
    return Analysis(
        statistics=stats,
        schedule=schedule,
        order=order,
        recognition=recognition,
        planned=planned,
        throughput=None,
        paces=found,
        slow_stage=slow_stage(trace, counted, found) if has_stages else None,
        periods=None if trace.has_pipeline else step_periods(trace, steps),
        path=None,
        gaps=largest_gaps(trace, usual, _plan(trace)),
        replayed=None,
        traffic=(),
        spans=spans,
    )


def _usual(spans: Spans, stats: Statistics) -> Spans:
    """Returns ``spans`` without those of steps that were starting up."""
    if not stats.num_warm_up:
        return spans
    return spans.where(np.isin(spans.step, [each.step for each in stats.counted]))


def _plan(trace: Trace) -> Overlay | None:
    try:
        return overlay_of(trace)
    except InputError:
        return None


_MOST_REPLAYED = 1_000_000
"""How many spans are replayed; of a longer run as many steps as that are, evenly spread."""
_MOST_CURED = 100_000_000
"""The same, counted once for every rank, for each is asked about by a replay of its own."""


def _sample(trace: Trace, steps: NDArray[np.int32]) -> Trace:
    """Returns ``trace`` with as few of its steps as can be replayed in seconds."""
    spans, ranks = len(trace.spans), len(trace.ranks)
    parts = max(-(-spans // _MOST_REPLAYED), -(-spans * ranks // _MOST_CURED))
    if parts <= 1 or len(steps) <= 1:
        return trace
    kept = steps[np.linspace(0, len(steps) - 1, max(1, len(steps) // parts)).astype(int)]
    return replace(trace, spans=trace.spans.where(np.isin(trace.spans.step, kept)))


def _with_ideal(stats: Statistics, schedule: str, order: RecordedOrder) -> Statistics:
    """Returns ``stats`` with the least bubble of a schedule that was recognised."""
    if schedule not in CLOSED_FORM:
        return stats
    return replace(stats, ideal=ideal_bubble(len(order.codes), order.num_microbatches))
