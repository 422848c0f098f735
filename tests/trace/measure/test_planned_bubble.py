"""The planned bubble beside the measured one: the schedule's own, and what unequal stages add."""

from __future__ import annotations

from dataclasses import replace

import pytest

from serried.pipeline import Costs, Request, generate
from serried.trace.measure.analysis import analyse
from serried.trace.measure.planned_bubble import AS_RECORDED, PlannedBubble
from tests.trace.traced_run import compute, simulated, trace_of


def planned(name: str, costs: Costs, *, dp: int = 1) -> PlannedBubble:
    found = analyse(simulated(generate(name, Request(4, 8)), costs, dp=dp, steps=2))
    assert found.planned is not None and found.statistics.bubbles is not None
    # Messages took no time in what was simulated, so nothing comes on top of the plan.
    shares = found.planned.own_times
    assert shares is not None
    assert shares.of_makespan == pytest.approx(found.statistics.bubbles.of_makespan)
    assert shares.over_ideal == pytest.approx(found.statistics.bubbles.over_ideal)
    assert shares.longest_window == pytest.approx(found.statistics.bubbles.longest_window)
    return found.planned


def test_equal_stages_leave_the_schedules_own_bubble() -> None:
    found = planned("1f1b", Costs(1, 1, 1), dp=2)
    assert found.schedule == "1f1b"
    assert found.own_times == found.uniform
    assert found.uniform.of_makespan == pytest.approx(3 / 11)


def test_a_slow_stage_makes_its_own_plan_worse_than_the_uniform_one() -> None:
    found = planned("1f1b", Costs((1, 1, 1, 2), (1, 1, 1, 2), (1, 1, 1, 2)))
    assert found.uniform.of_makespan == pytest.approx(3 / 11)
    assert found.own_times is not None and found.own_times.of_makespan > 0.4


@pytest.mark.parametrize("name", ["zb-h1", "zbv", "v-half", "interleaved-1f1b"])
def test_schedules_with_halves_and_several_stages_are_planned_too(name: str) -> None:
    assert planned(name, Costs(2, 2, 1)).schedule == name


def test_an_order_of_no_schedule_is_simulated_as_it_was_recorded() -> None:
    actions = ("0F0", "0F1", "1F0", "1F1", "1B1", "0B1", "1B0", "0B0")
    spans = [
        compute(int(action[0]), action, 10 * at, 10 * at + 10) for at, action in enumerate(actions)
    ]
    found = analyse(trace_of(spans, pp=2))
    assert found.schedule is None and found.recognition is not None
    assert found.planned is not None
    assert found.planned.schedule == AS_RECORDED
    assert found.planned.own_times is not None
    assert 0 < found.planned.own_times.of_makespan < 0.5


def test_a_run_without_a_pipeline_has_neither_order_nor_plan() -> None:
    spans = [
        compute(rank, action, 10 * at, 10 * at + 10)
        for rank in range(2)
        for at, action in enumerate(("0F0", "0B0", "0F1", "0B1"))
    ]
    for schedule in ("1f1b", "unknown"):
        found = analyse(trace_of(spans, pp=1, dp=2, schedule=schedule))
        assert (found.schedule, found.order, found.recognition, found.planned) == (None,) * 4
        assert found.statistics.ideal is None
        assert found.statistics.bubble == 0


def test_a_run_that_only_went_forwards_has_no_plan() -> None:
    assert analyse(trace_of([compute(0, "0F0", 0, 10)], pp=1)).planned is None


def test_a_recognised_schedule_brings_its_ideal() -> None:
    found = analyse(simulated(generate("1f1b", Request(4, 8))))
    assert found.schedule == "1f1b"
    assert float(found.statistics.ideal or 0) == pytest.approx(3 / 11)


def test_spans_that_hold_waits_tell_no_stages_own_time() -> None:
    run = simulated(generate("1f1b", Request(2, 4)))
    found = analyse(replace(run, waits_inside=True)).planned
    assert found is not None and found.own_times is None
    assert found.uniform.of_makespan == pytest.approx(1 / 5)
