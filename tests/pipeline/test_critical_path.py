"""The critical path runs from the start to the end of the step without a gap."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given

from serried.pipeline import Costs, Links, Request, Schedule, critical_path, generate, simulate
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
