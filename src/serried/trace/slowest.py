"""The slowest ranks, like compared with like: a rank with the others that hold its stages.

    stage 2   rank 4   61 ms   60 ms   62 ms      1.02 x the median of the others
              rank 5   66 ms   65 ms   67 ms      1.08 x, the slower one in 3 of 3 steps
              rank 12  60 ms   61 ms   61 ms

Stages differ by their layers, so ranks of different stages are not compared. A rank is held
against the median of the others, step by step, and the median of those ratios counts: neither
one slow step nor one slow peer moves it. Waiting is not in it: only time in computations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.span import COMPUTE, Spans

WORTH_SAYING = 0.01
"""Less than this is what two equal devices differ by."""

Table = NDArray[np.float64]
"""Nanoseconds of computation: one row per step, one column per rank, or one column alone."""


@dataclass(frozen=True)
class RankPace:
    """Says how a rank computes beside the others that hold its stages."""

    rank: int
    stages: tuple[int, ...]
    compute_ns: float
    """The median over steps."""
    jitter: float
    """The standard deviation over steps, over the mean."""
    slower: float | None
    """How much longer it computes than the median of them, 0.08 for 8 %; None without peers."""
    slower_steps: int
    """In how many steps it took longer than that median."""
    num_steps: int

    @property
    def is_slow(self) -> bool:
        """Whether it is slower by a margin worth saying, in four of five steps or more."""
        return (self.slower or 0) >= WORTH_SAYING and 5 * self.slower_steps >= 4 * self.num_steps


def paces(spans: Spans) -> tuple[RankPace, ...]:
    """Returns every rank's pace over the steps of ``spans``, the slowest first.

    Ranks without peers stand last, by rank.
    """
    compute = spans.where(np.isin(spans.kind, sorted(COMPUTE)))
    ranks, column = np.unique(compute.rank, return_inverse=True)
    steps, row = np.unique(compute.step, return_inverse=True)
    cell, cells = row * len(ranks) + column, len(ranks) * len(steps)
    length = compute.end_ns - compute.start_ns
    taken = np.asarray(np.bincount(cell, length, minlength=cells), dtype=np.float64)
    taken = taken.reshape(len(steps), len(ranks))
    stages = _stages(compute, ranks)
    alike: dict[tuple[int, ...], list[int]] = {}
    for place, held in enumerate(stages):
        alike.setdefault(held, []).append(place)
    found = [
        _pace(int(ranks[place]), held, taken[:, place], others)
        for held, places in alike.items()
        for place, others in zip(places, _medians_of_others(taken[:, places]), strict=True)
    ]
    return tuple(
        sorted(found, key=lambda each: (each.slower is None, -(each.slower or 0), each.rank))
    )


def _medians_of_others(taken: Table) -> list[Table | None]:
    """Returns for each column the median of all other columns, row by row; None for one alone.

    >>> [column.tolist() for column in _medians_of_others(np.array([[1.0, 5.0, 2.0]]))]
    [[3.5], [1.5], [3.0]]
    """
    count = taken.shape[1]
    if count == 1:
        return [None]
    place = np.argsort(np.argsort(taken, axis=1, kind="stable"), axis=1)
    ascending = np.sort(taken, axis=1)

    def left(at: int) -> Table:
        """Returns the number at ``at`` when each column in turn is taken out."""
        return np.where(place <= at, ascending[:, [at + 1]], ascending[:, [at]])

    middle = (left((count - 2) // 2) + left((count - 1) // 2)) / 2
    return list(middle.T)


def _stages(compute: Spans, ranks: NDArray[np.int32]) -> list[tuple[int, ...]]:
    pairs = np.unique(np.stack([compute.rank, compute.stage]), axis=1)
    return [tuple(pairs[1, pairs[0] == rank].tolist()) for rank in ranks.tolist()]


def _pace(rank: int, stages: tuple[int, ...], mine: Table, others: Table | None) -> RankPace:
    mean = float(mine.mean())
    slower, slower_steps = None, 0
    if others is not None:
        ratio = np.divide(mine, others, out=np.ones_like(mine), where=others > 0)
        slower, slower_steps = float(np.median(ratio)) - 1, int((ratio > 1).sum())
    return RankPace(
        rank=rank,
        stages=stages,
        compute_ns=float(np.median(mine)),
        jitter=float(mine.std()) / mean if mean else 0.0,
        slower=slower,
        slower_steps=slower_steps,
        num_steps=len(mine),
    )
