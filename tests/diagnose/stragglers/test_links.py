"""Slow links: the pair is named whose messages take long, and no rank for computing."""

from __future__ import annotations

import pytest

from serried.diagnose.stragglers.of_trace import trace_causes
from serried.trace.model.trace import Trace
from tests.diagnose.stragglers.straggler_runs import step_ns
from tests.trace.simulated_run import simulated_run

PP, DP, STEPS = 4, 2, 20
USUAL, SLOW = 50_000, 900_000


def linked(slow: tuple[int, int, int] | None, since: int = 0) -> Trace:
    """Returns a run in which messages of one pipeline between two stages are slow."""

    def transfer(pipeline: int, step: int, sender: int, receiver: int) -> int:
        return SLOW if (pipeline, sender, receiver) == slow and step >= since else USUAL

    return simulated_run(pp=PP, dp=DP, num_steps=STEPS, transfer=transfer)


@pytest.mark.parametrize("slow", [(0, 1, 2), (1, 2, 1), (1, 0, 1)])
@pytest.mark.parametrize("since", [0, 9])
def test_a_slow_link_is_named_with_what_it_costs(slow: tuple[int, int, int], since: int) -> None:
    pipeline, sender, receiver = slow
    trace = linked(slow, since)
    (cause,) = trace_causes(trace)

    assert (cause.kind, cause.ranks) == (
        "slow_link",
        (sender * DP + pipeline, receiver * DP + pipeline),
    )
    assert cause.cost is not None
    whole = linked(slow)
    assert cause.cost == pytest.approx(1 - step_ns(linked(None)) / step_ns(whole), abs=0.025)


def test_links_of_equal_times_are_not_named() -> None:
    assert list(trace_causes(linked(None))) == []
