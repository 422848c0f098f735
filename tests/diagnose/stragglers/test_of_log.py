"""Step lines of logs: the slow rank is named, and none where the lines cannot tell which."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from serried.diagnose.diagnosis import Cause
from serried.diagnose.evidence.quote import Numbering, Speaker
from serried.diagnose.steps.of_lines import StepLines
from serried.diagnose.stragglers.of_log import log_causes

USUAL = 50.0


def logged(
    compute: Callable[[int, int], float],
    *,
    tp: int,
    dp: int,
    steps: int = 30,
    places: bool = True,
    gone: int | None = None,
) -> list[Cause]:
    """Returns what is told of ranks that print ``compute(rank, step)`` ms; all steps end together.

    tp is the fastest axis, as in Megatron.
    """
    found, ranks = StepLines(), range(tp * dp)
    for rank in set(ranks) - {gone}:
        lines = [f"rank {rank} tp {rank % tp} dp {rank // tp} pp 0 start".encode()] * places
        for step in range(steps):
            whole = max(compute(each, step) for each in ranks) + 5
            lines.append(
                f"step {step} compute_ms {compute(rank, step):.1f} step_ms {whole}".encode()
            )
        found.hear(f"rank_{rank}.log", Speaker(rank, Numbering.GLOBAL), 1, lines)
    return list(log_causes(found))


@pytest.mark.parametrize("slow", [0, 2, 3])
def test_a_rank_that_exchanges_with_nobody_while_it_computes_is_named(slow: int) -> None:
    (cause,) = logged(lambda r, s: USUAL + 20 * (r == slow) + s % 3, tp=1, dp=4)
    assert (cause.kind, cause.ranks) == ("slow_gpu", (slow,))
    assert cause.cost == pytest.approx(20 / 77, abs=0.02)


def test_it_is_told_since_which_step() -> None:
    (cause,) = logged(lambda r, s: USUAL + 20 * (r == 1 and s >= 14) + s % 3, tp=1, dp=4)
    assert "since step 14" in str(cause.verdict)


@pytest.mark.parametrize("pair", [0, 1])
def test_of_ranks_that_exchange_while_they_compute_none_is_named(pair: int) -> None:
    (cause,) = logged(lambda r, s: USUAL + 40 * (r // 2 == pair) + r % 2, tp=2, dp=2)
    assert cause.ranks is None
    assert f"one of ranks {2 * pair}, {2 * pair + 1} holds" in str(cause.verdict)


def test_nor_where_only_one_of_them_prints_the_time_for_the_other_may_load_its_data() -> None:
    (cause,) = logged(lambda r, s: USUAL + 40 * (r == 2), tp=2, dp=2)
    assert cause.ranks is None


def test_ranks_that_lag_alike_are_not_told_apart_where_no_line_says_who_exchanges() -> None:
    (cause,) = logged(lambda r, s: USUAL + 40 * (r < 2) + r % 2, tp=2, dp=4, places=False)
    assert cause.ranks is None


def test_nobody_is_named_where_all_take_as_long() -> None:
    assert logged(lambda r, s: USUAL + (7 * r + 5 * s) % 4, tp=1, dp=4) == []


def test_nor_is_one_named_of_whose_exchange_another_left_no_lines() -> None:
    (cause,) = logged(lambda r, s: USUAL + 40 * (r < 2), tp=2, dp=2, gone=1)
    assert cause.ranks is None
    assert "rank 0 holds the others up, or a rank that it exchanges with" in str(cause.verdict)
