"""Interleaved 1F1B for any group: what Megatron and PyTorch run, and whatever else runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.errors import InputError
from serried.pipeline import faults
from serried.pipeline.schedules.interleaved import interleaved_one_f_one_b


def test_the_example_of_megatrons_docstring_comes_out() -> None:
    # Megatron's order codes: +c a forward of chunk c, -c a backward; PP 2, N 3, M 5, VP 2.
    codes = "1 1 1 2 2 2 -2 1 -2 1 -2 2 -1 2 -1 -1 -2 -2 -1 -1"
    actions = interleaved_one_f_one_b(2, 5, group=3)[0]
    sign = {"F": 1, "B": -1}
    assert [sign[a.kind.name] * (1 + a.stage // 2) for a in actions] == [
        int(code) for code in codes.split()
    ]


@given(st.integers(1, 6), st.integers(1, 16), st.integers(1, 4), st.integers(1, 18))
def test_a_group_either_runs_or_is_refused(p: int, m: int, v: int, group: int) -> None:
    try:
        schedule = interleaved_one_f_one_b(p, m, v, group=group)
    except InputError as error:
        assert "groups that work are " in str(error)
    else:
        assert not list(faults(schedule))


@given(st.integers(1, 8), st.integers(1, 24), st.integers(1, 4), st.data())
def test_every_group_that_megatron_takes_is_taken(
    p: int, m: int, v: int, data: st.DataObject
) -> None:
    groups = [n for n in range(p, m + 1) if m % n == 0 or m % n >= p]
    if groups:
        interleaved_one_f_one_b(p, m, v, group=data.draw(st.sampled_from(groups)))


def test_a_group_that_would_deadlock_is_refused() -> None:
    with pytest.raises(InputError, match=r"in groups of 7 cannot be; .* groups that work are 9$"):
        interleaved_one_f_one_b(6, 9, 2, group=7)
