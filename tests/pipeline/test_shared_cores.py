"""Ranks that share cores get equal parts of them, and lose nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.errors import InputError
from serried.pipeline import Costs, Links, Request, generate, simulate
from serried.pipeline.shared_cores import SharedCores

COSTS = Costs(2.0, 3.0, 1.5, links=Links(latency=0.25))
NAMES = ("1f1b", "gpipe", "zb-h1", "zbv", "interleaved-1f1b", "dualpipev")


@pytest.mark.parametrize("name", NAMES)
def test_with_a_core_for_each_rank_nothing_is_slower(name: str) -> None:
    schedule = generate(name, Request(4, 8))
    alone, shared = simulate(schedule, COSTS), simulate(schedule, COSTS, SharedCores(4))
    assert np.allclose(shared.start, alone.start)
    assert np.allclose(shared.end, alone.end)


@pytest.mark.parametrize("name", NAMES)
def test_one_core_does_all_the_work_one_after_another(name: str) -> None:
    schedule = generate(name, Request(4, 8))
    costs = Costs(2.0, 3.0, 1.5)
    work = float(simulate(schedule, costs).work.sum())
    # Without messages under way some rank can always compute, so that the core never rests.
    assert float(simulate(schedule, costs, SharedCores(1)).makespan) == pytest.approx(work)


@given(st.sampled_from(NAMES), st.floats(0.5, 4.0), st.integers(1, 3))
def test_no_more_is_done_at_a_time_than_there_are_cores(
    name: str, cores: float, copies: int
) -> None:
    schedule = generate(name, Request(4, 8))
    alone = simulate(schedule, COSTS)
    shared = simulate(schedule, COSTS, SharedCores(cores, copies))
    taken = float(shared.makespan)
    assert taken >= float(alone.makespan) - 1e-9
    assert taken * cores >= float(alone.work.sum()) * copies - 1e-6
    assert (shared.end - shared.start >= alone.end - alone.start - 1e-9).all()
    # Each rank still runs its list in order.
    inner = np.diff(schedule.rank) == 0
    assert (shared.start[1:] >= shared.end[:-1] - 1e-9)[inner & ~schedule.joined[:-1]].all()


def test_copies_are_as_if_each_were_a_rank_of_its_own() -> None:
    schedule = generate("1f1b", Request(2, 8))
    few, many = (simulate(schedule, COSTS, each) for each in (SharedCores(1), SharedCores(3, 3)))
    assert np.allclose(few.end, many.end)


@pytest.mark.parametrize(("cores", "copies"), [(0.0, 1), (-1.0, 1), (2.0, 0), (float("nan"), 1)])
def test_cores_that_cannot_be_are_refused(cores: float, copies: int) -> None:
    with pytest.raises(InputError, match="copies of each rank cannot be; both are above 0"):
        SharedCores(cores, copies)
