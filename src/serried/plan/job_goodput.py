"""A planned job with failures: its checkpoints in whole steps, how long it takes, spare nodes.

step 8.2 s, best interval 792 s  ──> a checkpoint every 97 steps ──> shares of time, by cause
20,000 steps                     ──> 1.9 days without failures, 1.94 with them
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil

from serried.plan.goodput import (
    FailingJob,
    Goodput,
    SpareNodes,
    best_interval,
    best_spares,
    goodput,
)


@dataclass(frozen=True)
class JobGoodput:
    """Holds what failures do to a job of so many steps; times are in seconds.

    >>> told = JobGoodput(FailingJob(16384, 50_000 * 3600, 30, 600), step_s=8.2, steps=20_000)
    >>> told.interval_steps, round(told.goodput.useful, 3), round(told.wall_s / told.work_s, 3)
    (97, 0.879, 1.138)
    """

    job: FailingJob
    step_s: float
    steps: int | None = None
    """Steps of the whole job; None where nobody says."""

    @cached_property
    def interval_steps(self) -> int:
        """Steps between checkpoints: the better of the two whole numbers beside the best."""
        best = best_interval(self.job) / self.step_s
        least = max(1, ceil(self.job.write_s / self.step_s))
        tried = {max(least, int(best)), max(least, ceil(best))}
        return max(tried, key=lambda steps: goodput(self.job, steps * self.step_s).useful)

    @cached_property
    def goodput(self) -> Goodput:
        """Into what the job's time goes, with a checkpoint after each ``interval_steps``."""
        return goodput(self.job, self.interval_steps * self.step_s)

    @property
    def work_s(self) -> float | None:
        """How long the job takes where nothing fails and nothing is saved."""
        return None if self.steps is None else self.steps * self.step_s

    @property
    def wall_s(self) -> float | None:
        """How long it takes with failures; infinity where it never ends."""
        return None if self.work_s is None else self.goodput.wall_s(self.work_s)

    @cached_property
    def spares(self) -> SpareNodes | None:
        """Spare nodes worth having; None where failed nodes are used again at once."""
        return best_spares(self.job) if self.job.repair_s > 0 else None
