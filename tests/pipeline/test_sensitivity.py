"""What a unit of latency adds, from the critical path."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given

from serried.pipeline import (
    Costs,
    Links,
    Request,
    Schedule,
    critical_path,
    generate,
    latency_adds,
    simulate,
)
from tests.pipeline.strategies import costs, schedules


@given(schedules(), costs())
def test_a_little_more_latency_adds_as_much_as_told(
    case: tuple[Schedule, Request], costs: Costs
) -> None:
    schedule, _ = case
    little = Fraction(1, 10**9)
    latency = costs.links.latency
    assert isinstance(latency, int | Fraction)
    links = replace(costs.links, latency=latency + little)
    now = simulate(schedule, costs)
    later = simulate(schedule, replace(costs, links=links))
    added = Fraction(later.makespan) - Fraction(now.makespan)
    assert added == latency_adds(now) * little
    messages = sum(step.is_message for step in critical_path(now))
    assert messages <= latency_adds(now)


@pytest.mark.parametrize(("name", "adds"), [("gpipe", 6), ("eager-1f1b", 6), ("1f1b", 16)])
def test_1f1b_waits_for_a_message_in_every_steady_step(name: str, adds: int) -> None:
    assert latency_adds(simulate(generate(name, Request(4, 8)), Costs())) == adds


def test_links_may_differ_and_times_may_be_floats() -> None:
    schedule = generate("gpipe", Request(2, 1))
    table = ((0, 5), (2, 0))
    assert latency_adds(simulate(schedule, Costs(links=Links(table)))) == 2
    assert latency_adds(simulate(schedule, Costs(0.1, 0.2, 0.3))) == 2
