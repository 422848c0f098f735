"""Recordings alone tell where ranks stand, by what they did next in the steps before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from serried.diagnose.causes.hang import causes
from serried.diagnose.diagnosis import Cause
from serried.diagnose.gathered import Evidence
from serried.diagnose.job_state.recorded import recorded_state
from serried.diagnose.job_state.state import RankCondition
from serried.trace.model.trace import Trace
from tests.trace.simulated_run import BACKWARD, FORWARD, simulated_run

PP, STEPS = 4, 5
FOR_EVER = 10**12


def until_it_stood(trace: Trace) -> Trace:
    """Returns what ranks had written of a run in which one action never ended."""
    begun = int(trace.spans.start_ns[trace.spans.end_ns - trace.spans.start_ns >= FOR_EVER].min())
    return replace(trace, spans=trace.spans.where(trace.spans.end_ns < begun + FOR_EVER))


def told(trace: Trace, conditions: dict[int, RankCondition] | None = None) -> list[Cause]:
    state = recorded_state(trace, conditions or {})
    assert state is not None
    return list(causes(Evidence(state=state)))


@pytest.mark.parametrize("slow", range(PP))
@pytest.mark.parametrize("microbatch", [0, 5])
def test_the_stage_that_is_in_a_forward_is_the_root_of_a_pipeline(
    slow: int, microbatch: int
) -> None:
    def forward(_: int, step: int, stage: int, at: int) -> int:
        return FOR_EVER if (step, stage, at) == (3, slow, microbatch) else FORWARD

    run = simulated_run(pp=PP, dp=1, num_steps=STEPS, forward=forward, transfer=lambda *_: 50_000)
    (cause,) = told(until_it_stood(run))
    assert (cause.kind, cause.ranks) == ("stuck_in_user_code", (slow,))
    assert f"is in {slow}F{microbatch} of step 3" in str(cause.verdict)
    assert {each.rank for each in cause.waiting} == {*range(PP)} - {slow}


def test_a_backward_that_never_ends_is_told_as_one() -> None:
    def backward(_: int, step: int, stage: int, at: int) -> int:
        return FOR_EVER if (step, stage, at) == (3, 2, 1) else BACKWARD

    run = simulated_run(pp=PP, dp=1, num_steps=STEPS, backward=backward, transfer=lambda *_: 50_000)
    (cause,) = told(until_it_stood(run))
    assert cause.ranks == (2,)
    assert "is in 2B1 of step 3" in str(cause.verdict)


def test_how_a_process_is_says_more_than_where_it_was() -> None:
    def forward(_: int, step: int, stage: int, at: int) -> int:
        return FOR_EVER if (step, stage, at) == (3, 1, 2) else FORWARD

    run = simulated_run(pp=PP, dp=1, num_steps=STEPS, forward=forward, transfer=lambda *_: 50_000)
    (cause,) = told(until_it_stood(run), {1: RankCondition.STOPPED})
    assert (cause.kind, cause.ranks) == ("stopped", (1,))


def test_where_one_living_rank_has_no_step_like_its_last_nothing_is_told() -> None:
    run = simulated_run(pp=PP, dp=1, num_steps=1, transfer=lambda *_: 50_000)
    cut = run.spans.where(np.arange(len(run.spans)) % 64 < 3)
    assert recorded_state(replace(run, spans=cut), {}) is None
