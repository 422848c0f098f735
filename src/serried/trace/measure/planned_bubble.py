"""The planned bubble of a recorded run: its schedule simulated, to stand beside the measured one.

    measured    1 - busy / (ranks x window)      of the run, messages and delays and all
    own times   the same, simulated              every stage with its own mean durations
    uniform     the same, simulated              every stage with the mean over stages

Messages cost nothing in both, so measured - own times is what messages, Python and late peers
cost, own times - uniform what unequal stages cost, and uniform the schedule itself. Three shares
go by the name of bubble (``schedule.bubble``) and all are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind, Spans
from serried.errors import InputError
from serried.pipeline import Costs, Request, Schedule, bubble, generate, simulate
from serried.pipeline.action_lists import from_actions
from serried.pipeline.packed import unpack
from serried.trace.measure.moments import without_waits
from serried.trace.measure.recognition import Recognition
from serried.trace.model.pairs import packed
from serried.trace.model.record import UNKNOWN_SCHEDULE
from serried.trace.model.recorded_order import RecordedOrder
from serried.trace.model.trace import Trace

AS_RECORDED = "the recorded order"
"""What the schedule is called where it is none that is known: the first step's own order."""

_HALVES = (ActionKind.I, ActionKind.W)

Times = NDArray[np.float64]
"""Nanoseconds, one for each stage."""


@dataclass(frozen=True)
class Shares:
    """Holds the three bubble shares of one simulation."""

    of_makespan: float
    over_ideal: float
    longest_window: float


@dataclass(frozen=True)
class PlannedBubble:
    """Holds what the schedule of a run would leave idle if messages cost nothing."""

    schedule: str
    own_times: Shares | None
    """None where spans hold the waits for their inputs, so that no stage's own time is known."""
    uniform: Shares


def planned_bubble(
    trace: Trace, spans: Spans, order: RecordedOrder, recognition: Recognition | None
) -> PlannedBubble | None:
    """Simulates the run's schedule with the mean durations of ``spans``, its complete steps.

    The schedule is the one that the job names, else the one that was recognised, else the
    recorded order. None where a stage has no forward or no backward to take a time from.
    """
    schedule = _schedule(trace, order, recognition)
    means = _means(without_waits(spans), order.num_stages)
    if schedule is None or means is None:
        return None
    own = _costs(means)
    even = _costs([np.full_like(column, column.mean()) for column in means])
    try:
        of_own = None if trace.waits_inside else _shares(schedule, own)
        return PlannedBubble(schedule.name, of_own, _shares(schedule, even))
    except InputError:
        return None  # an order that was cut, and waits for what nobody recorded


def _schedule(
    trace: Trace, order: RecordedOrder, recognition: Recognition | None
) -> Schedule | None:
    name, num_ranks = trace.job.schedule.lower(), len(order.codes)
    chunks = order.num_stages // num_ranks if order.num_stages > num_ranks else None
    try:
        if name != UNKNOWN_SCHEDULE:
            return generate(name, Request(num_ranks, trace.job.num_microbatches, chunks))
    except InputError:
        pass  # a schedule of the user's own, from a file
    if recognition is not None and recognition.is_exact:
        return recognition.schedule
    try:
        return from_actions(AS_RECORDED, [unpack(code) for code in order.codes])
    except InputError:
        return None  # a stage on two ranks, or one that nobody holds


def _means(spans: Spans, num_stages: int) -> list[Times] | None:
    """Returns by stage the mean times of forwards, of both halves, and of whole backwards.

    They are parts of the longest. Halves are half of a backward where only whole ones ran. None
    where a stage lacks one.
    """
    table = {
        kind: _by_stage(spans, kind, num_stages) for kind in (ActionKind.F, ActionKind.B, *_HALVES)
    }
    halves = table[ActionKind.I] + table[ActionKind.W]
    whole = np.where(np.isnan(table[ActionKind.B]), halves, table[ActionKind.B])
    parts = [np.where(np.isnan(table[kind]), whole / 2, table[kind]) for kind in _HALVES]
    means = [table[ActionKind.F], *parts, whole]
    longest = float(np.concatenate(means).max())  # NaN where a stage lacks one
    if not longest > 0:
        return None
    # Shares do not ask for the unit; the longest as 1 keeps damaged times of centuries exact.
    return [column / longest for column in means]


def _costs(means: Sequence[Times]) -> Costs:
    forward, inputs, weights, backward = (tuple(column.tolist()) for column in means)
    return Costs(forward, inputs, weights, backward)


def _by_stage(spans: Spans, kind: ActionKind, num_stages: int) -> Times:
    """Returns the mean time that each stage took for one microbatch, NaN where it did none.

    A job in pieces took the sum of its pieces.
    """
    mine = spans.where((spans.kind == kind) & (spans.stage >= 0) & (spans.stage < num_stages))
    total = np.bincount(mine.stage, mine.end_ns - mine.start_ns, minlength=num_stages)
    columns = (mine.stage, mine.rank, mine.step, mine.microbatch)
    names = packed([column.astype(np.int64) for column in columns])
    _, jobs = np.unique(names, return_index=True)
    count = np.bincount(mine.stage[jobs], minlength=num_stages)
    mean = np.full(num_stages, np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return mean


def _shares(schedule: Schedule, costs: Costs) -> Shares:
    found = bubble(simulate(schedule, costs))
    return Shares(float(found.of_makespan), float(found.over_ideal), float(found.longest_window))
