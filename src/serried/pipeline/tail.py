"""The tail of a step: gradients reduced over data parallel ranks, then the optimizer.

    rank 0  ... 0B6 0B7 | reduce 0 | wait for all | optimizer
    rank 1  ... 1B7 | reduce 1 | wait for all ... | optimizer

A stage's gradients are reduced when its last weight gradient is there, one stage after another,
beside the rank's other work. The optimizer starts when the rank's reductions have ended, and
where it needs a global gradient norm, when those of all ranks have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serried.action import ActionKind
from serried.pipeline.costs import Costs
from serried.pipeline.longest_path import Times
from serried.pipeline.schedule import Schedule
from serried.pipeline.ticks import Ticks
from serried.pipeline.timing import spread


@dataclass(frozen=True)
class Reduction:
    """Is the reduction of one stage's gradients on one rank, in ticks."""

    rank: int
    stage: int
    start: int
    end: int
    after: int
    """The entry of the schedule whose weight gradient is the stage's last."""


@dataclass(frozen=True, eq=False)
class Tail:
    """Holds the reductions, and when each rank's optimizer starts and ends, in ticks."""

    reductions: tuple[Reduction, ...]
    reduced: Times
    """When each rank's work and reductions have ended."""
    start: Times
    end: Times


def tail(schedule: Schedule, costs: Costs, ticks: Ticks, end: Times, free: Times) -> Tail:
    """Returns the tail that follows entries which end at ``end`` and leave the rank ``free``."""
    reductions: list[Reduction] = []
    reduced = free[schedule.first[1:] - 1]
    if any(ticks.array(costs.all_reduce).ravel()):
        reductions = _reductions(schedule, costs, ticks, end)
        for each in reductions:
            reduced[each.rank] = max(reduced[each.rank], each.end)
    optimizer = ticks.array(costs.optimizer)
    start = reduced
    if costs.is_optimizer_synchronous and optimizer:
        start = np.full_like(reduced, reduced.max())
    return Tail(tuple(reductions), reduced, start, start + optimizer)


def _reductions(schedule: Schedule, costs: Costs, ticks: Ticks, end: Times) -> list[Reduction]:
    takes = spread(schedule, "all_reduce", costs.all_reduce, ticks)
    gives = np.flatnonzero((schedule.kind == ActionKind.B) | (schedule.kind == ActionKind.W))
    found = []
    for rank in range(schedule.num_ranks):
        of_rank = gives[schedule.rank[gives] == rank]
        ready = []
        for direction, stage in schedule.placement.stages_of(rank):
            own = (schedule.stage[of_rank] == stage) & (schedule.direction[of_rank] == direction)
            last = int(of_rank[own][-1])
            ready.append((end[last], last, stage, takes[direction, stage, 0]))
        free = 0
        for at, last, stage, time in sorted(ready):
            start = max(at, free)
            free = start + time
            found.append(Reduction(rank, stage, start, free, last))
    return found
