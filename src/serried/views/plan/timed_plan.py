"""One planned job as single numbers and terms: what its formulas of time are filled with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from serried.plan.job_plan import IN_CLOSED_FORM, JobPlan
from serried.plan.time.constants import Constants
from serried.plan.time.exposed import link, ring_speed, stage_link
from serried.plan.time.jobs import Jobs
from serried.plan.time.rates import Rates, rates
from serried.plan.time.step import StepTimes, step_times
from serried.views.plan.formula import ShownTerm, number, rate, seconds, speed

_SECONDS = ("latency", "launch", "kernel_gap", "moe_wait", "moe_expert", "fixed")
"""Constants that are times; the others are numbers."""


@dataclass(frozen=True, eq=False)
class TimedPlan:
    """Holds a plan and the constants that timed it; all else follows."""

    plan: JobPlan
    known: Constants

    @cached_property
    def jobs(self) -> Jobs:
        """The job as columns of one row."""
        return Jobs.of([self.plan.asked])

    @cached_property
    def reached(self) -> Rates:
        """What its GPU and links reach."""
        return rates(self.jobs, self.known)

    @cached_property
    def times(self) -> StepTimes:
        """The parts of its step, in closed form."""
        return step_times(self.jobs, self.known)

    @property
    def is_walked(self) -> bool:
        """Whether its schedule is walked, as no closed form times it."""
        return self.plan.asked.schedule not in IN_CLOSED_FORM

    def value(self, name: str) -> float:
        """Returns the number of a column of ``Jobs``."""
        return one(getattr(self.jobs, name))

    def term(self, name: str) -> ShownTerm:
        """Returns the same as a term."""
        return number(self.value(name))

    def constant(self, name: str) -> ShownTerm:
        """Returns a fitted constant: a time, or a number."""
        value = self.known.value(name)
        return seconds(value) if name in _SECONDS else number(value)

    def layer(self, name: str) -> float:
        """Returns the seconds of one part of a layer."""
        return one(self.times.layer.parts[name])

    def rate(self, name: str) -> ShownTerm:
        """Returns the FLOP/s that are reached: ``linear``, ``wide`` or ``attention``."""
        return rate(one(getattr(self.reached, name)))

    @property
    def memory(self) -> ShownTerm:
        """The bandwidth of memory that is reached."""
        return speed(one(self.reached.memory))

    @property
    def nvlink(self) -> ShownTerm:
        """The bandwidth of fast links that is reached."""
        return speed(one(self.reached.nvlink))

    @property
    def nic(self) -> ShownTerm:
        """The bandwidth of the network that is reached."""
        return speed(one(self.reached.nic))

    @property
    def host(self) -> ShownTerm:
        """The bandwidth of the host's link that is reached."""
        return speed(one(self.reached.host))

    @property
    def host_memory(self) -> ShownTerm:
        """A GPU's share of the bandwidth of the host's memory."""
        return speed(one(self.reached.host_memory))

    @property
    def between_stages(self) -> ShownTerm:
        """The speed of messages of the pipeline."""
        return speed(one(stage_link(self.jobs, self.reached)))

    def near(self, ranks: float) -> ShownTerm:
        """Returns the speed of a group of neighbouring ranks."""
        return speed(one(link(np.asarray(ranks), self.reached)))

    def ring(self, ranks: float, apart: float, between: float = 1.0) -> ShownTerm:
        """Returns the speed of a ring whose members lie ``apart`` ranks from each other."""
        far = np.asarray(ranks), np.asarray(apart)
        return speed(one(ring_speed(*far, self.reached, between)))

    @property
    def layer_times(self) -> ShownTerm:
        """Microbatches times the layers of the rank that works most."""
        if self.is_walked:
            return number(round(self.plan.parts["matrices"] / self.layer("matrices"), 6))
        return self.term("microbatches") * number(one(self.times.stages.slowest_layers))

    def source(self, *names: str) -> str:
        """Returns constants with the standard errors that they were fitted with."""
        told = {name: self.known.entries.get(name) for name in names}
        return ", ".join(
            f"{name} {each.value:.4g} (± {each.error:.0%})" for name, each in told.items() if each
        )


def one(column: object) -> float:
    """Returns the number of a column of one job."""
    return float(np.ravel(np.asarray(column, np.float64))[0])
