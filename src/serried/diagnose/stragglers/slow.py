"""Slow spells: from which step to which a rank, or all ranks of a stage, held the others up.

    lag of rank 3   0 1 0 0 -1 0 1 | 20 21 19 20 20 …       slow since step 7
                                   └ change point

Of ranks that do equal work the slow one is that which waits least, and its lag is what the others
waited more (``trace.measure.ranks.slowest``). Change points cut the lag's series into stretches,
and one in which that module's own test names the rank is a slow spell. So who is slow in every
step is named here and there alike, and who became slow late is named here.

A stage that is one rank's alone has no like. It is held against its own past: its computing over
that of all other ranks. What was long from the first step on may be more work, and is left to
``slow_stage``; what became longer at one step is a device that became slow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from serried.diagnose.steps.table import Alike, JobSteps, spent_rows
from serried.diagnose.stragglers.change import changes
from serried.trace.measure.ranks.slowest import (
    LEAST_STEPS,
    NOTHING,
    WAITS,
    RankPace,
    medians_of_others,
    paces_of_like,
)

WORTH_A_SPELL = 0.05
"""The share of a step that a stretch must cost for somebody to be named by it."""
LEAST_SPELL = 5
"""The fewest rows of a spell that is no whole run: less is a pause (``pauses``)."""
_DEVIATIONS = 3.0
"""How many times what a figure usually varies by a level must rise."""
_TOLD = 0.8
"""The share of a stretch's steps in which it must be seen."""
_COMPUTING = ("forward", "backward", "weight")
_IDLE = ("gaps", "before")

Series = NDArray[np.float64]


@dataclass(frozen=True)
class SlowSpell:
    """Says which ranks were slow from one row of the table to another; times are of a step."""

    ranks: tuple[int, ...]
    stages: tuple[int, ...]
    first: int
    last: int
    """The row after its last."""
    lag_ns: float
    """What the others waited longer than it, or how much longer it computed."""
    period_ns: float
    parts: tuple[tuple[str, float], ...]
    """What it spent more time on, the most first, in nanoseconds."""
    evidence: str
    slower: float
    """How much longer it computed, 0.2 for 20 %."""
    steady: float
    """The share of the steps in which it lagged."""
    against_past: bool = False
    """Whether it was held against its own past, for it has no like."""

    @property
    def share(self) -> float:
        """The lag over the step."""
        return self.lag_ns / self.period_ns if self.period_ns else 0.0


def slow_spells(job: JobSteps) -> list[SlowSpell]:
    """Returns every slow spell, the costliest first; of ranks alike, one for each rank."""
    found = [spell for alike in job.alike for spell in _of_alike(job, alike)]
    # A kind of ranks that became slow as a whole lags behind no like of its own.
    named = {rank for spell in found for rank in spell.ranks}
    found += [spell for spell in _of_kinds(job) if not named & {*spell.ranks}]
    costliest = sorted(found, key=lambda each: (-each.share, each.ranks, each.first))
    return [each for each in costliest if not any(follows(each, one) for one in costliest)]


def follows(one: SlowSpell, other: SlowSpell) -> bool:
    """Tells whether a lag is what a costlier one of another stage makes of it.

    Whoever gets its input late comes late to its own like, and lies idle between its spans.
    """
    is_idle = bool(one.parts) and one.parts[0][0] in _IDLE
    is_work = bool(other.parts) and other.parts[0][0] in _COMPUTING
    overlaps = one.first < other.last and other.first < one.last
    return (
        is_idle and is_work and overlaps and one.stages != other.stages and one.share < other.share
    )


# ----------------------------------------------------------------------- beside its like


def _of_alike(job: JobSteps, alike: Alike) -> Iterator[SlowSpell]:
    if len(alike.places) < 2 or alike.evidence == NOTHING:
        return
    lags = lags_of(job, alike)
    scale = job.spent.period if alike.evidence == WAITS else job.spent.computing
    places = list(alike.places)
    usual = np.median(scale[:, places], axis=1)
    # All are asked once over the whole run, and again only where a stretch of one lags.
    whole = _paces(job, alike, 0, len(job))
    for at in range(len(places)):
        lag = lags[:, at]
        cuts = changes(lag) if _may_lag(lag, usual) else []
        edges = [0, *cuts, len(lag)]
        is_slow = [
            b - a >= LEAST_SPELL
            and bool(np.median(lag[a:b]) >= WORTH_A_SPELL * np.median(usual[a:b]))
            and _spell(job, alike, at, a, b, whole) is not None
            for a, b in pairwise(edges)
        ]
        spells = [
            spell
            for a, b in _joined(edges, is_slow)
            if (spell := _spell(job, alike, at, a, b, whole)) is not None
        ]
        # What the whole run's test says holds, wherever the cuts fell.
        every = _spell(job, alike, at, 0, len(lag), whole)
        yield from spells or ([every] if every is not None else [])


def lags_of(job: JobSteps, alike: Alike) -> NDArray[np.float64]:
    """Returns how far each of some ranks lags behind the others, row by row, in nanoseconds."""
    places = list(alike.places)
    by_waits = alike.evidence == WAITS
    table = (job.spent.waits if by_waits else job.spent.computing)[:, places]
    others = np.stack([column for column in medians_of_others(table) if column is not None], axis=1)
    return others - table if by_waits else table - others


def _may_lag(lag: Series, usual: Series) -> bool:
    """Tells whether any eighth of a series lags by what is worth looking for."""
    parts = np.array_split(lag, min(8, max(1, len(lag) // LEAST_STEPS)))
    return any(np.median(part) >= WORTH_A_SPELL / 2 * np.median(usual) for part in parts)


def _joined(edges: list[int], chosen: list[bool]) -> list[tuple[int, int]]:
    """Returns stretches between ``edges`` that are chosen, neighbours as one.

    >>> _joined([0, 3, 5, 9], [False, True, True])
    [(3, 9)]
    """
    found = list[tuple[int, int]]()
    for a, b, is_chosen in zip(edges, edges[1:], chosen, strict=False):
        if is_chosen and found and found[-1][1] == a:
            found[-1] = (found[-1][0], b)
        elif is_chosen:
            found.append((a, b))
    return found


def _paces(job: JobSteps, alike: Alike, first: int, last: int) -> list[RankPace]:
    """Returns the paces of ranks alike over some rows; none over too few."""
    if last - first < LEAST_STEPS:
        return []
    places = list(alike.places)
    spent = spent_rows(job.spent, slice(first, last)).of(places)
    return paces_of_like(job.ranks[places], alike.stages, spent, alike.evidence)


def _spell(
    job: JobSteps, alike: Alike, at: int, first: int, last: int, whole: list[RankPace]
) -> SlowSpell | None:
    """Returns the spell of a rank over some rows; None where it is not slow in them.

    ``whole`` are the paces over all rows.
    """
    is_whole = last - first == len(job)
    paces = whole if is_whole else _paces(job, alike, first, last)
    if not paces or not paces[at].is_slow:
        return None
    pace = paces[at]
    by_waits = alike.evidence == WAITS
    slower = max(0.0, pace.slower or 0.0)
    lag = (pace.waited_for_ns or 0.0) if by_waits else pace.compute_ns * slower / (1 + slower)
    steps = pace.waited_for_steps if by_waits else pace.slower_steps
    return SlowSpell(
        ranks=(pace.rank,),
        stages=alike.stages,
        first=first,
        last=last,
        lag_ns=lag,
        period_ns=pace.step_ns,
        parts=pace.longer,
        evidence=pace.evidence,
        slower=slower,
        steady=steps / pace.num_steps,
    )


# ----------------------------------------------------------------------- beside its own past


def _of_kinds(job: JobSteps) -> Iterator[SlowSpell]:
    """Yields spells of all ranks that do equal work, beside the others and their own past.

    Beside one that became slow all others become quicker: it is left out before they are judged.
    """
    known = [alike for alike in job.alike if alike.evidence != NOTHING]
    while len(known) > 1 and (found := _beside_the_others(job, known)):
        slowest = max(found, key=lambda each: each.share).stages
        yield from (each for each in found if each.stages == slowest)
        known = [alike for alike in known if alike.stages != slowest]


def _beside_the_others(job: JobSteps, known: list[Alike]) -> list[SlowSpell]:
    computing = [np.median(job.spent.computing[:, list(each.places)], axis=1) for each in known]
    if any(not np.median(each) for each in computing):
        return []
    level = np.stack([each / np.median(each) for each in computing], axis=1)
    spells = []
    for at, alike in enumerate(known):
        others = np.median(np.delete(level, at, axis=1), axis=1)
        ratio = np.divide(level[:, at], others, out=np.ones(len(job)), where=others > 0)
        for first, last, base in raised(ratio):
            spells.append(_against_past(job, alike, computing[at], base, first, last))
    return spells


def raised(ratio: Series) -> list[tuple[int, int, tuple[int, int]]]:
    """Returns the stretches that lie above the lowest one, and that one."""
    edges = [0, *changes(ratio), len(ratio)]
    stretches = list(pairwise(edges))
    long = [(a, b) for a, b in stretches if b - a >= max(LEAST_STEPS, len(ratio) // 20)]
    if len(stretches) < 2 or not long:
        return []
    base = min(long, key=lambda each: float(np.median(ratio[slice(*each)])))
    least = float(np.median(ratio[slice(*base)]))
    usual = float(np.median(np.abs(ratio[slice(*base)] - least)))
    worth = max((1 + WORTH_A_SPELL) * least, least + _DEVIATIONS * usual)
    told = [
        bool(np.mean(ratio[a:b] >= (1 + WORTH_A_SPELL / 2) * least) >= _TOLD)
        and float(np.median(ratio[a:b])) >= worth
        and b - a >= LEAST_SPELL
        for a, b in stretches
    ]
    return [(a, b, base) for a, b in _joined(edges, told)]


def _against_past(
    job: JobSteps, alike: Alike, computing: Series, base: tuple[int, int], first: int, last: int
) -> SlowSpell:
    then, now = slice(*base), slice(first, last)
    places = list(alike.places)
    before, after = float(np.median(computing[then])), float(np.median(computing[now]))
    more = {
        name: float(np.median(job.spent.parts[name][now][:, places]))
        - float(np.median(job.spent.parts[name][then][:, places]))
        for name in _COMPUTING
        if name in job.spent.parts
    }
    return SlowSpell(
        ranks=tuple(job.ranks[places].tolist()),
        stages=alike.stages,
        first=first,
        last=last,
        lag_ns=max(0.0, after - before),
        period_ns=float(np.median(job.period_ns[now])),
        parts=tuple(sorted(((n, ns) for n, ns in more.items() if ns > 0), key=lambda p: -p[1])),
        evidence=alike.evidence,
        slower=after / before - 1 if before else 0.0,
        steady=float(np.mean(computing[now] > before)),
        against_past=True,
    )
