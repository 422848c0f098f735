"""Idle time: every interval in which a rank does nothing, with its cause; they add up exactly.

    rank 1   | warm-up | 1F0 | 1F1 |  dependency  | latency | 1B0 | ...  | 1B7 | cool-down |
                                   |              |         |
    rank 2                      ...  2B0 is running | its gradient travels

    warm-up        before the rank's first action
    dependency     the next action waits for one of another stage that has not ended
    latency        that one has ended, its message is under way (or holds the sender)
    memory limit   a forward could have run, but one activation more would exceed the limit
    all-reduce     the rank's gradients are still being reduced
    cool-down      the rank is done; others are not

The intervals of a rank and its work fill the makespan without a gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from serried.action import Action, ActionKind
from serried.pipeline.costs import Number
from serried.pipeline.in_flight import TO_WEIGHT, Weights, occupied
from serried.pipeline.longest_path import Times
from serried.pipeline.packed import Numbers
from serried.pipeline.simulate import Simulation


class IdleCause(IntEnum):
    """Says why a rank is idle."""

    WARM_UP = 0
    DEPENDENCY = 1
    LATENCY = 2
    MEMORY_LIMIT = 3
    ALL_REDUCE = 4
    COOL_DOWN = 5

    @property
    def words(self) -> str:
        """The cause as people read it."""
        return (
            "memory limit"
            if self is IdleCause.MEMORY_LIMIT
            else self.name.lower().replace("_", "-")
        )


@dataclass(frozen=True)
class Idle:
    """Names one interval: who is idle, from when to when, why, and what it waits for."""

    rank: int
    start: Number
    end: Number
    cause: IdleCause
    waits_for: Action | None


@dataclass(frozen=True, eq=False)
class IdleIntervals:
    """Holds all intervals as columns, in ticks, ordered by rank and time."""

    simulation: Simulation
    rank: Numbers
    start: Times
    end: Times
    cause: Numbers
    waits_for: Numbers
    """The entry of the schedule that is waited for, or -1."""

    def __len__(self) -> int:
        return len(self.rank)

    def __iter__(self) -> Iterator[Idle]:
        ticks, schedule = self.simulation.ticks, self.simulation.schedule
        for row in range(len(self)):
            source = int(self.waits_for[row])
            yield Idle(
                int(self.rank[row]),
                ticks.number(self.start[row]),
                ticks.number(self.end[row]),
                IdleCause(self.cause[row]),
                schedule.action(source) if source >= 0 else None,
            )

    def total(self) -> Number:
        """Returns all idle time of all ranks."""
        return self.simulation.ticks.number((self.end - self.start).sum())

    def by_cause(self) -> dict[IdleCause, Number]:
        """Returns how much of it each cause made, all ranks together."""
        return {
            cause: self.simulation.ticks.number((self.end - self.start)[self.cause == cause].sum())
            for cause in IdleCause
        }

    def by_stage(self) -> dict[int, Number]:
        """Returns how long ranks waited for each stage's work or its messages, longest first."""
        has_source = self.waits_for >= 0
        stage = self.simulation.schedule.stage[self.waits_for[has_source]]
        took = (self.end - self.start)[has_source]
        sums = {int(waited): took[stage == waited].sum() for waited in np.unique(stage)}
        order = sorted(sums, key=lambda waited: (-sums[waited], waited))
        return {waited: self.simulation.ticks.number(sums[waited]) for waited in order}


def idle(
    simulation: Simulation, *, memory_limit: Number | None = None, weights: Weights = TO_WEIGHT
) -> IdleIntervals:
    """Finds every idle interval; ``memory_limit`` is in activations a rank, counted to W.

    ``weights`` says what F, I and W add to the memory where the limit is in another unit.

    >>> from serried.pipeline.costs import Costs
    >>> from serried.pipeline.schedules.one_f_one_b import one_f_one_b
    >>> from serried.pipeline.simulate import simulate
    >>> {c.words: n for c, n in idle(simulate(one_f_one_b(2, 2), Costs())).by_cause().items() if n}
    {'warm-up': 1, 'dependency': 3, 'cool-down': 2}
    """
    pieces = [_at_the_start(simulation), *_in_between(simulation, memory_limit, weights)]
    pieces += _at_the_end(simulation)
    rank, start, end, waits_for = (
        np.concatenate([getattr(piece, name) for piece in pieces])
        for name in ("rank", "start", "end", "waits_for")
    )
    cause = np.repeat([int(piece.cause) for piece in pieces], [len(piece.rank) for piece in pieces])
    order = np.lexsort((start, rank))
    order = order[(end - start)[order] > 0]
    columns = (column[order] for column in (rank, start, end, cause, waits_for))
    return IdleIntervals(simulation, *columns)


@dataclass(frozen=True, eq=False)
class _Piece:
    """Holds the intervals of one cause; those of no length are left out later."""

    cause: IdleCause
    rank: Numbers
    start: Times
    end: Times
    waits_for: Numbers


def _at_the_start(simulation: Simulation) -> _Piece:
    rank = np.arange(simulation.schedule.num_ranks)
    begin = simulation.rank_start
    return _Piece(IdleCause.WARM_UP, rank, np.zeros_like(begin), begin, np.full(len(rank), -1))


def _in_between(
    simulation: Simulation, memory_limit: Number | None, weights: Weights
) -> list[_Piece]:
    """Returns the pieces of every gap between two actions, waits for blocking messages first."""
    # A gap is cut where its cause changes, each cut no sooner than the one before:
    #
    #     free      released       sent         barred       start
    #      |  latency  |  dependency  |  latency  |  memory limit  |
    #
    # until ``released`` the rank's own blocking message holds it, until ``sent`` what it waits
    # for has not ended, until ``barred`` that message travels; then only memory is missing.
    # ``begins`` are the actions after a gap: no backward of a pair, no first action of a rank.
    schedule = simulation.schedule
    begins = np.flatnonzero(~np.append(True, schedule.joined[:-1]))
    begins = begins[simulation.start[begins] > simulation.end[begins - 1]]
    begins = np.setdiff1d(begins, schedule.first, assume_unique=True)
    start, free = simulation.start[begins], simulation.end[begins - 1]
    released = free + simulation.timing.held[begins - 1]
    source = _binding(simulation, begins)
    sent = np.clip(np.where(source >= 0, simulation.end[source], released), released, start)
    barred = start
    if memory_limit is not None:
        since = _ready_but_barred(simulation, begins, memory_limit, weights)
        barred = np.clip(since, released, start)
        sent = np.minimum(sent, barred)
    rank, nobody = schedule.rank[begins], np.full_like(source, -1)
    return [
        _Piece(IdleCause.LATENCY, rank, free, released, nobody),
        _Piece(IdleCause.DEPENDENCY, rank, released, sent, source),
        _Piece(IdleCause.LATENCY, rank, sent, barred, source),
        _Piece(IdleCause.MEMORY_LIMIT, rank, barred, start, nobody),
    ]


def _at_the_end(simulation: Simulation) -> list[_Piece]:
    """Returns what follows each rank's last action, around the optimizer."""
    schedule, tail = simulation.schedule, simulation.tail
    rank, nobody = np.arange(schedule.num_ranks), np.full(schedule.num_ranks, -1)
    last = schedule.first[1:] - 1
    done = simulation.end[last]
    free = done + simulation.timing.held[last]
    makespan = np.full_like(done, simulation.rank_end.max())
    return [
        _Piece(IdleCause.LATENCY, rank, done, free, nobody),
        _Piece(IdleCause.ALL_REDUCE, rank, free, tail.reduced, nobody),
        _Piece(IdleCause.COOL_DOWN, rank, tail.reduced, tail.start, nobody),
        _Piece(IdleCause.COOL_DOWN, rank, tail.end, makespan, nobody),
    ]


def _binding(simulation: Simulation, begins: Numbers) -> Numbers:
    """Returns the entry that an action waits for; of the two of a pair, the later to arrive."""
    ends = begins + simulation.schedule.joined[begins]
    later = simulation.arrival[ends] > simulation.arrival[begins]
    chosen: Numbers = simulation.source[np.where(later, ends, begins)]
    return chosen


def _ready_but_barred(
    simulation: Simulation, begins: Numbers, memory_limit: Number, weights: Weights
) -> Times:
    """Returns since when a forward could have run before each action but for the limit.

    That forward is the rank's next in its list; where the action itself is it, or where one more
    activation fits, nothing was barred and the time is the action's own start.
    """
    schedule = simulation.schedule
    start = simulation.start[begins].copy()
    is_forward = schedule.kind == ActionKind.F
    forwards = np.flatnonzero(is_forward)
    after = np.searchsorted(forwards, begins)
    upcoming = forwards[np.minimum(after, len(forwards) - 1)]
    most: Any = memory_limit
    with_one_more: Times = occupied(schedule, weights)[begins - 1] + weights[0]
    barred = (
        (after < len(forwards))
        & (schedule.rank[upcoming] == schedule.rank[begins])
        & ~is_forward[begins]
        & np.asarray(with_one_more > most, bool)
    )
    start[barred] = np.minimum(start[barred], simulation.arrival[upcoming[barred]])
    return start
