"""Simulation: a schedule and its costs give the time of every action, exactly.

Every rank runs its list in order; an action starts when the rank is free and what it needs has
arrived (``longest_path``). An overlapped pair starts when both halves can and takes one time. A
message is sent when its action ends; a blocking one holds its sender until it has arrived. An
early recomputation runs while its gradient is still under way.

>>> from serried.pipeline.costs import Costs
>>> from serried.pipeline.schedules.one_f_one_b import one_f_one_b
>>> simulate(one_f_one_b(4, 8), Costs()).makespan
33
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from serried.pipeline.costs import Costs, Number
from serried.pipeline.dependencies import Positions, dependencies
from serried.pipeline.longest_path import Lists, Times, longest_path
from serried.pipeline.packed import Numbers
from serried.pipeline.schedule import Schedule
from serried.pipeline.tail import Tail, tail
from serried.pipeline.ticks import Ticks
from serried.pipeline.timing import Timing, timing
from serried.pipeline.validate import deadlock


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


def simulate(schedule: Schedule, costs: Costs) -> Simulation:
    """Runs a schedule; raises InputError for one that deadlocks, and for costs of other sizes."""
    needs = dependencies(schedule, Positions.of(schedule))
    source = np.where(needs.is_remote, needs.producer, -1)
    times = timing(schedule, costs, source)
    # A pair runs in the place of its backward, so whoever needs its forward waits for that.
    producer = needs.producer + (schedule.joined[needs.producer] & (needs.producer >= 0))
    delay = times.travel - times.early - np.where(producer >= 0, times.held[producer], 0)
    ends = longest_path(Lists(schedule.first, producer, times.duration + times.held, delay))
    if ends.stuck:
        raise deadlock(schedule, producer, ends.stuck)
    end = ends.end - times.held
    start = end - times.duration
    forward = np.flatnonzero(schedule.joined)
    end[forward], start[forward] = end[forward + 1], start[forward + 1]
    after = tail(schedule, costs, times.ticks, end, ends.end)
    return Simulation(schedule, costs, times, start, end, source, after)
