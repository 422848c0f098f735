"""What is in flight by walking equals the closed forms wherever these say that they are exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.errors import InputError
from serried.pipeline import Request, generate
from serried.pipeline.registry import ENTRIES
from serried.plan.memory.in_flight import (
    FORMS,
    FullestMoment,
    StageHolds,
    chunks_in_flight,
    fullest_moment,
    schedule_of,
)

RANKS, MICROBATCHES = (2, 3, 4, 6, 8), (1, 2, 3, 4, 6, 8, 12, 16, 24)


def is_exact(name: str, p: int, m: int) -> bool:
    if name in ("zb-h1", "zb-h2", "zbv", "1f1b-v", "v-half", "dualpipe", "dualpipev"):
        return m >= 2 * p
    return name != "interleaved-1f1b" or m % p == 0 or m < p


@pytest.mark.parametrize("name", FORMS)
def test_a_closed_form_equals_the_walk(name: str) -> None:
    only = ENTRIES[name].chunks
    chunks = (only,) if only else (2, 3, 4)
    compared = sum(compare(name, p, m, v) for p in RANKS for m in MICROBATCHES for v in chunks)
    assert compared > 20


def compare(name: str, p: int, m: int, v: int) -> int:
    """Compares all ranks; returns how many, 0 where the schedule cannot have the sizes."""
    try:
        schedule = generate(name, Request(p, m, None if ENTRIES[name].chunks else v))
    except InputError:
        return 0
    holds = {stage: StageHolds(1.0, 0.75) for stage in range(schedule.placement.num_stages)}
    for rank in range(p):
        whole, halves = chunks_in_flight(name, p, m, v, rank)
        held = fullest_moment(schedule, rank, holds).held
        if is_exact(name, p, m):
            assert held == whole + 0.75 * halves, (p, m, v, rank)
        else:
            assert held <= whole + 0.75 * halves, (p, m, v, rank)
    return p


def test_arrays_are_answered_as_numbers_are() -> None:
    pp, rank = np.array([2, 4, 8, 8]), np.array([0, 1, 0, 7])
    found = chunks_in_flight("1f1b", pp, np.array([1, 16, 16, 16]), 1, rank)[0]
    assert found.tolist() == [1, 3, 8, 1]


def test_a_schedule_without_a_form_names_those_that_have_one() -> None:
    with pytest.raises(InputError, match=r"hanayo.*no closed form.*1f1b"):
        chunks_in_flight("hanayo", 4, 8, 2, 0)


SIZES = st.tuples(*[st.integers(0, 20)] * 4)


@given(st.lists(SIZES, min_size=3, max_size=3))
def test_the_fullest_moment_is_that_of_a_plain_count(sizes: list[tuple[int, ...]]) -> None:
    holds = {
        stage: StageHolds(kept, 0, forward, backward, end)
        for stage, (kept, forward, backward, end) in enumerate(sizes)
    }
    schedule = schedule_of("1f1b", 3, 5, 1)
    for rank in range(3):
        held, most = 0.0, 0.0
        for text in schedule.texts(rank):
            each = holds[rank]
            if "F" in text:
                held += each.kept
                most = max(most, held + each.forward_work)
            else:
                most = max(most, held + each.backward_work)
                held -= each.kept
                most = max(most, held + each.end_work)
        assert fullest_moment(schedule, rank, holds).total == most


def test_the_moment_is_named_by_its_action() -> None:
    schedule = schedule_of("gpipe", 2, 3, 1)
    found = fullest_moment(schedule, 1, {1: StageHolds(10.0, backward_work=3.0)})
    assert found == FullestMoment(30.0, 3.0, "1B0")


def test_one_rank_keeps_one_microbatch_under_any_name() -> None:
    assert schedule_of("zbv", 1, 8, 1).name == "1f1b"
