"""Lateness: why a span of a run started later than planned, every nanosecond of it placed.

    rank 0   [ F0 ][  F1  ]..[ B0 ]
    rank 1         [ F0 ]........[ B0 ]          B0 of rank 0 waited for B0 of rank 1,
                     ^--- longer ---^            that for F0 of rank 1, that for F0 of rank 0

Backwards from the span, each computation started after the last of what it had to wait for: the
one before it on its rank, or the one that made its input. Along that chain

    late = began late  +  sum of (took longer than planned)  +  sum of (gap - planned gap)

exactly, for planned times add up along the same chain. A gap is a *message*'s where what was
waited for ran on another rank, and so is what a computation waited inside it for a collective;
else it lies *between* two actions of a rank: launches, Python.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from serried.action import COMPUTE, ActionKind, Spans
from serried.trace.measure.moments import without_waits
from serried.trace.measure.overlay import Overlay

LONGER, BETWEEN, MESSAGE, BEGAN = "longer", "between", "message", "began"
"""What can make a span late: work, gaps on a rank, gaps before an input, the step's own start."""

_BACKWARD = (ActionKind.B, ActionKind.I)


@dataclass(frozen=True)
class LatenessCause:
    """Says one rank's part in a delay; below 0 it made up for some."""

    rank: int
    what: str
    ns: float
    count: int
    """How many actions or gaps it is made of."""


@dataclass(frozen=True)
class Lateness:
    """Says how one span stands to its plan; ``causes`` add up to ``late_ns``."""

    planned_start_ns: float
    planned_ns: float
    late_ns: float
    longer_ns: float
    causes: tuple[LatenessCause, ...]
    """The largest first."""


def why_late(spans: Spans, overlay: Overlay, row: int) -> Lateness | None:
    """Returns why the span in ``row`` started when it did; None where the plan has no such span.

    ``spans`` stand by rank and then by start.
    """
    alone = without_waits(spans)
    span = alone.where(np.array([row]))
    planned = int(overlay.rows(span)[0])
    late = float(overlay.late_ns(span)[0])
    if planned < 0 or np.isnan(late):
        return None
    mine = _step_of(spans, overlay, row)
    at = int(np.searchsorted(mine, row))
    return Lateness(
        planned_start_ns=float(overlay.start_ns(span)[0]),
        planned_ns=float(overlay.planned.end_ns[planned] - overlay.planned.start_ns[planned]),
        late_ns=late,
        longer_ns=float(overlay.longer_ns(span)[0]),
        causes=_causes(spans.where(mine), alone.where(mine), overlay, at),
    )


def _step_of(
    spans: Spans, overlay: Overlay, row: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Returns the planned computations of the row's step on the ranks of its pipeline."""
    ranks = np.flatnonzero(overlay.pipeline == overlay.pipeline[spans.rank[row]])
    bounds = np.searchsorted(spans.rank, np.stack([ranks, ranks + 1]).astype(spans.rank.dtype))
    rows = np.concatenate([np.arange(first, last) for first, last in bounds.T])
    rows = rows[(spans.step[rows] == spans.step[row]) & np.isin(spans.kind[rows], list(COMPUTE))]
    return np.asarray(rows[overlay.rows(spans.where(rows)) >= 0])


def _causes(spans: Spans, alone: Spans, overlay: Overlay, row: int) -> tuple[LatenessCause, ...]:
    """Returns the causes; ``alone`` are the same spans without the waits inside them."""
    # Along the chain each computation is as late as the one it waited for, plus what that took
    # longer than planned, what it waited inside, and the gap between the two: the parts add up.
    chain = _chain(spans, row)
    late, longer = overlay.late_ns(spans), overlay.longer_ns(alone)
    waited = (spans.end_ns - alone.end_ns).tolist()
    parts: dict[tuple[int, str], list[float]] = defaultdict(list)
    for before, after in zip(chain[1:], chain, strict=False):
        rank, source = int(spans.rank[after]), int(spans.rank[before])
        parts[source, LONGER].append(float(longer[before]))
        parts[source, MESSAGE] += [float(waited[before])] if waited[before] else []
        gap = float(late[after] - late[before] - longer[before] - waited[before])
        parts[rank, BETWEEN if rank == source else MESSAGE].append(gap)
    first = chain[-1]
    parts[int(spans.rank[first]), BEGAN].append(float(late[first]))
    causes = [
        LatenessCause(rank, what, sum(each), sum(ns > 0 for ns in each))
        for (rank, what), each in parts.items()
    ]
    return tuple(sorted((each for each in causes if each.ns), key=lambda each: -each.ns))


def _chain(spans: Spans, row: int) -> list[int]:
    """Returns the row and, one by one, what each waited for last, back to the step's start."""
    names = zip(spans.kind.tolist(), spans.stage.tolist(), spans.microbatch.tolist(), strict=True)
    row_of = {name: at for at, name in enumerate(names)}
    chain = [row]
    while True:
        # Only what began earlier, so that the walk ends even where times contradict the order.
        before = [
            each
            for each in _waited_for(spans, chain[-1], row_of)
            if spans.start_ns[each] < spans.start_ns[chain[-1]]
        ]
        if not before:
            return chain
        chain.append(max(before, key=lambda each: int(spans.end_ns[each])))


def _waited_for(spans: Spans, row: int, row_of: dict[tuple[int, int, int], int]) -> list[int]:
    """Returns the computation before ``row`` on its rank, and what made its input."""
    kind, stage, microbatch = (
        int(column[row]) for column in (spans.kind, spans.stage, spans.microbatch)
    )
    found = [row - 1] if row and spans.rank[row - 1] == spans.rank[row] else []
    # 2F0 needs 1F0. 2B0 needs 3B0, or 3I0 where backwards are split, and 2F0, whose activations
    # it uses. A weight half follows what its rank did before.
    if kind == ActionKind.F:
        sources = [(int(ActionKind.F), stage - 1, microbatch)]
    elif kind in _BACKWARD:
        sources = [(int(each), stage + 1, microbatch) for each in _BACKWARD]
        sources.append((int(ActionKind.F), stage, microbatch))
    else:
        sources = []
    return found + [row_of[each] for each in sources if each in row_of]
