"""The steps of a job of whose ranks only the moments are known at which they issued collectives.

    all-reduce 7 of tp_0    rank 0 at 10 ms ......waits.......┐
                            rank 1 at 55 ms, the last         └─ ready at 55 ms, for both
    all-reduce 3 of dp_0    rank 0 at 57 ms                   its own time: 2 ms

A collective is ready when the last of its ranks has issued it. What passes from there until a rank
issues its next one is the rank's own time, and what passed before was a wait. Flight recorders tell
these moments for every rank, also where nothing else is recorded (gloo). Nothing tells the steps:
the same collectives come round again and again, and one round of them is taken for a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from serried.diagnose.job_state.state import JobState, RankOperation
from serried.diagnose.steps.table import Alike, JobSteps
from serried.trace.measure.ranks.slowest import WAITS
from serried.trace.measure.ranks.spent import Spent

Moments = NDArray[np.int64]
"""Nanoseconds: a row per collective in its turn, a column per rank."""
Key = tuple[str, int]
"""A collective: its group's name and its number there."""

LEAST_ROUNDS = 3
LEAST_S = 1.5
"""How long the rounds must last together: on a busy host a process may lack its processor for about
a second, and a job of no more tells nothing of its ranks."""
_MOST_PERIOD = 4_096
_SAME = 0.95
_OFF = 2.0
"""A rank that seems this many rounds away from the others has a clock of its own."""


def steps_of_state(state: JobState) -> list[JobSteps]:
    """Returns the rounds of ranks that issue equal collectives, a table for each kind of ranks.

    Pipeline stages may be of several kinds. Those of whom too little is known are left out, and
    so is who meets a rank of which nothing is known: nobody knows how long it waited there.
    """
    issued = {rank.rank: _timed(rank.issued) for rank in state.ranks}
    kinds = {group.name: group.kind for group in state.groups}
    alike: dict[tuple[tuple[str, str, int | None], ...], list[int]] = {}
    for rank, operations in issued.items():
        if operations:
            signs = tuple((each.op, _kind(each, kinds), each.numel_in) for each in operations)
            alike.setdefault(signs, []).append(rank)
    tables = (_steps_of_kind(state, issued, signs, ranks) for signs, ranks in alike.items())
    return [table for table in tables if table is not None]


def _steps_of_kind(
    state: JobState,
    issued: dict[int, list[RankOperation]],
    signs: Sequence[object],
    kind: list[int],
) -> JobSteps | None:
    ranks = _without_partners_of_the_silent(state, issued, kind)
    round_ = _period(signs)
    if len(ranks) < 2 or not round_ or len(signs) // round_ < LEAST_ROUNDS:
        return None
    began = np.array([[each.began_ns for each in issued[rank]] for rank in ranks], dtype=np.int64).T
    began -= _offsets(began, round_)
    if np.median(began[-1] - began[0]) < LEAST_S * 1e9:
        return None
    waits = np.maximum(_ready(state, issued, ranks, began) - began, 0)
    return _table(began, waits.astype(np.float64), round_, ranks)


def _without_partners_of_the_silent(
    state: JobState, issued: Mapping[int, Sequence[RankOperation]], ranks: Sequence[int]
) -> list[int]:
    partial = {g.name for g in state.groups if not all(issued.get(rank) for rank in g.ranks)}
    met = {rank: {operation.group for operation in issued[rank]} for rank in ranks}
    return [rank for rank in ranks if partial.isdisjoint(met[rank])]


def _timed(operations: Sequence[RankOperation]) -> list[RankOperation]:
    """Returns the collectives whose moment is known, in their order."""
    known = [each for each in operations if each.began_ns and each.group and each.seq is not None]
    return sorted(known, key=lambda each: each.began_ns or 0)


def _kind(operation: RankOperation, kinds: dict[str, str]) -> str:
    name = operation.group or ""
    return kinds.get(name) or name.rstrip("0123456789_")


def _period(signs: Sequence[object]) -> int:
    """Returns after how many collectives they come round again; 0 where they do not.

    >>> _period(list("abbabbabb")), _period(list("abcdefgh"))
    (3, 0)
    """
    for period in range(1, min(len(signs) // LEAST_ROUNDS, _MOST_PERIOD) + 1):
        pairs = zip(signs, signs[period:], strict=False)
        if sum(a == b for a, b in pairs) >= _SAME * (len(signs) - period):
            return period
    return 0


def _offsets(began: Moments, round_: int) -> Moments:
    """Returns how far each rank's clock is off, where that is farther than ranks can be apart."""
    apart = np.median(began - np.median(began, axis=1, keepdims=True), axis=0)
    length = float(np.median(began[round_:] - began[:-round_]))
    return np.where(np.abs(apart) > _OFF * length, apart, 0).astype(np.int64)


def _ready(
    state: JobState,
    issued: dict[int, list[RankOperation]],
    ranks: list[int],
    began: Moments,
) -> Moments:
    """Returns by collective and rank when the last of its group's ranks had issued it."""
    members = {group.name: set(group.ranks) for group in state.groups}
    moments: dict[Key, dict[int, int]] = {}
    for column, rank in enumerate(ranks):
        for row, each in enumerate(issued[rank]):
            moments.setdefault(_key(each), {})[rank] = int(began[row, column])
    found = np.array(began)
    for column, rank in enumerate(ranks):
        for row, each in enumerate(issued[rank]):
            known = moments[_key(each)]
            # Of a group of which some rank left nothing, nobody knows when it was complete.
            if members.get(each.group or "", set()) <= known.keys() and len(known) > 1:
                found[row, column] = max(known.values())
    return found


def _key(operation: RankOperation) -> Key:
    return (operation.group or "", operation.seq or 0)


def _table(
    began: Moments,
    waits: NDArray[np.float64],
    round_: int,
    ranks: list[int],
) -> JobSteps:
    count = (len(began) - 1) // round_
    # Rounds are counted from the end: the first collectives pay for connections.
    first = len(began) - 1 - count * round_
    edges = first + round_ * np.arange(count + 1)
    period = np.diff(began[edges], axis=0).astype(np.float64)
    sums = np.concatenate([np.zeros_like(waits[:1]), np.cumsum(waits, axis=0)])
    held = np.minimum(np.diff(sums[edges], axis=0), period)
    own, nothing = period - held, np.zeros_like(period)
    spent = Spent(
        period=period,
        waits=held,
        meets=held,
        inside=nothing,
        hidden=nothing,
        computing=own,
        parts={"computing": own},
    )
    return JobSteps(
        ranks=np.array(ranks, dtype=np.int64),
        steps=np.arange(count, dtype=np.int64),
        began_ns=began[edges[:-1]].min(axis=1),
        spent=spent,
        alike=(Alike((), tuple(range(len(ranks))), WAITS),),
        counts_rounds=True,
    )
