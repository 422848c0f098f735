"""Pauses: steps in which one rank, now this and now that, keeps all others waiting.

    lag   rank 0   . . 9 . . . . . 8 . . . . .        none of them is slow, and each step is as
          rank 1   . . . . . 9 . . . . . 9 . .        slow as its slowest rank: a jitter that
          rank 2   . 8 . . . . . 9 . . . . . .        spreads to everybody

A pause is a lag far beyond what the ranks' lags usually are. Where one rank has nearly all of them,
it is named. Where all have some, of like lengths, each rank at even intervals, garbage collection
does that: every process collects after so many objects, and none at the same step as another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.steps.table import JobSteps
from serried.diagnose.stragglers.naming import ranks_at
from serried.diagnose.stragglers.slow import lags_of
from serried.finding import Sentence, said
from serried.trace.measure.ranks.slowest import NOTHING
from serried.units import duration_text

WORTH_A_PAUSE = 0.05
"""The shortest lag that is a pause, as a share of a step."""
_DEVIATIONS = 8.0
"""How many median deviations of all lags it is at least."""
_LEAST_COUNT = 3
_WORTH_OF_ONE = 0.02
"""What the pauses of one rank must cost, of all steps, for it to be named."""
_WORTH_OF_ALL = 0.05
_MOSTLY = 0.8
"""What part of all pauses one rank must have to be named for them."""
_RARE = 0.5
"""A rank that pauses in more steps than this share is slow, and ``slow`` names it."""
_EVEN = 0.35
"""By how much lengths, and intervals, of garbage collection vary at most, over their mean."""

COLLECT_TOGETHER = (
    said(
        "collect at the same step on all ranks: gc.disable() and gc.collect() every so "
        "many steps (Megatron: --manual-gc --manual-gc-interval N), and gc.freeze() after "
        "the start"
    ),
)

Table = NDArray[np.float64]


@dataclass(frozen=True)
class _Pauses:
    """Holds by row and rank how long each pause was; 0 where there is none."""

    ns: Table
    job: JobSteps

    @property
    def cost(self) -> float:
        """What the longest pause of each step adds up to, of all steps."""
        return float(self.ns.max(axis=1).sum() / self.job.period_ns.sum())


def pause_causes(job: JobSteps, told: set[int]) -> Iterator[Cause]:
    """Yields the rank whose pauses hold the others up, or that all ranks' pauses do.

    Of the ranks ``told`` it is known already what makes them late.
    """
    found = _pauses(job, told)
    if found is None:
        return
    of_ranks = found.ns.sum(axis=0)
    counts = (found.ns > 0).sum(axis=0)
    at = int(np.argmax(of_ranks))
    is_one = of_ranks[at] >= _MOSTLY * of_ranks.sum() and counts[at] >= _LEAST_COUNT
    if is_one and counts[at] <= _RARE * len(job):
        cost = float(found.ns[:, at].sum() / job.period_ns.sum())
        if cost >= _WORTH_OF_ONE:
            yield _of_one(found, at, cost)
    elif counts.sum() >= _LEAST_COUNT * 2 and found.cost >= _WORTH_OF_ALL:
        yield _of_all(found, counts)


def _pauses(job: JobSteps, slow: set[int]) -> _Pauses | None:
    """Returns the pauses of ranks that are not slow anyway; None where ranks have no like.

    Whoever comes later still in the same step, among ranks of other work, made the others late.
    """
    lags = np.zeros_like(job.spent.period)
    is_known = np.zeros(len(job.ranks), dtype=bool)
    for alike in job.alike:
        if len(alike.places) > 1 and alike.evidence != NOTHING:
            places = list(alike.places)
            lags[:, places] = lags_of(job, alike)
            is_known[places] = ~np.isin(job.ranks[places], list(slow))
    if not is_known.any() or len(job) < 2 * _LEAST_COUNT:
        return None
    known = lags[:, is_known]
    usual = float(np.median(np.abs(known - np.median(known))))
    least = max(WORTH_A_PAUSE * float(np.median(job.period_ns)), _DEVIATIONS * usual)
    is_pause = (lags >= least) & is_known & (lags >= _most_of_others(job, lags))
    return _Pauses(np.where(is_pause, lags, 0.0), job)


def _most_of_others(job: JobSteps, lags: Table) -> Table:
    """Returns by row and rank the longest lag among ranks that do other work, 0 without any."""
    most = np.zeros_like(lags)
    for alike in job.alike:
        places = list(alike.places)
        others = np.delete(lags, places, axis=1)
        most[:, places] = others.max(axis=1, initial=0.0)[:, np.newaxis]
    return most


def _of_one(found: _Pauses, at: int, cost: float) -> Cause:
    job, mine = found.job, found.ns[:, at]
    rank = int(job.ranks[at])
    is_collecting = _is_even(mine)
    return Cause(
        CauseClass.STRAGGLER,
        "garbage_collection" if is_collecting else "pauses",
        (rank,),
        said(
            "{who} pauses and keeps all others waiting: {length} in {count} of {total} steps, "
            "{cost:.1%} of the time in all",
            who=ranks_at(job, [rank]),
            length=duration_text(float(np.median(mine[mine > 0]))),
            count=int((mine > 0).sum()),
            total=len(job),
            cost=cost,
        ),
        confidence=0.75,
        chain=_chain(found, mine, is_collecting),
        cures=_cures(is_collecting),
        cost=cost,
    )


def _of_all(found: _Pauses, counts: NDArray[np.int64]) -> Cause:
    job = found.job
    even = [_is_even(found.ns[:, at]) for at in np.flatnonzero(counts >= _LEAST_COUNT)]
    is_collecting = len(even) > 0 and sum(even) >= _MOSTLY * len(even)
    held = found.ns.max(axis=1)
    return Cause(
        CauseClass.STRAGGLER,
        "garbage_collection" if is_collecting else "jitter",
        (),
        said(
            "no rank is slow, but in {count} of {total} steps one or another is late and all "
            "others wait: {cost:.1%} of the time in all",
            count=int((held > 0).sum()),
            total=len(job),
            cost=found.cost,
        ),
        confidence=0.6,
        chain=(
            said(
                "{num} of {all} ranks have such pauses, of {length} each",
                num=int((counts > 0).sum()),
                all=len(job.ranks),
                length=duration_text(float(np.median(found.ns[found.ns > 0]))),
            ),
        ),
        cures=_cures(is_collecting),
        cost=found.cost,
    )


def _is_even(pauses: Table) -> bool:
    """Tells whether pauses are alike in length and come at even intervals."""
    at = np.flatnonzero(pauses)
    if len(at) < _LEAST_COUNT:
        return False
    varies = [float(each.std() / each.mean()) for each in (pauses[at], np.diff(at))]
    return max(varies) <= _EVEN


def _chain(found: _Pauses, mine: Table, is_collecting: bool) -> tuple[Sentence, ...]:
    at = np.flatnonzero(mine)
    steps = found.job.steps[at[:4]].tolist()
    first = said("the first of these steps: {steps}", steps=", ".join(map(str, steps)))
    if not is_collecting:
        return (first,)
    return (
        first,
        said(
            "they are alike and come every {interval:.0f} steps, as garbage collection does",
            interval=float(np.diff(at).mean()) * found.job.width,
        ),
    )


def _cures(is_collecting: bool) -> tuple[Sentence, ...]:
    if is_collecting:
        return COLLECT_TOGETHER
    return (
        said(
            "look for what runs now and then: logging, checkpoints, other processes on the node, "
            "garbage collection; serried.span names what a rank does in its own time"
        ),
    )
