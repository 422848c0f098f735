"""Ranks that are late by turns, in any layout: what that costs, and who is named for it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from serried.diagnose.diagnosis import Cause
from serried.diagnose.steps.of_trace import steps_of_trace
from serried.diagnose.stragglers.course import Course
from serried.diagnose.stragglers.of_trace import trace_causes
from serried.trace.model.trace import Trace
from tests.diagnose.stragglers.layout_runs import Sized, layout_run
from tests.diagnose.stragglers.straggler_runs import pipelines

LAYOUTS = (
    Sized(pp=4),
    Sized(pp=3, schedule="gpipe"),
    Sized(pp=2, dp=2, schedule="interleaved-1f1b"),
    Sized(pp=4, schedule="zb-h1"),
    Sized(pp=2, dp=2, schedule="zbv"),
    Sized(tp=2, dp=2),
    Sized(tp=2, pp=2),
    Sized(tp=2, pp=2, dp=2),
)
STALLS = 0.08
"""How often a forward takes six times as long as it does."""


def stalled(seed: int, *, dp: int = 2) -> Trace:
    """Returns a pipeline in which any forward of any rank may take much longer."""
    draws = np.random.default_rng(seed)
    return pipelines(lambda *_: 6.0 if draws.random() < STALLS else 1.0, seed, dp=dp, steps=24)


@pytest.mark.parametrize("sized", LAYOUTS, ids=str)
@pytest.mark.parametrize("with_messages", [True, False])
def test_steps_run_again_as_recorded_take_as_long(sized: Sized, with_messages: bool) -> None:
    trace = layout_run(sized, 1, noise=0.2, with_messages=with_messages)
    job = steps_of_trace(trace, np.arange(12, dtype=np.int32))
    assert job is not None
    course = Course.of(trace, job.steps)
    assert course is not None
    assert course.seconds().sum() == pytest.approx(job.period_ns.sum() / 1e9, rel=0.01)


@pytest.mark.parametrize("sized", [Sized(tp=4, dp=2), Sized(tp=2, pp=2), Sized(tp=2, pp=2, dp=2)])
def test_by_turns_is_told_with_its_cost_where_not_all_meet(sized: Sized) -> None:
    run, even = (layout_run(sized, 3, noise=noise, steps=24) for noise in (0.2, 0.0))
    (found,) = trace_causes(run)
    assert (found.kind, found.ranks) == ("jitter", ())
    assert found.cost == pytest.approx(1 - lasted(even) / lasted(run), abs=0.04)


@pytest.mark.parametrize("dp", [1, 2])
def test_stalls_that_go_from_stage_to_stage_are_told_and_nobody_is_named(dp: int) -> None:
    found = list(trace_causes(stalled(1, dp=dp)))
    assert [(each.kind, each.ranks) for each in found] == [("jitter", ())]
    assert "no rank is slow" in str(found[0].verdict)


@pytest.mark.parametrize("sized", [Sized(tp=4), Sized(tp=2, dp=2), Sized(tp=2, pp=2, dp=2)])
def test_one_rank_whose_times_vary_is_named_and_nobody_else(sized: Sized) -> None:
    uneven = random.Random(str(sized)).randrange(sized.world)
    run = layout_run(sized, 2, noise=lambda rank: 0.6 if rank == uneven else 0.02, steps=24)
    found = list(trace_causes(run))
    assert named(found) == {uneven}
    assert "now less and now more time" in str(found[0].verdict)


@pytest.mark.parametrize("sized", LAYOUTS, ids=str)
def test_a_rank_slower_by_a_fifth_is_named_and_nobody_else(sized: Sized) -> None:
    slow = random.Random(str(sized)).randrange(sized.world)
    run = layout_run(sized, 5, slower=lambda step, rank: 1.2 if rank == slow and step > 5 else 1.0)
    assert named(list(trace_causes(run))) == {slow}


def named(causes: list[Cause]) -> set[int]:
    return {rank for cause in causes for rank in cause.ranks or ()}


def lasted(trace: Trace) -> int:
    return int(trace.spans.end_ns.max() - trace.spans.start_ns.min())
