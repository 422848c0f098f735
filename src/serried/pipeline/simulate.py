"""Simulation: a schedule and its costs give the time of every action, exactly.

Every rank runs its list in order; an action starts when the rank is free and what it needs has
arrived (``longest_path``). An overlapped pair starts when both halves can and takes one time. A
message is sent when its action ends; a blocking one holds its sender until it has arrived. An
early recomputation runs while its gradient is still under way.

The tail of a step follows: gradients reduced over data parallel ranks, then the optimizer.

    rank 0  ... 0B6 0B7 | reduce 0 | wait for all | optimizer
    rank 1  ... 1B7 | reduce 1 | wait for all ... | optimizer

A stage's gradients are reduced when its last weight gradient is there, one stage after another,
beside the rank's other work. The optimizer starts when the rank's reductions have ended, and
where it needs a global gradient norm, when those of all ranks have.

>>> from serried.pipeline.costs import Costs
>>> from serried.pipeline.schedules.one_f_one_b import one_f_one_b
>>> simulate(one_f_one_b(4, 8), Costs()).makespan
33
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from serried.action import ActionKind
from serried.pipeline.costs import Costs, Number
from serried.pipeline.dependencies import Positions, dependencies
from serried.pipeline.longest_path import Lists, Times, longest_path
from serried.pipeline.packed import Numbers
from serried.pipeline.schedule import Schedule
from serried.pipeline.shared_cores import SharedCores, shared_times
from serried.pipeline.timing import Ticks, Timing, spread, timing
from serried.pipeline.validate import deadlock


@dataclass(frozen=True)
class Reduction:
    """Times the reduction of one stage's gradients on one rank, in ticks."""

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
        for reduction in reductions:
            reduced[reduction.rank] = max(reduced[reduction.rank], reduction.end)
    optimizer = ticks.array(costs.optimizer)
    start = reduced
    if costs.is_optimizer_synchronous and optimizer:
        start = np.full_like(reduced, reduced.max())
    return Tail(tuple(reductions), reduced, start, start + optimizer)


def _reductions(schedule: Schedule, costs: Costs, ticks: Ticks, end: Times) -> list[Reduction]:
    takes = spread(schedule, "all_reduce", costs.all_reduce, ticks)
    gives = np.flatnonzero((schedule.kind == ActionKind.B) | (schedule.kind == ActionKind.W))
    # One rank reduces one stage at a time, in the order in which their last gradients are there.
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


@dataclass(frozen=True, eq=False)
class Simulation:
    """Holds when every entry of a schedule runs, in ticks; ``ticks`` turns them into time.

    The two entries of an overlapped pair have the same start and end.
    """

    schedule: Schedule
    costs: Costs
    timing: Timing
    start: Times
    end: Times
    source: Numbers
    """The entry on another rank whose message each entry waits for, or -1."""
    tail: Tail

    @property
    def ticks(self) -> Ticks:
        """Says how many ticks a unit of time has."""
        return self.timing.ticks

    @property
    def makespan(self) -> Number:
        """The time from the first start to the last end, the tail of the step included."""
        return self.ticks.number(self.rank_end.max())

    @property
    def rank_start(self) -> Times:
        """When each rank starts its first action."""
        return self.start[self.schedule.first[:-1]]

    @property
    def rank_end(self) -> Times:
        """When each rank is done: its actions, their blocking messages, and the tail."""
        return self.tail.end

    @cached_property
    def work(self) -> Times:
        """How long each rank is at work: its actions and the optimizer."""
        actions = np.add.reduceat(self.timing.duration, self.schedule.first[:-1])
        return actions + self.tail.end - self.tail.start

    @cached_property
    def arrival(self) -> Times:
        """When the message that an entry waits for arrives; 0 where there is none."""
        arrived: Times = np.where(self.source >= 0, self.end[self.source] + self.timing.travel, 0)
        return arrived


def simulate(schedule: Schedule, costs: Costs, shared: SharedCores | None = None) -> Simulation:
    """Runs a schedule; raises InputError for one that deadlocks, and for costs of other sizes.

    With ``shared`` cores the costs are what each takes on a core of its own, and entries take as
    long as they then get of the cores; a sender that blocks would use none, and is not known there.
    """
    needs = dependencies(schedule, Positions.of(schedule))
    source = np.where(needs.is_remote, needs.producer, -1)
    times = timing(schedule, costs, source)
    # A pair is two entries. Its forward runs for no time and the backward, right behind it, for
    # all: so the pair starts when both inputs are there. Whoever needs the forward waits for it.
    producer = needs.producer + (schedule.joined[needs.producer] & (needs.producer >= 0))
    # An entry that may recompute while its gradient travels starts that much before it arrives. A
    # blocking message keeps its sender busy until it has arrived, so it is counted into how long
    # the sender runs, and taken off the way again.
    delay = times.travel - times.early - np.where(producer >= 0, times.held[producer], 0)
    lists = Lists(schedule.first, producer, times.duration + times.held, delay)
    on_cores = shared_times(lists, shared) if shared else None
    ends = on_cores.ends if on_cores else longest_path(lists)
    if ends.stuck:
        raise deadlock(schedule, producer, ends.stuck)
    end = ends.end - times.held
    start = on_cores.start if on_cores else end - times.duration
    forward = np.flatnonzero(schedule.joined)
    end[forward], start[forward] = end[forward + 1], start[forward + 1]
    after = tail(schedule, costs, times.ticks, end, ends.end)
    return Simulation(schedule, costs, times, start, end, source, after)
