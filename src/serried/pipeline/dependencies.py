"""Dependencies: the one entry elsewhere that each entry of a schedule waits for.

    F of stage s waits for F of stage s - 1       F ... F F ... F
    B or I of stage s, for B or I of stage s + 1  B ... B B ... B   the other way

What an entry needs of its own stage (B its F, I its F, W its I) ran before it on the same
rank, so the order of the rank's list keeps it; ``validate`` checks that it does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind
from serried.pipeline.longest_path import Lists, longest_path
from serried.pipeline.packed import Numbers
from serried.pipeline.schedule import Schedule


@dataclass(frozen=True, eq=False)
class Positions:
    """Says where each stage's work on each microbatch stands; -1 where it does not.

    A cell is (direction * stages + stage) * microbatches + microbatch.
    """

    microbatches: int
    cell: Numbers
    forward: Numbers
    backward: Numbers
    """Where the full backward stands, or its input half."""
    weight: Numbers
    """Where the weight half stands."""

    @classmethod
    def of(cls, schedule: Schedule) -> Positions:
        """Looks every entry up; one that occurs twice is found where it occurs last."""
        placement, microbatches = schedule.placement, schedule.microbatches_each_way
        row = schedule.direction * placement.num_stages + schedule.stage
        cell = row * microbatches + schedule.microbatch
        size = placement.rank_of.size * microbatches
        kind = schedule.kind

        def table(*kinds: ActionKind) -> Numbers:
            found = np.full(size, -1)
            for one in kinds:
                entries = np.flatnonzero(kind == one)
                found[cell[entries]] = entries
            return found

        forward, weight = table(ActionKind.F), table(ActionKind.W)
        return cls(microbatches, cell, forward, table(ActionKind.B, ActionKind.I), weight)


@dataclass(frozen=True, eq=False)
class Dependencies:
    """Holds for every entry its producer, or -1, and whether that sits on another rank."""

    producer: Numbers
    is_remote: NDArray[np.bool_]


def dependencies(schedule: Schedule, where: Positions) -> Dependencies:
    """Finds the producers."""
    # In a table of cells (stage by microbatch) the same microbatch one stage on or back stands one
    # row on or back, so a producer is looked up at the entry's own cell plus or minus a row.
    stage, kind = schedule.stage, schedule.kind
    last = schedule.placement.num_stages - 1
    producer = np.full(len(kind), -1)
    entries = np.flatnonzero((kind == ActionKind.F) & (stage > 0))
    producer[entries] = where.forward[where.cell[entries] - where.microbatches]
    is_backward = (kind == ActionKind.B) | (kind == ActionKind.I)
    entries = np.flatnonzero(is_backward & (stage < last))
    producer[entries] = where.backward[where.cell[entries] + where.microbatches]
    rank = schedule.rank
    return Dependencies(producer, (producer >= 0) & (rank[producer] != rank))


def runs(schedule: Schedule) -> bool:
    """Says whether no rank waits for ever, the lists being otherwise complete."""
    needs = dependencies(schedule, Positions.of(schedule))
    free = np.zeros(len(needs.producer), np.int64)
    return not longest_path(Lists(schedule.first, needs.producer, free, free)).stuck
