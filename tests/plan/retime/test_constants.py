from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from serried.errors import InputError
from serried.plan.retime.constants import plan_error, read_retimed, retimed_document
from serried.plan.retime.observed import ObservedRun, StageWork, observe
from serried.plan.retime.retimed import RetimedStep, Target, retime
from tests.plan.retime.simulated import run_of


@pytest.fixture(scope="module")
def planned() -> RetimedStep:
    return retime(observe(run_of(4, "zb-h1", 8)[0]), Target(pp=2))


@pytest.fixture(scope="module")
def ran() -> ObservedRun:
    return observe(run_of(2, "zb-h1", 8)[0])


def test_a_run_as_planned_has_no_constant_wrong(planned: RetimedStep, ran: ObservedRun) -> None:
    found = plan_error(planned, ran)
    assert found.more_s == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("hop", {"hop": 0.02}),
        ("around", {"around": 0.2}),
        ("forward", {"layer": StageWork(0.009, 0.0025, 0.0015)}),
    ],
)
def test_the_constant_that_was_wrong_comes_first(
    planned: RetimedStep, name: str, wrong: dict[str, Any]
) -> None:
    base = replace(planned.observed, sizes={"pp": 2}, num_microbatches=8, sequences=2)
    slow = replace(base, **wrong)
    measured = replace(slow, period=retime(slow, Target()).period)
    found = plan_error(planned, measured)
    assert found.changes[0].name == name
    assert found.changes[0].more_s == pytest.approx(found.more_s, rel=0.01)
    assert found.rest_s == pytest.approx(0, abs=1e-3)


def test_a_run_of_another_pipeline_is_refused(planned: RetimedStep) -> None:
    with pytest.raises(InputError, match="pp is 2 in the plan and 4 in run simulated"):
        plan_error(planned, planned.observed)


def test_a_plan_reads_back_as_the_same_step(planned: RetimedStep) -> None:
    text = json.dumps(retimed_document(planned))
    again = read_retimed(json.loads(text), "plan.json")
    assert again.period == planned.period
    assert again.observed == planned.observed


@pytest.mark.parametrize(
    "asked",
    [
        Target(pp=2, compute_speed=1.5, hop_s=0.004),
        Target(pp=4, schedule="interleaved-1f1b", chunks=4),
        Target(pp=2, schedule="zbv", dp=2),
    ],
)
def test_what_a_plan_was_asked_for_is_read_with_it(ran: ObservedRun, asked: Target) -> None:
    step = retime(ran, asked)
    again = read_retimed(json.loads(json.dumps(retimed_document(step))), "plan.json")
    assert (again.period, again.stage_ms) == (step.period, step.stage_ms)


def test_a_plan_of_faster_computations_and_slower_messages_is_held_against_these(
    ran: ObservedRun,
) -> None:
    planned = retime(ran, Target(compute_speed=2.0, hop_s=0.004))
    ends = {name: getattr(ran, name).times(0.5) for name in ("layer", "first", "last")}
    so = replace(ran, hop=0.004 + ran.gap, period=planned.period, **ends)
    assert [each.more_s for each in plan_error(planned, so).changes] == pytest.approx([0.0] * 7)
    slow = plan_error(planned, replace(so, hop=0.04)).changes[0]
    assert slow.name == "hop"
    assert slow.planned_s == pytest.approx(0.004 + ran.gap)


def test_a_run_that_does_not_say_its_layers_is_held_against_its_plan() -> None:
    planned = retime(observe(run_of(4, "1f1b", 8, says_layers=False)[0]), Target(pp=2))
    ran = observe(run_of(2, "1f1b", 8, says_layers=False)[0])
    found = plan_error(planned, ran)
    assert [each.name for each in found.changes if abs(each.more_s) > found.planned_s / 10] == []


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"schema": "serried.retimed-step/1"},
        {"schema": "serried.retimed-step/1", "constants": 3},
    ],
)
def test_what_is_no_plan_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"plan\.json"):
        read_retimed(document, "plan.json")
