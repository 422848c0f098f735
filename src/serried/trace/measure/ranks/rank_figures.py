"""Figures of ranks: for every rank one number of each kind that a map can be coloured by.

Times are nanoseconds of a mean complete step. What is a share is one of the rank's own window:

    busy + idle = 1
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, Spans
from serried.errors import InputError
from serried.trace.measure.moments import without_waits
from serried.trace.measure.overlay import Overlay, overlay_of
from serried.trace.measure.statistics import WORK, Statistics
from serried.trace.model.pairs import whole_computations
from serried.trace.model.trace import Trace

Values = NDArray[np.float64]
"""One a rank of the world; NaN for a rank of which it is not known."""

SHARES = ("busy", "idle", "jitter", "slowness")
"""Figures that are shares; all others are nanoseconds."""

IDLE = ("warm_up", "late_peer", "transfer", "other", "cool_down")
"""The causes of idle time among them; sends and reductions count by their own time."""

FIGURES = (
    *("busy", "idle", "compute", *WORK, "receive_wait", *IDLE),
    *("jitter", "slowness", "lateness", "excess"),
)
"""Every figure there is, in the order in which it is offered:

busy, idle       shares of the step's window
compute, …       time of each kind of work, waits for messages, and idle time by cause
jitter           standard deviation of the rank's computing time over its mean, step by step
slowness         how much longer it computed than the median rank of its place in the pipeline
lateness         how much later than planned its computations began, the mean
excess           how much longer than planned it computed
"""


def rank_figures(trace: Trace, stats: Statistics, overlay: Overlay | None) -> dict[str, Values]:
    """Returns every figure that can be told of the trace, in order; some need its ``overlay``.

    A figure that is 0 for every rank is left out.
    """
    if not stats.steps:
        return {}
    world = trace.job.world_size
    window = float(np.mean([step.window_ns for step in stats.counted]))
    at = np.array([each.rank for each in stats.ranks])

    def spread(values: list[float]) -> Values:
        figure = np.full(world, np.nan)
        figure[at] = values
        return figure

    compute = spread([each.compute_ns for each in stats.ranks])
    found = {
        "busy": compute / window,
        "idle": 1 - compute / window,
        "compute": compute,
        "receive_wait": spread([each.receive_wait_ns for each in stats.ranks]),
    }
    for name in WORK:
        found[name] = spread([each.by_work_ns[name] for each in stats.ranks])
    for cause in IDLE:
        found[cause] = spread([each.idle_ns[cause] for each in stats.ranks])
    steps = np.array([step.step for step in stats.counted])
    # First the waits, then the kinds: once the collectives are filtered out, nothing tells how
    # long a computation waited inside.
    spans = without_waits(trace.spans.where(np.isin(trace.spans.step, steps)))
    spans = whole_computations(spans.where(np.isin(spans.kind, list(COMPUTE))))
    found["jitter"] = _jitter(spans, steps, world)
    if overlay:
        found["slowness"] = _slowness(compute, overlay)
        found |= _against_plan(spans, overlay, len(steps), world)
    return {name: found[name] for name in FIGURES if np.nan_to_num(found.get(name, 0)).any()}


def figures_of(trace: Trace, stats: Statistics) -> dict[str, Values]:
    """Returns every figure that can be told of a trace, beside its plan where it has one."""
    try:
        plan = overlay_of(trace)
    except InputError:
        plan = None
    return rank_figures(trace, stats, plan)


def _jitter(spans: Spans, steps: NDArray[np.int64], world: int) -> Values:
    """Returns how much each rank's computing time varies from step to step, over its mean."""
    cell = np.searchsorted(steps, spans.step) * world + spans.rank
    took = np.bincount(cell, spans.end_ns - spans.start_ns, minlength=len(steps) * world)
    table = took.reshape(len(steps), world)
    mean = table.mean(axis=0)
    jitter = np.full(world, np.nan)
    np.divide(table.std(axis=0), mean, out=jitter, where=mean > 0)
    return jitter


def _slowness(compute: Values, overlay: Overlay) -> Values:
    """Returns each rank's computing time over the median of its place in the pipeline, less 1."""
    found = np.full(len(compute), np.nan)
    for place in np.unique(overlay.place):
        mine = (overlay.place == place) & (compute > 0)
        if mine.any():
            found[mine] = compute[mine] / np.median(compute[mine]) - 1
    return found


def _against_plan(spans: Spans, overlay: Overlay, num_steps: int, world: int) -> dict[str, Values]:
    """Returns each rank's mean lateness, and how much longer than planned it computed a step."""
    late, longer = overlay.late_ns(spans), overlay.longer_ns(spans)
    known = ~np.isnan(late)
    rank = spans.rank[known]
    count = np.bincount(rank, minlength=world)
    late_sum, longer_sum = (
        np.bincount(rank, column[known], minlength=world) for column in (late, longer)
    )
    nothing = np.full(world, np.nan)
    return {
        "lateness": np.divide(late_sum, count, out=nothing.copy(), where=count > 0),
        "excess": np.where(count > 0, longer_sum / num_steps, nothing),
    }
