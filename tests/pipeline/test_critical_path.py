"""The critical path runs through the step without a gap, and its messages are what latency adds."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

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
def test_the_path_has_no_gap_and_is_as_long_as_the_step(
    case: tuple[Schedule, Request], costs: Costs
) -> None:
    result = simulate(case[0], costs)
    path = critical_path(result)
    assert path[0].start == 0
    assert path[-1].end == result.makespan
    assert all(one.end == next_.start for one, next_ in pairwise(path))


def words(name: str, p: int, m: int, costs: Costs) -> str:
    path = critical_path(simulate(generate(name, Request(p, m)), costs))
    return " ".join(f"{step.action}{'>' * step.is_message}" for step in path)


def test_messages_stand_between_the_actions_of_two_ranks() -> None:
    costs = Costs(links=Links(1))
    assert words("gpipe", 2, 1, costs) == "0F0 0F0> 1F0 1B0 1B0> 0B0"


def test_the_tail_ends_the_path() -> None:
    costs = Costs(all_reduce=2, optimizer=1)
    assert words("gpipe", 2, 1, costs) == "0F0 1F0 1B0 0B0 0REDUCE_GRAD OPTIMIZER"
    assert words("looped-bfs", 1, 1, replace(costs, all_reduce=9)) == (
        "0F0 1F0 1B0 1REDUCE_GRAD 0REDUCE_GRAD OPTIMIZER"
    )


def test_a_slow_stage_is_the_path() -> None:
    costs = Costs(forward=(1, 9, 1), input_grad=0, weight_grad=1)
    assert words("gpipe", 3, 3, costs).startswith("0F0 1F0 1F1 1F2 2F2")


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
