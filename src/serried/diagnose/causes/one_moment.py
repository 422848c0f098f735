"""Roots that stacks of one moment show, where nothing else tells that the job stands.

    rank 0   all_reduce    waits, as it does in every step
    rank 1   forward       is at work, as it is in every step: a healthy job, or one that hangs

A healthy job looks so for a part of each step. Where neither a dump nor a line of a log tells of a
stall, only stacks of a later moment do.
"""

from __future__ import annotations

from dataclasses import replace

from serried.diagnose.diagnosis import Cause
from serried.diagnose.job_state.state import JobState
from serried.diagnose.waits.root import RootKind
from serried.finding import said

MOST_SURE = 0.5
_ENDED = frozenset({RootKind.DEAD.value, RootKind.STOPPED.value, RootKind.FINISHED.value})


def of_one_moment(state: JobState | None, hangs: list[Cause]) -> list[Cause]:
    """Returns the roots of a hang, less sure where all that shows it are stacks taken once."""
    if state is None or not _are_stacks_all(state):
        return hangs
    return [_less_sure(each) if each.ranks and each.kind not in _ENDED else each for each in hangs]


def _are_stacks_all(state: JobState) -> bool:
    return any(each.stack for each in state.ranks) and not any(
        each.counts is not None or each.issued or each.within is not None or each.gave_up
        for each in state.ranks
    )


def _less_sure(cause: Cause) -> Cause:
    once = said(
        "stacks of one moment do not tell a hang from a step of a healthy job: take them again a "
        "minute later; the job hangs only where no rank has moved"
    )
    return replace(cause, confidence=min(cause.confidence, MOST_SURE), chain=(once, *cause.chain))
