"""The job that recordings describe together, where their recorder knew little when it began.

    rank 0   sends to 2    ─┐ pipeline 0, 2          header: dp 4, what is seen before the
    rank 2   hears from 0  ─┘                        first stage runs
    rank 1   sends to 3    ─┐ pipeline 1, 3          told: pp 2, dp 2
    rank 3   hears from 1  ─┘

A recorder of any program writes its header with its first span. That may be a collective before
any pipeline was seen, on some ranks or on all. Whom ranks exchanged messages with says it later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from serried.trace.merge.survey import Survey
from serried.trace.model.record import UNKNOWN_SCHEDULE, TracedJob

_ORDERS = ("", "dp,pp,cp,ep,tp")
"""Pipelines across replicas, as ``custom`` has them unless told, and within each replica."""


def is_one_job(job: TracedJob, other: TracedJob) -> bool:
    """Tells whether two headers may describe one job."""
    return job == other or _asked(job) == _asked(other)


def job_of(surveys: Sequence[Survey]) -> TracedJob:
    """Returns the job of recordings that are of one, with what they saw of it together.

    Where no schedule was named there are as many microbatches as ran, and the pipelines are
    those that messages make, if all are of equal length.
    """
    jobs = [each.header.job for each in surveys]
    # A rank that had seen its pipeline when it began knows more of the job than the others.
    job = next((each for each in jobs if each.sizes.get("pp", 1) > 1), jobs[0])
    if job.schedule != UNKNOWN_SCHEDULE:
        return job
    seen = max(each.num_microbatches for each in surveys)
    job = replace(job, num_microbatches=max(job.num_microbatches, seen))
    return _with_pipelines(job, surveys) if _is_by_sight(job) else job


def _is_by_sight(job: TracedJob) -> bool:
    """Tells whether nobody named the job's sizes, so that its recorder took what it saw."""
    return job.schedule == UNKNOWN_SCHEDULE and not job.order and set(job.sizes) <= {"pp", "dp"}


def _asked(job: TracedJob) -> TracedJob:
    """Returns the job without what its recorder may have seen later."""
    return replace(job, framework="", sizes={}) if _is_by_sight(job) else job


def _with_pipelines(job: TracedJob, surveys: Sequence[Survey]) -> TracedJob:
    pipelines = _joined(surveys, job.world_size)
    pp = len(pipelines[0])
    dp = job.world_size // pp
    if pp == 1 or pp * dp != job.world_size:
        return job
    # Of 4 ranks in pipelines of 2: [0, 2] [1, 3] across, [0, 1] [2, 3] within. Any other sets
    # are of no order that can be named, so the job stays as it is.
    across = [list(range(first, job.world_size, dp)) for first in range(dp)]
    within = [list(range(first, first + pp)) for first in range(0, job.world_size, pp)]
    for order, expected in zip(_ORDERS, (across, within), strict=True):
        if pipelines == expected:
            return replace(job, framework="custom", sizes={"pp": pp, "dp": dp}, order=order)
    return job


def _joined(surveys: Sequence[Survey], world_size: int) -> list[list[int]]:
    """Returns the ranks that messages join, each set ascending, by their lowest."""
    # Union-find: every set is known by its lowest rank, and paths are halved as they are walked.
    lowest = list(range(world_size))

    def root(rank: int) -> int:
        while lowest[rank] != rank:
            lowest[rank] = rank = lowest[lowest[rank]]
        return rank

    for each in surveys:
        for peer in each.peers:
            if 0 <= peer < world_size:
                low, high = sorted((root(each.header.rank), root(peer)))
                lowest[high] = low
    sets: dict[int, list[int]] = {}
    for rank in range(world_size):
        sets.setdefault(root(rank), []).append(rank)
    return list(sets.values())
