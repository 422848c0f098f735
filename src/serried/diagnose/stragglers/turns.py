"""Ranks that are late by turns: nobody is slow, and each step is as long as the latest makes it.

    rank 0   own 9 ─┐ own 14 ─┐ own 10 ─┐         recorded: 13 + 14 + 15
    rank 1   own 13 ┴ own 10 ─┴ own 15 ─┴         each at its median: 10 + 13 at most, three times

What it costs is told by the course of the steps, replayed with every rank at its own median: so in
pipelines, where who is late once makes late all those behind it, as where all meet. Where a replay
with one rank alone at its median saves nearly all of that, it is this rank that is uneven.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.steps.table import JobSteps
from serried.diagnose.stragglers.course import Course, Table
from serried.diagnose.stragglers.naming import ranks_at
from serried.finding import said

WORTH_SAYING = 0.05
"""The share of a step that unequal work must cost for it to be told."""
_TRUE_TO_RECORDED = 0.2
"""By how much a replay may miss the steps as recorded, over their length, to be believed."""
_ONES = 0.8
"""What part of the cost one rank's own median must save for it to be named."""
_UNEVEN = 2.0
"""How many times as much as that of its like its work must vary, too."""


def turn_causes(job: JobSteps, course: Course) -> Iterator[Cause]:
    """Yields that ranks wait for one another by turns, or that they wait for an uneven one."""
    recorded = course.seconds()
    rows = np.searchsorted(job.steps, course.steps)
    taken = job.period_ns[rows] / 1e9
    whole, lasted = float(recorded.sum()), float(taken.sum())
    if not whole or abs(whole - lasted) > _TRUE_TO_RECORDED * lasted:
        return
    usual = course.usual
    cost = 1 - float(course.seconds(usual).sum()) / whole
    if cost < WORTH_SAYING:
        return
    late = course.of_ranks(np.maximum(course.own - usual, 0)).sum(axis=1)
    most = int(np.argmax(late))
    alone = np.where((course.rank == most)[:, None], usual, course.own)
    share = (1 - float(course.seconds(alone).sum()) / whole) / cost
    varies = _variation(course, usual)
    others = float(np.median(np.delete(varies, most))) if len(varies) > 1 else 0.0
    if len(varies) > 1 and share >= _ONES and varies[most] >= _UNEVEN * others:
        yield _of_one(job, course.ranks[most], cost * share, float(varies[most]), others)
    else:
        yield _of_all(course, cost, float(late[most] / late.sum()))


def _variation(course: Course, usual: Table) -> NDArray[np.float64]:
    """Returns how far each rank's times are from its usual ones in the mean, over their sum."""
    apart = course.of_ranks(np.abs(course.own - usual)).sum(axis=1)
    return np.asarray(apart / np.maximum(course.of_ranks(usual).sum(axis=1), 1.0))


def _of_one(job: JobSteps, rank: int, cost: float, varies: float, others: float) -> Cause:
    return Cause(
        CauseClass.STRAGGLER,
        "jitter",
        (rank,),
        said(
            "{who} takes now less and now more time for the same work, and the others wait for it: "
            "{cost:.1%} of each step",
            who=ranks_at(job, [rank]),
            cost=cost,
        ),
        confidence=0.7,
        chain=(
            said(
                "its times are {varies:.0%} off its median, those of the other ranks {others:.0%}; "
                "the cost is told by a replay with this rank at its median",
                varies=varies,
                others=others,
            ),
        ),
        cures=_CURES,
        cost=cost,
    )


def _of_all(course: Course, cost: float, share: float) -> Cause:
    return Cause(
        CauseClass.STRAGGLER,
        "jitter",
        (),
        said(
            "no rank is slow, but now one and now another is late and others wait for it: "
            "{cost:.1%} of each step",
            cost=cost,
        ),
        confidence=0.7,
        chain=(
            said(
                "told by a replay of {count} steps with every rank at its own median; no rank has "
                "more than {share:.0%} of what was late",
                count=len(course.steps),
                share=share,
            ),
        ),
        cures=_CURES,
        cost=cost,
    )


_CURES = (
    said(
        "look for what disturbs every rank at times: other processes on the CPUs, unpinned "
        "threads, power limits, sequences of unequal length; serried.span names what a "
        "rank does in its own time"
    ),
)
