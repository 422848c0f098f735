"""Peaks of activations, per rank."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.pipeline import Request, Schedule, generate, peaks
from tests.pipeline.strategies import schedules


@given(st.integers(1, 8), st.integers(1, 20))
def test_1f1b_keeps_fewer_activations_the_later_a_rank_sits(p: int, m: int) -> None:
    found = peaks(generate("1f1b", Request(p, m)))
    assert found.to_weight.tolist() == [min(m, p - rank) for rank in range(p)]


@pytest.mark.parametrize("p", [2, 4, 6, 8])
def test_chimera_keeps_most_in_the_middle(p: int) -> None:
    found = peaks(generate("chimera", Request(p, 4 * p)))
    assert found.to_weight.tolist() == [
        min(p, p // 2 + 1 + min(rank, p - 1 - rank)) for rank in range(p)
    ]


@given(schedules())
def test_counted_to_i_is_never_more_than_to_w(case: tuple[Schedule, Request]) -> None:
    found = peaks(case[0])
    assert (found.to_input <= found.to_weight).all()
    assert (found.to_input >= 1).all()
