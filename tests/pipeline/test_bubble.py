"""The three bubble numbers, apart."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given

from serried.pipeline import Bubble, Costs, Request, Schedule, bubble, generate, simulate
from tests.pipeline.strategies import costs, schedules


def test_zb_h2_is_free_of_bubbles_in_its_window_only() -> None:
    assert bubble(simulate(generate("zb-h2", Request(4, 12)), Costs())) == Bubble(
        Fraction(3, 39), Fraction(3, 36), 0
    )


def test_megatrons_bubble_is_over_the_ideal() -> None:
    assert bubble(simulate(generate("1f1b", Request(4, 8)), Costs())).over_ideal == Fraction(3, 8)


def test_a_step_without_work_has_no_bubble() -> None:
    assert bubble(simulate(generate("1f1b", Request(2, 2)), Costs(0, 0, 0))) == Bubble(0, 0, 0)


def test_floats_give_floats() -> None:
    assert isinstance(
        bubble(simulate(generate("1f1b", Request(2, 2)), Costs(0.1))).of_makespan, float
    )


@given(schedules(), costs())
def test_a_window_hides_idle_time_but_never_adds_any(
    case: tuple[Schedule, Request], costs: Costs
) -> None:
    found = bubble(simulate(case[0], costs))
    assert 0 <= found.longest_window <= found.of_makespan <= found.over_ideal
    assert found.over_ideal * (1 - found.of_makespan) == found.of_makespan
