"""The two ways through a schedule give the same numbers, and stop at the same deadlock."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from serried.pipeline import Request, Schedule
from serried.pipeline.dependencies import Positions, dependencies
from serried.pipeline.longest_path import Lists, followed, in_waves
from tests.pipeline.strategies import schedules


def lists(schedule: Schedule, seed: int) -> Lists:
    draw = np.random.default_rng(seed)
    count = len(schedule.code)
    producer = dependencies(schedule, Positions.of(schedule)).producer
    return Lists(schedule.first, producer, draw.integers(0, 9, count), draw.integers(0, 4, count))


@given(schedules(), st.integers(0, 99))
def test_following_ranks_and_going_in_waves_agree(
    case: tuple[Schedule, Request], seed: int
) -> None:
    one, other = (way(lists(case[0], seed)) for way in (followed, in_waves))
    assert (one.end == other.end).all()
    assert one.stuck == other.stuck == {}


@given(schedules(), st.integers(0, 99), st.data())
def test_both_ways_stop_where_a_rank_cannot_go_on(
    case: tuple[Schedule, Request], seed: int, data: st.DataObject
) -> None:
    given_lists = lists(case[0], seed)
    # An entry that waits for the rank's own last one makes the rank stand for ever.
    rank = data.draw(st.integers(0, case[0].num_ranks - 1))
    first, last = given_lists.first[rank], given_lists.first[rank + 1] - 1
    given_lists.producer[data.draw(st.integers(first, last))] = last
    one, other = (way(given_lists) for way in (followed, in_waves))
    assert (one.end == other.end).all()
    assert one.stuck == other.stuck
    assert rank in one.stuck
