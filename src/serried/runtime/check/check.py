"""Starts a check: all of its ranks on this host, or one rank of a job on many."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from serried.runtime.check.report import CheckReport, Seated, StepBegun
from serried.runtime.check.settings import CheckSettings
from serried.runtime.job.report import Place
from serried.runtime.run import worker
from serried.runtime.run.launch import require_torch
from serried.runtime.run.local_ranks import run_locally

Told = Seated | StepBegun | CheckReport
Tell = Callable[[Told], None]


@dataclass(frozen=True)
class CheckJob:
    """Checks as ``settings`` say."""

    settings: CheckSettings
    world_size: int

    @property
    def timeout_s(self) -> float:
        """How long ranks wait for one another."""
        return self.settings.timeout_s

    def run_rank(self, place: Place, rendezvous: worker.Rendezvous, tell: Tell) -> None:
        """Checks one rank; torch is loaded only here."""
        from serried.runtime.check.rank import check_rank

        check_rank(self.settings, place, rendezvous, tell)


def check(
    settings: CheckSettings, tell: Tell = lambda event: None, *, world_size: int | None = None
) -> CheckReport:
    """Checks with ranks on this host, as many as the layout has, and returns what was found.

    ``tell`` is called with each event. Raises SerriedError naming a rank that does not answer.
    """
    require_torch()
    job = CheckJob(settings, world_size or settings.world_size)
    report: CheckReport | None = None
    with closing(run_locally(job)) as events:
        for event in events:
            tell(event)
            report = event if isinstance(event, CheckReport) else report
    assert report is not None
    return report


def join(settings: CheckSettings, place: Place, tell: Tell = lambda event: None) -> None:
    """Checks as this process's rank of a job; tells on rank 0.

    The caller ends the process with ``worker.leave``.
    """
    require_torch()
    worker.join(CheckJob(settings, place.world_size), place, tell)
