"""Every idle interval has its cause, and work and idle time fill the makespan."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.pipeline import Costs, IdleCause, Links, Request, Schedule, generate, idle, simulate
from tests.pipeline.strategies import costs, schedules


@given(schedules(), costs(), st.none() | st.integers(1, 8))
def test_work_and_causes_add_up_to_the_makespan_on_every_rank(
    case: tuple[Schedule, Request], costs: Costs, memory_limit: int | None
) -> None:
    result = simulate(case[0], costs)
    found = idle(result, memory_limit=memory_limit)
    for rank in range(case[0].num_ranks):
        of_rank = found.rank == rank
        waited = (found.end - found.start)[of_rank].sum()
        assert waited + result.work[rank] == result.rank_end.max()
        assert (found.start[of_rank][1:] >= found.end[of_rank][:-1]).all()
    assert sum(found.by_cause().values()) == found.total()
    assert (found.start < found.end).all()


def table(name: str, p: int, m: int, costs: Costs, limit: int | None = None) -> dict[str, object]:
    found = idle(simulate(generate(name, Request(p, m)), costs), memory_limit=limit)
    return {cause.words: time for cause, time in found.by_cause().items() if time}


def test_a_wait_is_split_where_the_message_leaves() -> None:
    # rank 0: F 0-1, then stage 1 runs until 5 and its gradient travels until 6.
    waits = list(idle(simulate(generate("gpipe", Request(2, 1)), Costs(links=Links(1)))))
    assert [
        (each.rank, each.start, each.end, each.cause, str(each.waits_for)) for each in waits
    ] == [
        (0, 1, 5, IdleCause.DEPENDENCY, "1B0"),
        (0, 5, 6, IdleCause.LATENCY, "1B0"),
        (1, 0, 2, IdleCause.WARM_UP, "None"),
        (1, 5, 8, IdleCause.COOL_DOWN, "None"),
    ]


def test_gpipe_only_warms_up_waits_once_and_cools_down() -> None:
    assert table("gpipe", 4, 8, Costs()) == {"warm-up": 6, "dependency": 18, "cool-down": 12}


def test_a_forward_that_memory_forbids_is_no_wait_for_another_stage() -> None:
    free, limited = (table("1f1b", 2, 4, Costs(), limit) for limit in (None, 2))
    assert free == {"warm-up": 1, "dependency": 3, "cool-down": 2}
    # Rank 0 holds two activations from 2 on and could run F2; before B3 there is none to run.
    assert limited == {"warm-up": 1, "memory limit": 2, "dependency": 1, "cool-down": 2}


def test_a_blocking_message_is_latency_of_its_sender() -> None:
    assert table("gpipe", 2, 1, Costs(links=Links(1, is_blocking=True))) == {
        "warm-up": 2,
        "dependency": 3,
        # Rank 0 is held after its forward and waits for the gradient; rank 1 is held at the end.
        "latency": 1 + 1 + 1,
        "cool-down": 2,
    }


def test_reductions_that_outlast_the_work_are_a_cause_of_their_own() -> None:
    assert table("gpipe", 1, 1, Costs(all_reduce=Fraction(1, 2))) == {"all-reduce": Fraction(1, 2)}


def test_waits_are_counted_by_the_stage_that_was_waited_for() -> None:
    slow = Costs(forward=(1, 5, 1))
    found = idle(simulate(generate("gpipe", Request(3, 4)), slow))
    assert next(iter(found.by_stage())) == 1


@pytest.mark.parametrize("cause", IdleCause)
def test_a_cause_has_words(cause: IdleCause) -> None:
    assert cause.words.replace(" ", "-") == cause.name.lower().replace("_", "-")
