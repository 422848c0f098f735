"""The slowest ranks: those that others wait for, like compared with like.

    rank 0   [F][ B ..|waits......] [F][ B ..|waits......]     waits 40 ms a step
    rank 1   [F][ B ............|w] [F][ B ............|w]     waits 1 ms: rank 0 waits for it

Ranks that work together meet in messages and collectives, where who comes early waits for who
comes late. So of ranks that do equal work the late one is that which waits least, and what it
spent the time on instead is its own: computing, its optimizer, or what came before its first span,
such as its data. How long a forward or a backward *takes* tells nothing, for waiting is inside it.

Stages differ by their layers, so ranks of different stages are not compared. A rank is held against
the median of the others of its stages, step by step. It is named if the lag is worth saying in four
of five steps and varies little, the less the fewer steps there are: neither one slow step nor one
slow peer moves it. Nor is it named for what equal ranks differ by: with three others or more the
lag must be three times the median by which those differ from their own median. Where no waiting was
recorded only a pipeline's computations can be compared, and only where nothing says that ranks of
one stage wait for one another inside them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, Spans
from serried.trace.measure.ranks.spent import Spent, data_rows, time_spent
from serried.trace.model.trace import Trace

WORTH_SAYING = 0.02
"""Less than this share of a step is what two equal devices differ by."""

WAITS, COMPUTING, NOTHING = "waits", "computing", "nothing"
"""What a rank is held against its like by."""

_SHARED_AXES = ("tp", "cp", "ep", "etp")
"""Axes whose ranks exchange within a computation."""

_WORTH_A_PART = 0.25
LEAST_STEPS = 3
"""The least number of steps from which a slow rank is named."""
_SURE_STEPS = 18
"""With this many steps a lag may vary as much as it is; with fewer by as many times less. Drawn at
random, ranks that are equal are then named in 1 to 4 of 100 runs where steps vary by a third."""

SPREADS = 3
"""How many times what equal ranks differ by a lag must be: beyond nearly all of a normal law."""

Table = NDArray[np.float64]
"""Nanoseconds: one row per step, one column per rank, or one column alone."""


@dataclass(frozen=True)
class RankPace:
    """Says how a rank stands beside the others that hold its stages; times are of a step."""

    rank: int
    stages: tuple[int, ...]
    compute_ns: float
    """The median over steps, waits inside computations not counted."""
    jitter: float
    """The standard deviation over steps, over the mean."""
    slower: float | None
    """How much longer it computes than the median of them, 0.08 for 8 %; None without peers, and
    where waits may lie in the computations unseen."""
    slower_steps: int
    """In how many steps it took longer than that median."""
    num_steps: int
    evidence: str
    """By what it is compared: what ranks waited, how long they computed, or nothing."""
    step_ns: float
    """How long its steps took, from the end of the one before, the median over steps."""
    waits_ns: float
    """How long it waited for messages and collectives, the median over steps."""
    waited_for_ns: float | None
    """How much longer than it the median of the others waited; None without peers."""
    waited_for_steps: int
    """In how many steps they waited longer."""
    is_slow: bool
    """Whether the others wait for it, or it computes longer, by a margin worth saying."""
    longer: tuple[tuple[str, float], ...]
    """What it spent more time on than they did and how much, the most first: computations, the
    ``optimizer``, loading ``data``, ``before`` its first span of the step, in ``gaps`` between."""


def paces(trace: Trace, steps: NDArray[np.int32]) -> tuple[RankPace, ...]:
    """Returns every rank's pace over ``steps``, complete ones: those that are slow first.

    Ranks without peers stand last, by rank.
    """
    compute = trace.spans.where(
        np.isin(trace.spans.kind, sorted(COMPUTE)) & np.isin(trace.spans.step, steps)
    )
    ranks = np.unique(compute.rank).astype(np.int64)
    if not len(ranks):
        return ()
    # All steps are given, for a step's time begins where the one before ended.
    mine = np.isin(trace.spans.rank, ranks)
    spent = time_spent(trace.spans.where(mine), steps, ranks, data_rows(trace)[mine])
    stages = stages_held(compute, ranks)
    alike: dict[tuple[int, ...], list[int]] = {}
    for place, held in enumerate(stages):
        alike.setdefault(held, []).append(place)
    found = [
        pace
        for held, places in alike.items()
        for kind in [spent.of(places)]
        for pace in paces_of_like(ranks[places], held, kind, evidence_of(trace, kind))
    ]
    return tuple(
        sorted(
            found,
            key=lambda each: (
                each.waited_for_ns is None,
                not each.is_slow,
                -(each.waited_for_ns or 0),
                each.rank,
            ),
        )
    )


def paces_of_like(
    ranks: NDArray[np.int64], stages: tuple[int, ...], spent: Spent, evidence: str
) -> list[RankPace]:
    """Returns the paces of ranks that do equal work, held against one another by ``evidence``."""
    others = [
        medians_of_others(table) for table in (spent.computing, spent.waits, *spent.parts.values())
    ]
    spreads = _spreads_of_others(spent.waits if evidence == WAITS else spent.computing)
    return [
        _pace(
            int(rank),
            stages,
            evidence,
            spreads[at],
            spent.of([at]),
            # For a rank alone all of these are None: an empty list says that it has no like.
            [column for each in others if (column := each[at]) is not None],
        )
        for at, rank in enumerate(ranks)
    ]


def evidence_of(trace: Trace, spent: Spent) -> str:
    """Returns by what ranks of one kind can be compared: waits, computing, or nothing."""
    shares = any(trace.job.sizes.get(axis, 1) > 1 for axis in _SHARED_AXES)
    # What goes on behind a computation is waited for somewhere in it.
    shares = shares or bool(spent.hidden.any())
    if trace.waits_inside or (shares and not spent.inside.any()):
        return NOTHING
    if spent.meets.any():
        return WAITS
    return COMPUTING if trace.has_pipeline else NOTHING


def medians_of_others(taken: Table) -> list[Table | None]:
    """Returns for each column the median of all other columns, row by row; None for one alone.

    >>> [column.tolist() for column in medians_of_others(np.array([[1.0, 5.0, 2.0]]))]
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


def _spreads_of_others(taken: Table) -> list[float]:
    """Returns for each column by how much all others differ from their median, the median.

    Fewer than three others say nothing of how ranks differ, and give 0.

    >>> _spreads_of_others(np.array([[10.0, 11.0, 12.0, 40.0]]))
    [1.0, 2.0, 1.0, 1.0]
    """
    middle = np.median(taken, axis=0)
    if len(middle) < 4:
        return [0.0] * len(middle)
    found = []
    for at in range(len(middle)):
        others = np.delete(middle, at)
        found.append(float(np.median(np.abs(others - np.median(others)))))
    return found


def stages_held(compute: Spans, ranks: NDArray[np.int64]) -> list[tuple[int, ...]]:
    """Returns the stages that each rank computed for."""
    pairs = np.unique(np.stack([compute.rank, compute.stage]), axis=1)
    return [tuple(pairs[1, pairs[0] == rank].tolist()) for rank in ranks.tolist()]


def _pace(
    rank: int,
    stages: tuple[int, ...],
    evidence: str,
    spread_ns: float,
    mine: Spent,
    others: list[Table],
) -> RankPace:
    """Returns a rank's pace; ``others`` holds the medians of its like, none without any.

    ``spread_ns`` is what those differ by.
    """
    computing, waits = mine.computing[:, 0], mine.waits[:, 0]
    mean = float(computing.mean())
    pace = RankPace(
        rank=rank,
        stages=stages,
        compute_ns=float(np.median(computing)),
        jitter=float(computing.std()) / mean if mean else 0.0,
        slower=None,
        slower_steps=0,
        num_steps=len(computing),
        evidence=evidence,
        step_ns=float(np.median(mine.period)),
        waits_ns=float(np.median(waits)),
        waited_for_ns=None,
        waited_for_steps=0,
        is_slow=False,
        longer=(),
    )
    if not others:
        return pace
    of_computing, of_waits, *of_parts = others
    ratio = np.divide(computing, of_computing, out=np.ones_like(computing), where=of_computing > 0)
    lag = of_waits - waits
    behind, of = {
        WAITS: (lag, mine.period[:, 0]),
        COMPUTING: (computing - of_computing, of_computing),
        NOTHING: (np.zeros(0), np.zeros(0)),
    }[evidence]
    stands_out = len(behind) > 0 and float(np.median(behind)) >= SPREADS * spread_ns
    return replace(
        pace,
        slower=None if evidence == NOTHING else float(np.median(ratio)) - 1,
        slower_steps=0 if evidence == NOTHING else int((ratio > 1).sum()),
        waited_for_ns=float(np.median(lag)),
        waited_for_steps=int((lag > 0).sum()),
        is_slow=stands_out and _is_steady(behind, of),
        longer=_longer(mine, of_parts, float(np.median(lag))),
    )


def _longer(mine: Spent, others: list[Table], lag_ns: float) -> tuple[tuple[str, float], ...]:
    """Returns what makes up a good part of a rank's lag, the most first."""
    more = {
        name: float(np.median(table[:, 0] - theirs))
        for (name, table), theirs in zip(mine.parts.items(), others, strict=True)
    }
    told = [(name, ns) for name, ns in more.items() if ns > 0 and ns >= _WORTH_A_PART * lag_ns]
    return tuple(sorted(told, key=lambda each: -each[1]))


def _is_steady(lag: Table, of: Table) -> bool:
    """Tells whether ``lag`` is worth saying beside ``of``, step after step.

    The first step that was recorded, which pays for memory and connections, does not count where
    there are others enough.
    """
    if len(lag) > LEAST_STEPS:
        lag, of = lag[1:], of[1:]
    count, middle = len(lag), float(np.median(lag))
    if count < LEAST_STEPS or middle <= 0:
        return False
    # Medians, so that one slow step neither makes a rank slow nor clears it.
    varies = float(np.median(np.abs(lag - middle)))
    told = int((lag >= WORTH_SAYING * float(np.median(of))).sum())
    return 5 * told >= 4 * count and count * middle >= _SURE_STEPS * varies
