"""Starts a trial: all of its ranks on this host, or one rank of a job on many."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from serried.runtime.job.report import Place
from serried.runtime.run import worker
from serried.runtime.run.launch import require_torch
from serried.runtime.run.local_ranks import run_locally
from serried.runtime.trial.report import TrialReport
from serried.runtime.trial.settings import TrialSettings


@dataclass(frozen=True)
class TrialJob:
    """Tries as ``settings`` say."""

    settings: TrialSettings

    @property
    def world_size(self) -> int:
        """How many ranks the job has."""
        return self.settings.world_size

    @property
    def timeout_s(self) -> float:
        """How long ranks wait for one another."""
        return self.settings.timeout_s

    def run_rank(
        self, place: Place, rendezvous: worker.Rendezvous, tell: Callable[[TrialReport], None]
    ) -> None:
        """Tries on one rank; torch is loaded only here."""
        from serried.runtime.trial.rank import try_rank

        try_rank(self.settings, place, rendezvous, tell)


def try_locally(settings: TrialSettings) -> TrialReport:
    """Tries with ranks on this host and returns what they found.

    Raises SerriedError naming a rank that does not answer.
    """
    require_torch()
    with closing(run_locally(TrialJob(settings))) as events:
        (report,) = list(events)
    return report


def join(settings: TrialSettings, place: Place, tell: Callable[[TrialReport], None]) -> None:
    """Tries as this process's rank of a job; tells on rank 0.

    The caller ends the process with ``worker.leave``.
    """
    require_torch()
    worker.join(TrialJob(settings), place, tell)
