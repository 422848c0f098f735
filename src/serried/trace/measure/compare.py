"""Comparison of two runs, or of a run and its plan: matched action by action, every second placed.

    window of A - window of B  =  sum over kinds of work (mean per rank, A - B)
                               +  sum over causes of idle time (mean per rank, A - B)

A window is, on every rank, computation or idle time, and idle time has causes that add up
(``idle``): so where the time went is an exact account, not a guess. Actions match by rank and
name (``3F2``); each one's duration is the median over the complete steps of its run. The order
is that of the first complete step, computations only. A computation that was recorded in pieces
(Paddle's ``backward(chunk0)`` and ``backward(chunk1)``) is one, as long as all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, Action, ActionKind, Spans
from serried.errors import InputError, Listed, listed
from serried.pipeline import Request, Schedule, fit, generate, planned_spans, simulate
from serried.trace.measure.moments import without_waits
from serried.trace.measure.recognition import recognise
from serried.trace.measure.statistics import Statistics, measure
from serried.trace.model.laid_out import laid_out, trace_of_layout
from serried.trace.model.pairs import whole_computations
from serried.trace.model.record import UNKNOWN_SCHEDULE
from serried.trace.model.recorded_order import recorded_order, whole_pipeline
from serried.trace.model.trace import Trace

_KINDS = {"forward": 0, "backward": 1, "weight": 2}
"""The kinds of work that fill a window, beside idle time."""

_STEPS_TRIED = 4
"""How many steps are looked at for an order that is known: the first may not be whole."""


@dataclass(frozen=True)
class ActionChange:
    """Says how one action's duration differs, in nanoseconds."""

    rank: int
    action: str
    first_ns: float
    second_ns: float

    @property
    def more_ns(self) -> float:
        """How much longer the first takes."""
        return self.first_ns - self.second_ns


@dataclass(frozen=True)
class OrderChange:
    """Says where one rank's order first differs; an action is None past the end of a list."""

    rank: int
    place: int
    """How many actions both do alike before it."""
    first: str | None
    second: str | None


@dataclass(frozen=True)
class TraceComparison:
    """Holds how two traces differ; times are nanoseconds of a mean step."""

    first: Statistics
    second: Statistics
    matched: int
    only_first: int
    only_second: int
    account: dict[str, float]
    """By kind of work and cause of idle time, how much more the first spends, a mean per rank;
    they add up to ``more_ns``."""
    changes: tuple[ActionChange, ...]
    """The actions whose durations differ most, the largest first."""
    orders: tuple[OrderChange, ...]
    """The ranks whose order differs, by rank."""

    @property
    def more_ns(self) -> float:
        """How much longer the first's mean window is."""
        return _window(self.first) - _window(self.second)


def compare_traces(first: Trace, second: Trace) -> TraceComparison:
    """Compares two traces of jobs with the same number of ranks.

    Raises InputError when their ranks differ in number, and when one has no complete step.
    """
    if first.job.world_size != second.job.world_size:
        raise InputError(
            "{first} has {ranks} ranks and {second} has {others}; runs of one size can be compared",
            first=first.run,
            ranks=first.job.world_size,
            second=second.run,
            others=second.job.world_size,
        )
    stats = []
    for trace in (first, second):
        stats.append(measure(trace))
        if not stats[-1].steps:
            raise InputError(
                "no step of {run} was finished by every rank, so nothing of it can be compared",
                run=trace.run,
            )
    ours, theirs = (
        _medians(trace, each) for trace, each in zip((first, second), stats, strict=True)
    )
    # Runs of one size may be laid out in two ways: then no rank does what it does in the other.
    both = sorted(ours.keys() & theirs.keys())
    if not both:
        raise InputError(
            "no rank of {first} ({sizes}) does what it does in {second} ({others}); runs of one "
            "layout can be compared",
            first=first.run,
            sizes=_sizes(first),
            second=second.run,
            others=_sizes(second),
        )
    changes = [
        ActionChange(rank, name, ours[rank, name], theirs[rank, name]) for rank, name in both
    ]
    return TraceComparison(
        first=stats[0],
        second=stats[1],
        matched=len(both),
        only_first=len(ours) - len(both),
        only_second=len(theirs) - len(both),
        account=_account(*stats),
        changes=tuple(sorted(changes, key=lambda each: -abs(each.more_ns))),
        orders=tuple(_orders(first, second, *stats)),
    )


def planned_trace(run: Trace, schedule: Schedule | None = None) -> Trace:
    """Returns the plan of ``run`` as a trace: its schedule, timed with the run's own medians.

    Messages take no time in it, and every stage its own median, so what the run spends beyond it
    is not its computations' doing. ``schedule`` stands in where the run does not name one.

    Raises InputError when the run's schedule is not known, or does not have the run's stages.
    """
    plan, one = planned_step(run, schedule)
    num_ranks = run.job.sizes.get("pp", 1)
    layout = run.layout or laid_out("megatron", run.job.world_size, {"pp": num_ranks})
    # One pipeline is planned, and the others are its copies under their own ranks.
    copies = [
        Spans(**{**one.columns(), "rank": column[one.rank].astype(np.int32)})
        for column in pipelines_of(run)
    ]
    hosts = {host.name: host.ranks for host in run.hosts}
    spans = Spans.joined(copies)
    spans = spans.where(np.isin(spans.rank, run.ranks))
    return trace_of_layout(f"{run.run} as planned", layout, hosts, spans, schedule=plan.name)


def planned_step(run: Trace, schedule: Schedule | None = None) -> tuple[Schedule, Spans]:
    """Returns the schedule of ``run`` and one planned step of one pipeline, from 0.

    A span's rank is its place in the pipeline. Raises InputError as ``planned_trace`` does.
    """
    num_ranks = run.job.sizes.get("pp", 1)
    plan = schedule
    if plan is None and run.job.schedule == UNKNOWN_SCHEDULE:
        plan = _recognised(run)
    plan = plan or generate(
        run.job.schedule,
        Request(num_ranks, run.job.num_microbatches, _chunks(run.spans, num_ranks)),
    )
    stages, planned = int(run.spans.stage.max()) + 1, plan.placement.num_stages
    if stages != planned:
        raise InputError(
            "the run has {stages} stages and {schedule} has {planned}; give the schedule that ran",
            stages=stages,
            schedule=plan.name,
            planned=planned,
        )
    # A wait inside a computation is none of its work, so the plan is timed without.
    alone = whole_computations(without_waits(run.spans))
    return plan, planned_spans(simulate(plan, fit(alone)), unit_ns=1)


def _recognised(run: Trace) -> Schedule:
    """Returns the schedule whose order the first whole step of ``run`` has.

    Raises InputError where there is none.
    """
    ranks = whole_pipeline(run.layout, run.job.world_size, run.ranks)
    nearest = ""
    for step in np.unique(run.spans.step)[:_STEPS_TRIED].tolist():
        order = recorded_order(run.spans, step, ranks)
        found = None if order is None else recognise(order)
        if found is not None and found.is_exact:
            return found.schedule
        # Should no step fit, the first that could be compared says what comes nearest.
        nearest = nearest or ("" if found is None else found.best.name)
    if nearest:
        raise InputError(
            "{run} does not say which schedule ran, and its order is none that is known, nearest "
            "to {schedule}; name one by --name",
            run=run.run,
            schedule=nearest,
        )
    raise InputError("{run} does not say which schedule ran; name it by --name", run=run.run)


def pipelines_of(run: Trace) -> NDArray[np.int64]:
    """Returns the ranks of every pipeline, a row each, by stage."""
    num_ranks = run.job.sizes.get("pp", 1)
    if num_ranks == 1 or run.layout is None:
        return np.arange(run.job.world_size).reshape(-1, num_ranks)
    return np.array(run.layout.groups(run.layout.kind_of("pp")).lists())


def _chunks(spans: Spans, num_ranks: int) -> int:
    return max(1, (int(spans.stage.max()) + 1) // num_ranks)


def _sizes(run: Trace) -> Listed:
    return listed(f"{axis} {size}" for axis, size in run.job.sizes.items() if size > 1)


def _window(stats: Statistics) -> float:
    return float(np.mean([step.window_ns for step in stats.counted]))


def _account(first: Statistics, second: Statistics) -> dict[str, float]:
    totals = []
    for stats in (first, second):
        total = {
            name: float(np.mean([rank.by_work_ns[name] for rank in stats.ranks])) for name in _KINDS
        }
        # Every rank has every cause, so the first one's serve for all.
        for cause in stats.ranks[0].idle_ns:
            total[cause] = float(np.mean([rank.idle_ns[cause] for rank in stats.ranks]))
        totals.append(total)
    return {name: totals[0][name] - totals[1][name] for name in totals[0]}


def _medians(trace: Trace, stats: Statistics) -> dict[tuple[int, str], float]:
    """Returns the median duration of every computation of every rank over complete steps."""
    complete = np.isin(trace.spans.step, [step.step for step in stats.counted])
    spans = whole_computations(
        trace.spans.where(complete & np.isin(trace.spans.kind, list(COMPUTE)))
    )
    names = np.stack([spans.rank, spans.kind, spans.stage, spans.microbatch])
    order = np.lexsort(names[::-1])
    names, length = names[:, order], (spans.end_ns - spans.start_ns)[order]
    begins = np.flatnonzero(np.r_[True, (names[:, 1:] != names[:, :-1]).any(axis=0)])
    return {
        (int(rank), str(Action(ActionKind(kind), stage, microbatch))): float(np.median(part))
        for (rank, kind, stage, microbatch), part in zip(
            names[:, begins].T.tolist(), np.split(length, begins[1:]), strict=True
        )
    }


def _orders(
    first: Trace, second: Trace, first_stats: Statistics, second_stats: Statistics
) -> list[OrderChange]:
    ours, theirs = (
        _computations(trace, stats.counted[0].step)
        for trace, stats in ((first, first_stats), (second, second_stats))
    )
    changes = []
    for rank in sorted(ours.keys() & theirs.keys()):
        a, b = ours[rank], theirs[rank]
        alike = next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
        # A list that is the beginning of the other one leaves it where it ends.
        if alike is None and len(a) != len(b):
            alike = min(len(a), len(b))
        if alike is not None:
            at = [each[alike] if alike < len(each) else None for each in (a, b)]
            changes.append(OrderChange(rank, alike, at[0], at[1]))
    return changes


def _computations(trace: Trace, step: int) -> dict[int, list[str]]:
    """Returns what each rank computed in one step, in order."""
    mine = np.isin(trace.spans.kind, list(COMPUTE)) & (trace.spans.step == step)
    lists: dict[int, list[str]] = {}
    for span in whole_computations(trace.spans.where(mine)):
        lists.setdefault(span.rank, []).append(str(span.action))
    return lists
