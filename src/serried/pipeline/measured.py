"""One schedule with all that its simulation tells of it: bubble, idle time, peaks, formulas."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from serried.pipeline.bubble import Bubble, bubble
from serried.pipeline.closed_form import ClosedForm, closed_forms
from serried.pipeline.costs import Number
from serried.pipeline.critical_path import latency_adds
from serried.pipeline.idle import IdleIntervals, idle
from serried.pipeline.in_flight import TO_WEIGHT, Peaks, Weights, occupied, peaks
from serried.pipeline.runners import Refusal, refusals
from serried.pipeline.schedule import Schedule
from serried.pipeline.simulate import Simulation
from serried.shown import Displayed


@dataclass(frozen=True, eq=False)
class MeasuredSchedule(Displayed):
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
