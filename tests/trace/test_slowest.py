"""Slow ranks are found among their like: one slow step or one slow peer accuses nobody."""

from __future__ import annotations

import pytest

from serried.span import Span
from serried.trace.slowest import RankPace, paces
from tests.trace.recorded_run import table
from tests.trace.traced_run import compute

STEPS = 5


def paced(times: dict[int, list[int]], stages: dict[int, int]) -> dict[int, RankPace]:
    """Returns the paces of ranks that took ``times`` step by step."""
    spans: list[Span] = [
        compute(rank, f"{stages[rank]}F0", 1000 * step, 1000 * step + each, step=step)
        for rank, row in times.items()
        for step, each in enumerate(row)
    ]
    return {each.rank: each for each in paces(table(spans))}


def test_a_rank_slower_in_every_step_is_slow_by_as_much() -> None:
    found = paced({0: [100] * STEPS, 1: [108] * STEPS, 2: [100] * STEPS}, {0: 0, 1: 0, 2: 0})
    assert found[1].slower == pytest.approx(0.08)
    assert (found[1].is_slow, found[1].slower_steps) == (True, STEPS)
    assert not found[0].is_slow and not found[2].is_slow
    assert next(iter(found)) == 1


def test_one_slow_step_makes_no_slow_rank() -> None:
    found = paced({0: [100] * STEPS, 1: [100, 900, 100, 100, 100]}, {0: 0, 1: 0})
    assert found[1].slower == 0
    assert not found[1].is_slow
    assert found[1].jitter > 1


def test_one_slow_peer_makes_nobody_fast_and_nobody_else_slow() -> None:
    times = {0: [100] * STEPS, 1: [100] * STEPS, 2: [100] * STEPS, 3: [300] * STEPS}
    found = paced(times, dict.fromkeys(times, 0))
    assert [found[rank].slower for rank in range(3)] == [0, 0, 0]
    assert found[3].slower == pytest.approx(2)


def test_ranks_of_another_stage_are_no_measure() -> None:
    found = paced({0: [100] * STEPS, 1: [200] * STEPS}, {0: 0, 1: 1})
    assert [each.slower for each in found.values()] == [None, None]
    assert [each.stages for each in found.values()] == [(0,), (1,)]


def test_slower_by_less_than_a_hundredth_is_not_worth_saying() -> None:
    found = paced({0: [1000] * STEPS, 1: [1005] * STEPS}, {0: 0, 1: 0})
    assert found[1].slower == pytest.approx(0.005)
    assert not found[1].is_slow
