"""Statistics of a Trace: bubble, where each rank's time went, and whether messages pair.

    rank 0  F F . . . . B F B F . B . . B      window: first forward start to last backward end
    rank 1  . F . F B B . F B . F . B B .      of one step, over all ranks
            |<------- window ------->|

    bubble = 1 - busy / (ranks x window)       busy: the time in F, B, I and W, waits inside
                                               them (gathers, reductions) not counted

Leading steps that take far longer than the median one, while a job warms up, are in no mean
(``warm_up``). A step that only went forwards ends with its last forward; computations of one rank
that intersect count once, and where steps overlap a rank that computes for another is busy too. The
optimizer and the gaps between steps lie outside the window; waiting inside it, for a message or for
a collective, is idle time, not computation, and every idle nanosecond has a cause (``idle``).
Three shares go by the name of bubble rate, and all three are given, as in
``schedule.bubble``:

    of_makespan     1 - busy / (ranks x window)
    over_ideal      ranks x window / busy - 1
    longest_window  1 - busy / (ranks x the longest time from a rank's first to its last action)

Beside them stands what the schedule must cost at best, (p - 1) / (m + p - 1) of the makespan
for p stages and m microbatches.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, EXCHANGES, ActionKind, Spans
from serried.trace.measure.idle import MeasuredIdle, measured_idle
from serried.trace.measure.warm_up import warm_up_of
from serried.trace.model.messages import Alignment, MessageStatistics, ideal_of, measure_messages
from serried.trace.model.pairs import SENDS
from serried.trace.model.record import UNKNOWN_SCHEDULE, TracedJob
from serried.trace.model.trace import Trace

WORK: dict[str, tuple[ActionKind, ...]] = {
    "forward": (ActionKind.F, ActionKind.OVERLAP_F_B),
    "backward": (ActionKind.B, ActionKind.I),
    "weight": (ActionKind.W,),
    "send": SENDS,
    "reduce": (ActionKind.REDUCE_GRAD, ActionKind.UNSHARD, ActionKind.RESHARD),
    "exchange": tuple(sorted(EXCHANGES)),
    "optimizer": (ActionKind.OPTIMIZER,),
}
"""What a rank's time is told apart into, beside waiting; an exchange is part of no computation."""

Table = NDArray[np.int64]
"""One row per step, one column per rank."""
Times = NDArray[np.int64]


@dataclass(frozen=True)
class StepStatistics:
    """Says how long one complete step took and how much of it was computation."""

    step: int
    window_ns: int
    busy_ns: int
    """Summed over ranks."""
    bubble: float


@dataclass(frozen=True)
class RankStatistics:
    """Says where one rank's time within the windows went: a mean per step, in nanoseconds."""

    rank: int
    compute_ns: float
    receive_wait_ns: float
    """Receives while it computed nothing."""
    exchange_wait_ns: float
    """Collectives that it was held up by, inside computations and outside of them."""
    other_ns: float
    """Sends, Python, and being done before the others."""
    by_work_ns: dict[str, float]
    """By ``WORK``: forward, backward and weight, which add up to the computing; and send, reduce,
    exchange and optimizer, wherever they are."""
    idle_ns: dict[str, float]
    """The rank's idle time in the windows by cause, which add up to the window less computation."""


@dataclass(frozen=True)
class BubbleStatistics:
    """Holds the three bubble shares and what made them up; means over complete steps."""

    of_makespan: float
    over_ideal: float
    longest_window: float
    causes: dict[str, float]
    """The share of all ranks' time that was idle for each cause; they add up to of_makespan."""
    exposed: float
    """The share of all ranks' time in which a rank communicated and computed nothing."""
    overlapped: float
    """The share in which communication went on behind a computation."""
    exchange: float
    """The share in which a rank waited for an exchange inside a computation; exposed, and idle."""
    step_jitter: float
    """The standard deviation of the windows, over their mean."""


@dataclass(frozen=True)
class Statistics:
    """Holds all that is measured of a trace; ``bubble`` is the mean over its complete steps."""

    num_ranks: int
    steps: tuple[StepStatistics, ...]
    """Every complete one, those of the warm-up too."""
    num_warm_up: int
    """How many of them, the first ones, are in no mean."""
    left_out: tuple[int, ...]
    """Steps that some rank did not finish."""
    bubble: float | None
    ideal: Fraction | None
    bubbles: BubbleStatistics | None
    ranks: tuple[RankStatistics, ...]
    messages: MessageStatistics
    alignment: Alignment
    has_pipeline: bool = True
    """Whether ``bubble`` is one: without stages it is idle time of any cause."""

    @property
    def counted(self) -> tuple[StepStatistics, ...]:
        """The complete steps that means are of."""
        return self.steps[self.num_warm_up :]


def measure(trace: Trace) -> Statistics:
    """Measures every step that all ranks with a file finished; means are of those after warm-up."""
    compute = trace.spans.where(np.isin(trace.spans.kind, list(COMPUTE)))
    whole = _Grid(np.unique(compute.step), np.asarray(trace.ranks))
    optimizers = trace.spans.where(trace.spans.kind == ActionKind.OPTIMIZER)
    is_complete = _is_complete(whole, compute, whole.inside(optimizers), trace.job)
    grid = _Grid(whole.steps[is_complete], whole.ranks)
    grid, idle = _measured(grid, trace.spans, compute)
    steps, ranks, bubbles = _times(grid, trace.spans, grid.inside(compute), idle)
    num_warm_up = warm_up_of(np.array([step.window_ns for step in steps], dtype=np.int64))
    messages, alignment = measure_messages(trace, grid.steps)
    return Statistics(
        num_ranks=len(trace.ranks),
        steps=steps,
        num_warm_up=num_warm_up,
        left_out=tuple(np.setdiff1d(whole.steps, grid.steps).tolist()),
        bubble=bubbles.of_makespan if bubbles else None,
        ideal=ideal_of(trace.job),
        bubbles=bubbles,
        ranks=ranks,
        messages=messages,
        alignment=alignment,
        has_pipeline=trace.has_pipeline,
    )


@dataclass(frozen=True, eq=False)
class _Grid:
    """Counts or sums spans into a table of steps by ranks, both ascending."""

    steps: NDArray[np.int32]
    ranks: NDArray[np.int64]

    def inside(self, spans: Spans) -> Spans:
        return spans.where(np.isin(spans.step, self.steps))

    def row(self, spans: Spans) -> NDArray[np.int64]:
        return np.searchsorted(self.steps, spans.step)

    def total(self, spans: Spans, amount: NDArray[np.int64] | None = None) -> Table:
        """Returns the count of ``spans`` in each cell, or the sum of their ``amount``."""
        cell = self.row(spans) * len(self.ranks) + np.searchsorted(self.ranks, spans.rank)
        # Weights are summed as float64, exact below 2**53 ns: a hundred days in one cell.
        sums = np.bincount(cell, amount, minlength=len(self.steps) * len(self.ranks))
        return sums.astype(np.int64).reshape(len(self.steps), len(self.ranks))


def _is_complete(
    grid: _Grid, compute: Spans, optimizers: Spans, job: TracedJob
) -> NDArray[np.bool_]:
    """Tells of each step whether every rank did all its forwards and backwards in it.

    All are those of its chunks and the job's microbatches; where another tool's files do not
    say how many, as many as the rank did in its fullest step. Without a pipeline an epoch's last
    step may have fewer: it is whole where every rank did as many forwards as backwards, all
    ranks equally many, and its optimizer. Steps whose computations took no time at all are
    none to measure.
    """

    def count(kind: ActionKind) -> Table:
        return grid.total(compute.where(compute.kind == kind))

    forwards = count(ActionKind.F)
    # A backward in halves is done where both its I and its W are.
    backwards = count(ActionKind.B) + np.minimum(count(ActionKind.I), count(ActionKind.W))
    took_time = grid.total(compute, compute.end_ns - compute.start_ns).any(axis=1)
    num_stages = 1 + int(compute.stage.max(initial=0))
    # Each (rank, stage) that was ever seen, as one number, tells how many chunks a rank has.
    chunks = np.unique(compute.rank.astype(np.int64) * num_stages + compute.stage) // num_stages
    chunks_of = np.searchsorted(chunks, grid.ranks, "right") - np.searchsorted(chunks, grid.ranks)
    chunks_of = np.maximum(chunks_of, 1)
    # An epoch's last step: fewer microbatches, but as many on every rank, and an optimizer.
    is_short = (forwards > 0) & (forwards == backwards) & (forwards == forwards[:, :1])
    is_short &= (grid.total(optimizers) > 0) & (job.sizes.get("pp", 1) == 1)
    if job.schedule == UNKNOWN_SCHEDULE:
        done = [each == each.max(axis=0, initial=0) for each in (forwards, backwards)]
        is_done = done[0] & done[1]
    else:
        needed = chunks_of * job.num_microbatches
        is_done = (forwards >= needed) & (backwards >= needed)
    is_whole = is_done.all(axis=1) | is_short.all(axis=1)
    return np.asarray(is_whole & took_time, dtype=np.bool_)


def _measured(grid: _Grid, spans: Spans, compute: Spans) -> tuple[_Grid, MeasuredIdle]:
    """Returns the steps in which something else than waits took time, and how it was spent."""
    idle = measured_idle(spans, grid.steps, grid.ranks, _windows(grid, grid.inside(compute)))
    took_time = idle.busy_ns.any(axis=1)
    if took_time.all():
        return grid, idle
    # Steps of waits alone would divide by nothing, so all is measured again without them.
    kept = _Grid(grid.steps[took_time], grid.ranks)
    windows = _windows(kept, kept.inside(compute))
    return kept, measured_idle(spans, kept.steps, kept.ranks, windows)


def _windows(grid: _Grid, compute: Spans) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the first start and the last end of each step's computations."""
    row = grid.row(compute)
    first = np.full(len(grid.steps), np.iinfo(np.int64).max)
    last = np.full(len(grid.steps), np.iinfo(np.int64).min)
    np.minimum.at(first, row, compute.start_ns)
    np.maximum.at(last, row, compute.end_ns)
    return first, last


def _times(
    grid: _Grid, spans: Spans, compute: Spans, idle: MeasuredIdle
) -> tuple[tuple[StepStatistics, ...], tuple[RankStatistics, ...], BubbleStatistics | None]:
    """Measures steps and ranks; ``compute`` holds the computations of the grid's steps."""
    num_ranks = len(grid.ranks)
    if not len(grid.steps):
        return (), (), None
    first, last = _windows(grid, compute)
    window = last - first
    total = idle.busy_ns.sum(axis=1)
    # `_measured` left no step in which nothing was computed, so nothing is divided by 0 here.
    idle_share = 1 - total / (num_ranks * window)
    rows = zip(grid.steps, window, total, idle_share, strict=True)
    steps = tuple(StepStatistics(int(s), int(w), int(t), float(b)) for s, w, t, b in rows)
    usual = slice(warm_up_of(window), None)
    grid, idle, window = _Grid(grid.steps[usual], grid.ranks), idle.of(usual), window[usual]
    compute = grid.inside(compute)
    ranks = _ranks(grid, grid.inside(spans), window, idle)
    return steps, ranks, _bubbles(grid, compute, window, idle)


def _bubbles(grid: _Grid, compute: Spans, window: Times, idle: MeasuredIdle) -> BubbleStatistics:
    """Returns the means over the grid's steps."""
    num_ranks, total = len(grid.ranks), idle.busy_ns.sum(axis=1)
    longest = num_ranks * _longest(grid, compute)
    return BubbleStatistics(
        of_makespan=float((1 - total / (num_ranks * window)).mean()),
        over_ideal=float((idle.total_ns.sum(axis=1) / total).mean()),
        longest_window=float((1 - idle.own_busy_ns.sum(axis=1) / longest).mean()),
        causes={cause: _share(table, window, num_ranks) for cause, table in idle.by_cause.items()},
        exposed=_share(idle.exposed_ns, window, num_ranks),
        overlapped=_share(idle.overlapped_ns, window, num_ranks),
        exchange=_share(idle.exchange_ns, window, num_ranks),
        step_jitter=float(window.std() / window.mean()),
    )


def _share(table: Table, window: NDArray[np.int64], num_ranks: int) -> float:
    """Returns what part of all ranks' windows a table is, the mean over steps."""
    return float((table.sum(axis=1) / (num_ranks * window)).mean())


def _longest(grid: _Grid, compute: Spans) -> NDArray[np.int64]:
    """Returns for each step the longest time from a rank's first action to its last."""
    cell = grid.row(compute), np.searchsorted(grid.ranks, compute.rank)
    first = np.full((len(grid.steps), len(grid.ranks)), np.iinfo(np.int64).max)
    last = np.full_like(first, np.iinfo(np.int64).min)
    np.minimum.at(first, cell, compute.start_ns)
    np.maximum.at(last, cell, compute.end_ns)
    return np.asarray((last - first).max(axis=1))


def _ranks(
    grid: _Grid, spans: Spans, window: NDArray[np.int64], idle: MeasuredIdle
) -> tuple[RankStatistics, ...]:
    receiving, waiting = idle.receiving_ns, idle.waiting_ns
    other = window[:, None] - idle.busy_ns - receiving - waiting
    work = {}
    # Computing counts inside the windows and without waits; everything else by its whole length,
    # wherever it lies.
    for name, kinds in WORK.items():
        if name in idle.by_work:
            work[name] = idle.by_work[name].mean(axis=0)
            continue
        mine = spans.where(np.isin(spans.kind, kinds))
        work[name] = grid.total(mine, mine.end_ns - mine.start_ns).mean(axis=0)
    causes = {cause: table.mean(axis=0) for cause, table in idle.by_cause.items()}
    tables = (idle.busy_ns, receiving, waiting, other)
    times = zip(grid.ranks, *(table.mean(axis=0).tolist() for table in tables), strict=True)
    return tuple(
        RankStatistics(
            rank=int(rank),
            compute_ns=busy_ns,
            receive_wait_ns=receive_ns,
            exchange_wait_ns=exchange_ns,
            other_ns=other_ns,
            by_work_ns={name: float(column[at]) for name, column in work.items()},
            idle_ns={cause: float(column[at]) for cause, column in causes.items()},
        )
        for at, (rank, busy_ns, receive_ns, exchange_ns, other_ns) in enumerate(times)
    )
