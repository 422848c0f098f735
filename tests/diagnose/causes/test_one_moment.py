"""Stacks that were taken once: a rank is named with doubt, for a healthy job looks so as well."""

from __future__ import annotations

from dataclasses import replace

from serried.diagnose.diagnosis import Cause
from serried.diagnose.evidence.stacks.stack import Frame
from serried.diagnose.gathered import Evidence
from serried.diagnose.job_state.state import JobState, RankCondition, RankState
from serried.diagnose.reason import diagnosed

TRAIN = Frame("train", "train.py", 12)
WAITS = (Frame("all_reduce", "torch/distributed/distributed_c10d.py", 3), TRAIN)
WORKS = (Frame("forward", "train.py", 40), TRAIN)
ONCE = "take them again a minute later"


def first(*ranks: RankState) -> Cause:
    state = JobState.of(len(ranks), (), ranks)
    return diagnosed(Evidence(state=state)).causes[0]


def snapshot() -> list[RankState]:
    return [RankState(0, stack=WORKS), *(RankState(rank, stack=WAITS) for rank in (1, 2, 3))]


def test_who_works_while_others_wait_is_named_with_doubt() -> None:
    cause = first(*snapshot())
    assert (cause.ranks, cause.confidence) == ((0,), 0.5)
    assert ONCE in str(cause.chain[0])


def test_a_dump_or_a_limit_that_passed_tells_that_the_job_stands() -> None:
    working, waiting, *rest = snapshot()
    cause = first(working, replace(waiting, gave_up=True), *rest)
    assert cause.ranks == (0,)
    assert cause.confidence > 0.5
    assert not any(ONCE in str(each) for each in cause.chain)


def test_a_stopped_process_is_stopped_in_one_moment_too() -> None:
    alive = [replace(each, condition=RankCondition.RUNNING) for each in snapshot()]
    cause = first(replace(alive[0], condition=RankCondition.STOPPED), *alive[1:])
    assert cause.kind == "stopped"
    assert cause.confidence > 0.5
