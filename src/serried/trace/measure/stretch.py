"""A stretch: what some ranks did between two moments, every nanosecond of it told apart.

rank 3   ==[F3]==|==[F4]..[B0]==[B1]===|==[B2]      of F4 and B1 only what lies inside counts
rank 4   =[F2]===|[F3]..........[B0]===|
                 from                  to

ranks x (to - from) = computing + idle          idle = its causes, as ``idle`` has them,
                                                     + what lies between the steps
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, ActionKind, Spans
from serried.trace.measure.idle import CAUSES, measured_idle
from serried.trace.measure.moments import COMPUTING, Moments

BETWEEN_STEPS = "between_steps"
"""Idle time before a step's first forward and after its last backward, over all ranks."""


@dataclass(frozen=True)
class KindTime:
    """Says how much of one kind of spans lies in a stretch."""

    kind: ActionKind
    num_spans: int
    time_ns: int
    """Summed over ranks; spans of one rank that overlap count each for itself."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """Holds what is measured of some ranks between two moments."""

    begin_ns: int
    end_ns: int
    num_ranks: int
    num_spans: int
    kinds: tuple[KindTime, ...]
    """Those that occur, the longest first."""
    compute_ns: int
    """Summed over ranks; computations of one rank that overlap count once."""
    idle_ns: dict[str, int]
    """By cause, summed over ranks."""
    longest: Spans
    """The longest span, one row; none where there is no span."""
    microbatches: int
    """Those whose forward on the first stage ended in it; ranks that share one count it once."""

    @property
    def length_ns(self) -> int:
        """How long it is."""
        return self.end_ns - self.begin_ns

    @property
    def total_ns(self) -> int:
        """The time of all its ranks."""
        return self.length_ns * self.num_ranks


@dataclass(frozen=True, eq=False)
class StepWindows:
    """Holds the steps in which something was computed, and when the first and last of it was."""

    steps: NDArray[np.int32]
    first_ns: NDArray[np.int64]
    last_ns: NDArray[np.int64]

    @classmethod
    def of(cls, spans: Spans) -> StepWindows:
        """Returns the windows of all steps of ``spans``."""
        compute = spans.where(np.isin(spans.kind, list(COMPUTE)))
        steps, row = np.unique(compute.step, return_inverse=True)
        first = np.full(len(steps), np.iinfo(np.int64).max)
        last = np.full(len(steps), np.iinfo(np.int64).min)
        np.minimum.at(first, row, compute.start_ns)
        np.maximum.at(last, row, compute.end_ns)
        return cls(steps, first, last)

    def apart(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the windows where none overlaps another: each ends where the next begins."""
        order = np.lexsort((self.last_ns, self.first_ns))
        first = self.first_ns[order]
        last = np.maximum.accumulate(self.last_ns[order])
        last[:-1] = np.minimum(last[:-1], first[1:])
        back = np.argsort(order)
        return first[back], last[back]


def measure_stretch(
    spans: Spans,
    windows: StepWindows,
    moments: tuple[int, int],
    ranks: NDArray[np.int64],
    replica: NDArray[np.integer] | None = None,
) -> Stretch:
    """Measures what ``ranks``, which ascend, did between two ``moments`` in nanoseconds.

    ``spans`` are all of the trace's, by rank and then by start, and ``windows`` theirs.
    ``replica`` says of every rank of the world which copy of the model it is a part of; without it
    each rank is one.
    """
    begin_ns, end_ns = moments
    meets = (spans.start_ns < end_ns) & (spans.end_ns > begin_ns) & np.isin(spans.rank, ranks)
    inside = spans.where(meets)
    lengths = _clipped(inside, begin_ns, end_ns)
    longest = np.argsort(inside.start_ns - inside.end_ns, kind="stable")[:1]
    idle = _idle(spans, windows, moments, ranks)
    compute = _computing(inside, moments, ranks)
    # What is neither computing nor idle within a step lies between steps.
    outside = (end_ns - begin_ns) * len(ranks) - compute - sum(idle.values())
    return Stretch(
        begin_ns=begin_ns,
        end_ns=end_ns,
        num_ranks=len(ranks),
        num_spans=len(inside),
        kinds=_kinds(inside, lengths),
        compute_ns=compute,
        idle_ns={**idle, BETWEEN_STEPS: outside},
        longest=inside.where(longest),
        microbatches=_entered(inside.where(inside.end_ns <= end_ns), replica),
    )


def _entered(ended: Spans, replica: NDArray[np.integer] | None) -> int:
    """Returns how many microbatches the first stage finished; tensor parallel ranks share them."""
    first = ended.where((ended.kind == ActionKind.F) & (ended.stage == 0))
    of = first.rank if replica is None else replica[first.rank]
    return len(np.unique(np.stack([of, first.step, first.microbatch]), axis=1).T)


def _kinds(spans: Spans, lengths: NDArray[np.int64]) -> tuple[KindTime, ...]:
    kinds = [
        KindTime(ActionKind(int(kind)), int(mine.sum()), int(lengths[mine].sum()))
        for kind in np.unique(spans.kind)
        for mine in [spans.kind == kind]
    ]
    return tuple(sorted(kinds, key=lambda each: -each.time_ns))


def _clipped(spans: Spans, begin_ns: int, end_ns: int) -> NDArray[np.int64]:
    """Returns how much of each span lies inside."""
    return np.minimum(spans.end_ns, end_ns) - np.maximum(spans.start_ns, begin_ns)


def _computing(spans: Spans, moments: tuple[int, int], ranks: NDArray[np.int64]) -> int:
    """Returns the time in which ``ranks``, which hold all ``spans``, compute and do not wait."""
    begin, end = (np.full((1, len(ranks)), edge) for edge in moments)
    cut = Moments.of(spans, ranks, np.array(moments))
    return int(cut.time(cut.is_in(*COMPUTING), cut.between(begin, end)).sum())


def _idle(
    spans: Spans, windows: StepWindows, moments: tuple[int, int], ranks: NDArray[np.int64]
) -> dict[str, int]:
    """Returns the idle time of ``ranks`` by cause in those parts of the steps that lie inside."""
    first, last = (np.clip(edge, *moments) for edge in windows.apart())
    kept = last > first
    meets = (spans.start_ns < moments[1]) & (spans.end_ns > moments[0])
    mine = spans.where(np.isin(spans.step, windows.steps[kept]) | meets)
    # A receive is told apart by its send, which may stand on a rank that was not asked about.
    everyone = np.union1d(np.unique(mine.rank), ranks)
    idle = measured_idle(mine, windows.steps[kept], everyone, (first[kept], last[kept]))
    asked = np.searchsorted(everyone, ranks)
    return {cause: int(idle.by_cause[cause][:, asked].sum()) for cause in CAUSES}
