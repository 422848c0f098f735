"""One schedule as it is asked for, and all that its simulation tells of it.

name or file, sizes ──> Schedule ──┐
costs of the work ─────────────────┴─> Simulation ──> makespan, bubble, idle time, peaks
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from serried.errors import InputError
from serried.pipeline.action_lists import read_csv
from serried.pipeline.bubble import Bubble, bubble
from serried.pipeline.closed_form import ClosedForm, closed_forms
from serried.pipeline.costs import Costs, Number
from serried.pipeline.critical_path import latency_adds
from serried.pipeline.idle import IdleIntervals, idle
from serried.pipeline.in_flight import TO_WEIGHT, Peaks, Weights, occupied, peaks
from serried.pipeline.registry import Request, generate, known
from serried.pipeline.runners import Refusal, refusals
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.zero_bubble.auto import Memory
from serried.pipeline.simulate import Simulation, simulate


@dataclass(frozen=True, eq=False)
class MeasuredSchedule:
    """Holds one schedule with all that its simulation tells, each worked out when asked for."""

    simulation: Simulation
    memory_limit: Number | None = None
    weights: Weights = TO_WEIGHT
    """What F, I and W add to the memory that the limit bounds."""

    @property
    def schedule(self) -> Schedule:
        """The schedule itself."""
        return self.simulation.schedule

    @cached_property
    def bubble(self) -> Bubble:
        """The three bubble numbers."""
        return bubble(self.simulation)

    @cached_property
    def peaks(self) -> Peaks:
        """The most activations on each rank."""
        return peaks(self.schedule)

    @cached_property
    def idle(self) -> IdleIntervals:
        """Every idle interval."""
        return idle(self.simulation, memory_limit=self.memory_limit, weights=self.weights)

    @cached_property
    def exceeded(self) -> list[tuple[int, Number]]:
        """The ranks whose memory goes beyond the limit, each with the most that it takes."""
        if self.memory_limit is None:
            return []
        occupied_by = occupied(self.schedule, self.weights)
        most = np.maximum.reduceat(occupied_by, self.schedule.first[:-1]).tolist()
        return [(rank, each) for rank, each in enumerate(most) if each > self.memory_limit]

    @cached_property
    def closed_forms(self) -> list[ClosedForm]:
        """The formulas that are exact here."""
        return closed_forms(self.schedule, self.simulation.costs)

    @cached_property
    def refusals(self) -> list[Refusal]:
        """What the packages that have this schedule say against its sizes."""
        return refusals(self.schedule)

    @cached_property
    def latency_adds(self) -> int:
        """What a unit of latency more adds to the makespan."""
        return latency_adds(self.simulation)


@dataclass(frozen=True)
class ScheduleRequest:
    """Holds what is asked: a schedule by its name or file, sizes, the work's costs, and memory.

    >>> ScheduleRequest("1f1b", stages=4, microbatches=8).measured().simulation.makespan
    33

    A name that ends in .csv is a file of actions, which says its sizes itself.
    """

    name: str
    stages: int | None = None
    """Ranks of the pipeline."""
    microbatches: int | None = None
    chunks: int | None = None
    """Stages on each rank; the schedule's own default where None."""
    group: int | None = None
    """Microbatches that run through a chunk before the next chunk does."""
    moe_overlap: bool = False
    costs: Costs = field(default_factory=Costs)
    memory_limit: Number | None = None
    weights: Weights = TO_WEIGHT
    """What F, I and W add to the memory that the limit bounds."""

    def measured(self) -> MeasuredSchedule:
        """Makes, simulates and measures it; raises InputError for what cannot be."""
        schedule = self._schedule()
        limit = self.memory_limit
        if limit is not None and limit < 1 and self.weights == TO_WEIGHT:
            raise InputError(
                "{name}={limit} holds no activation; a schedule needs room for at least 1",
                name="memory-limit",
                limit=limit,
            )
        simulation = simulate(schedule, self.costs)
        return MeasuredSchedule(simulation, memory_limit=limit, weights=self.weights)

    def _schedule(self) -> Schedule:
        memory = Memory(self.memory_limit, *self.weights)
        if self.name.lower().endswith(".csv"):
            return self._agreeing(read_csv(Path(self.name)))
        name = self.name.lower()
        known(name)
        asked = Request(
            _given("stages", self.stages),
            _given("microbatches", self.microbatches),
            self.chunks,
            self.group,
            moe_overlap=self.moe_overlap,
            costs=self.costs,
            memory=memory,
        )
        return generate(name, asked)

    def _agreeing(self, read: Schedule) -> Schedule:
        """Returns a schedule read from a file; raises InputError for sizes that contradict it."""
        found = {
            "stages": (self.stages, read.num_ranks),
            "microbatches": (self.microbatches, read.num_microbatches),
            "chunks": (self.chunks, read.placement.stages_per_rank),
        }
        for option, (asked, has) in found.items():
            if asked is not None and asked != has:
                raise InputError(
                    "{name} has {option}={has}, and --{option} is {asked}; leave that out",
                    name=read.name,
                    option=option,
                    has=has,
                    asked=asked,
                )
        return read


def _given(option: str, size: int | None) -> int:
    if size is None:
        raise InputError(
            "the number of {option} is missing; give it, such as --{option} 4", option=option
        )
    return size
