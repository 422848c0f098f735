"""Pauses: whoever stops now and then is named, and nobody where every rank does."""

from __future__ import annotations

import random

import numpy as np
import pytest

from serried.diagnose.steps.of_trace import steps_of_trace
from serried.diagnose.stragglers import pauses
from serried.diagnose.stragglers.of_trace import trace_causes
from tests.diagnose.stragglers.straggler_runs import nothing, pipelines, step_ns

PP, DP, STEPS = 2, 4, 40
PAUSE = 21.0
"""By what factor the forward of a pause is longer: a step of 8 microbatches is 27 forwards."""


def rank_at(pipeline: int, stage: int) -> int:
    return stage * DP + pipeline


@pytest.mark.parametrize("seed", range(3))
def test_a_rank_that_pauses_now_and_then_is_named_with_what_it_costs(seed: int) -> None:
    draw = random.Random(seed)
    slow, when = draw.randrange(PP * DP), {3, 4, 9, 17, 19, 31}

    def slower(pipeline: int, step: int, stage: int, microbatch: int) -> float:
        is_pause = rank_at(pipeline, stage) == slow and step in when and microbatch == 2
        return PAUSE if is_pause else 1.0

    (cause,) = trace_causes(pipelines(slower, seed, pp=PP, dp=DP, steps=STEPS))

    assert (cause.kind, cause.ranks) == ("pauses", (slow,))
    assert f"in 6 of {STEPS - 1} steps" in str(cause.verdict)
    usual = step_ns(pipelines(nothing, seed, pp=PP, dp=DP, steps=STEPS))
    whole = step_ns(pipelines(slower, seed, pp=PP, dp=DP, steps=STEPS))
    assert cause.cost == pytest.approx(1 - usual / whole, abs=0.02)


def test_alike_pauses_at_even_intervals_on_every_rank_are_garbage_collection() -> None:
    def slower(pipeline: int, step: int, stage: int, microbatch: int) -> float:
        # Every process counts its own objects, so no two of them collect in the same step.
        is_pause = step % 8 == rank_at(pipeline, stage) and microbatch == 5
        return PAUSE if is_pause else 1.0

    (cause,) = trace_causes(pipelines(slower, 1, pp=PP, dp=DP, steps=STEPS))

    assert (cause.kind, cause.ranks) == ("garbage_collection", ())
    assert "gc.collect" in str(cause.cures[0])
    assert "8 of 8 ranks" in str(cause.chain[0])


def test_pauses_of_any_length_on_any_rank_are_jitter_and_nobodys_fault() -> None:
    draw = random.Random(7)
    pauses_at = {
        (draw.randrange(PP * DP), step): draw.uniform(8, 60) for step in range(1, STEPS, 2)
    }

    def slower(pipeline: int, step: int, stage: int, microbatch: int) -> float:
        return pauses_at.get((rank_at(pipeline, stage), step), 1.0) if microbatch == 1 else 1.0

    (cause,) = trace_causes(pipelines(slower, 2, pp=PP, dp=DP, steps=STEPS))

    assert (cause.kind, cause.ranks) == ("jitter", ())
    assert "no rank is slow" in str(cause.verdict)


def test_who_waits_for_a_longer_pause_of_another_stage_does_not_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rank whose send blocks until the other stage receives comes late to its own like, too."""
    trace = pipelines(nothing, 3, pp=2, dp=2, steps=20)
    job = steps_of_trace(trace, np.arange(1, 20, dtype=np.int32))
    assert job is not None
    late = np.zeros((len(job), 4))
    late[::3] = np.array([0.3, 0.0, 0.4, 0.0]) * job.period_ns.mean()
    columns = {alike.stages: late[:, list(alike.places)] for alike in job.alike}
    monkeypatch.setattr(pauses, "lags_of", lambda _, alike: columns[alike.stages])
    assert [cause.ranks for cause in pauses.pause_causes(job, set())] == [(2,)]
    # Whose pauses are known already still explains those who wait for it.
    assert not list(pauses.pause_causes(job, {2}))
