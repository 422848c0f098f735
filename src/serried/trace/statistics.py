"""Statistics of a Trace: bubble, where each rank's time went, and whether messages pair.

    rank 0  F F . . . . B F B F . B . . B      window: first forward start to last backward end
    rank 1  . F . F B B . F B . F . B B .      of one step, over all ranks
            |<------- window ------->|

    bubble = 1 - busy / (ranks x window)       busy: all F, B, I and W of the step, added up

The optimizer and the gaps between steps lie outside the window; waiting for a message inside
it is idle time, not computation. Beside it stands what the schedule must cost at best,
(p - 1) / (m + p - 1) for p stages and m microbatches.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from serried.schedule import ideal_bubble
from serried.span import COMPUTE, ActionKind, Spans
from serried.trace.merge import Trace
from serried.trace.pairs import RECEIVES, SENDS, pair_messages
from serried.trace.record import UNKNOWN_SCHEDULE, Job

RESOLUTION_NS = 1
"""What a time stamp can tell apart."""

CLOSED_FORM = ("1f1b", "gpipe")
"""Schedules, one stage a rank, whose ideal bubble is (p - 1) / (m + p - 1)."""

Table = NDArray[np.int64]
"""One row per step, one column per rank."""


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
    other_ns: float
    """Sends, Python, and being done before the others."""


@dataclass(frozen=True)
class MessageStatistics:
    """Counts the sends and receives of complete steps."""

    spans: int
    pairs: int
    lone_sends: int
    lone_receives: int
    expected_spans: int | None
    """What the schedule makes: 4 (p - 1) m per pipeline and step; None where it is not known."""


@dataclass(frozen=True)
class Alignment:
    """Says how far the clocks can be trusted, and what the messages say about them.

    A violation is a message that was received before its sender began to send it, by more than
    a time stamp can tell and the clocks' stated uncertainty allows.
    """

    num_hosts: int
    checked: int
    causality_violations: int
    uncertainty_ns: float | None = 0.0
    """The largest of any host; None where some host's clock is tied to no other."""

    @property
    def uncertainty_us(self) -> float | None:
        """The same in microseconds: 0 on one host, whose ranks share a clock."""
        return None if self.uncertainty_ns is None else self.uncertainty_ns / 1e3


@dataclass(frozen=True)
class Statistics:
    """Holds all that is measured of a trace; ``bubble`` is the mean over its complete steps."""

    num_ranks: int
    steps: tuple[StepStatistics, ...]
    left_out: tuple[int, ...]
    """Steps that some rank did not finish."""
    bubble: float | None
    ideal: Fraction | None
    ranks: tuple[RankStatistics, ...]
    messages: MessageStatistics
    alignment: Alignment


def measure(trace: Trace) -> Statistics:
    """Measures every step that all ranks with a file finished."""
    compute = trace.spans.where(np.isin(trace.spans.kind, list(COMPUTE)))
    whole = _Grid(np.unique(compute.step), np.asarray(trace.ranks))
    is_complete = _is_complete(whole, compute, trace.job)
    grid = _Grid(whole.steps[is_complete], whole.ranks)
    steps, ranks = _times(grid, grid.inside(trace.spans), grid.inside(compute))
    messages, alignment = _messages(trace, grid)
    return Statistics(
        num_ranks=len(trace.ranks),
        steps=steps,
        left_out=tuple(whole.steps[~is_complete].tolist()),
        bubble=float(np.mean([step.bubble for step in steps])) if steps else None,
        ideal=_ideal(trace.job),
        ranks=ranks,
        messages=messages,
        alignment=alignment,
    )


@dataclass(frozen=True, eq=False)
class _Grid:
    """Is a table of steps by ranks, both ascending, that spans are counted or summed into."""

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


def _is_complete(grid: _Grid, compute: Spans, job: Job) -> NDArray[np.bool_]:
    """Tells of each step whether every rank did all its forwards and backwards in it.

    All are those of its chunks and the job's microbatches; where another tool's files do not
    say how many, as many as the rank did in its fullest step.
    """

    def count(kind: ActionKind) -> Table:
        return grid.total(compute.where(compute.kind == kind))

    forwards = count(ActionKind.F)
    backwards = count(ActionKind.B) + np.minimum(count(ActionKind.I), count(ActionKind.W))
    if job.schedule == UNKNOWN_SCHEDULE:
        is_done = (forwards == forwards.max(axis=0)) & (backwards == backwards.max(axis=0))
        return np.asarray(is_done.all(axis=1), dtype=np.bool_)

    num_stages = 1 + int(compute.stage.max(initial=0))
    chunks = np.unique(compute.rank.astype(np.int64) * num_stages + compute.stage) // num_stages
    chunks_of = np.searchsorted(chunks, grid.ranks, "right") - np.searchsorted(chunks, grid.ranks)
    needed = np.maximum(chunks_of, 1) * job.num_microbatches
    is_done = (forwards >= needed) & (backwards >= needed)
    return np.asarray(is_done.all(axis=1), dtype=np.bool_)


def _times(
    grid: _Grid, spans: Spans, compute: Spans
) -> tuple[tuple[StepStatistics, ...], tuple[RankStatistics, ...]]:
    """Measures steps and ranks; both spans are those of the grid's steps."""
    num_steps, num_ranks = len(grid.steps), len(grid.ranks)
    if not num_steps:
        return (), ()
    row, is_forward = grid.row(compute), compute.kind == ActionKind.F
    first = np.full(num_steps, np.iinfo(np.int64).max)
    last = np.full(num_steps, np.iinfo(np.int64).min)
    np.minimum.at(first, row[is_forward], compute.start_ns[is_forward])
    np.maximum.at(last, row[~is_forward], compute.end_ns[~is_forward])
    window = last - first
    busy = grid.total(compute, compute.end_ns - compute.start_ns)
    waits = spans.where(np.isin(spans.kind, RECEIVES))
    row = grid.row(waits)
    inside = np.clip(waits.end_ns, first[row], last[row]) - np.clip(
        waits.start_ns, first[row], last[row]
    )
    wait = grid.total(waits, inside)
    total = busy.sum(axis=1)
    bubble = 1 - total / (num_ranks * window)
    steps = zip(grid.steps, window, total, bubble, strict=True)
    other = window[:, None] - busy - wait
    ranks = zip(grid.ranks, *(table.mean(axis=0) for table in (busy, wait, other)), strict=True)
    return (
        tuple(StepStatistics(int(s), int(w), int(t), float(b)) for s, w, t, b in steps),
        tuple(RankStatistics(int(r), float(c), float(w), float(o)) for r, c, w, o in ranks),
    )


def _messages(trace: Trace, grid: _Grid) -> tuple[MessageStatistics, Alignment]:
    spans = trace.spans
    pairs = pair_messages(spans)
    counts = np.isin(spans.step, grid.steps)
    uncertainty_ns = _uncertainty_ns(trace)
    allowed_ns = RESOLUTION_NS + (uncertainty_ns or 0)
    early = spans.end_ns[pairs.receives] + allowed_ns < spans.start_ns[pairs.sends]
    messages = MessageStatistics(
        spans=int(np.isin(spans.kind[counts], SENDS + RECEIVES).sum()),
        pairs=int(counts[pairs.sends].sum()),
        lone_sends=int(counts[pairs.lone_sends].sum()),
        lone_receives=int(counts[pairs.lone_receives].sum()),
        expected_spans=_expected_spans(trace.job, len(grid.steps)),
    )
    violations = int(early.sum())
    return messages, Alignment(len(trace.hosts), len(pairs), violations, uncertainty_ns)


def _uncertainty_ns(trace: Trace) -> float | None:
    """Returns how far any two hosts' clocks may be apart, None where that is not known."""
    if len(trace.hosts) == 1:
        return 0.0
    known = [clock.uncertainty_ns for clock in trace.clocks]
    worst = [each for each in known if each is not None]
    # Two hosts are each tied to the first: both may be off.
    return sum(sorted(worst)[-2:]) if worst and len(worst) == len(trace.hosts) else None


def _expected_spans(job: Job, num_steps: int) -> int | None:
    """Returns the sends and receives of ``num_steps``: one of each way per boundary and microbatch.

    4 (p - 1) m per pipeline: forward and backward, a send and a receive for each.
    """
    p = _stages(job)
    if p is None:
        return None
    return 4 * (p - 1) * job.num_microbatches * (job.world_size // p) * num_steps


def _ideal(job: Job) -> Fraction | None:
    p = _stages(job)
    return None if p is None else ideal_bubble(p, job.num_microbatches)


def _stages(job: Job) -> int | None:
    """Returns the number of stages where the schedule is one with a closed form, else None."""
    is_closed = job.schedule.lower() in CLOSED_FORM and job.num_microbatches > 0
    return job.sizes.get("pp", 1) if is_closed else None
