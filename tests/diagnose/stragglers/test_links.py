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


@pytest.mark.parametrize("slow", [1, 2])
def test_a_rank_all_of_whose_links_are_slow_is_named_though_most_links_are(slow: int) -> None:
    def transfer(_: int, step: int, sender: int, receiver: int) -> int:
        return SLOW if slow in (sender, receiver) else USUAL

    trace = simulated_run(pp=PP, dp=1, num_steps=STEPS, transfer=transfer)
    (cause,) = trace_causes(trace)

    assert (cause.kind, cause.ranks) == ("slow_link", (slow,))
    quick = simulated_run(pp=PP, dp=1, num_steps=STEPS, transfer=lambda *_: USUAL)
    # A message that was sent before anybody received it is not known to have been slow.
    assert cause.cost is not None
    assert 0.6 <= cause.cost / (1 - step_ns(quick) / step_ns(trace)) <= 1.05


def test_of_a_link_slow_both_ways_both_ends_are_named_once() -> None:
    def transfer(_: int, step: int, sender: int, receiver: int) -> int:
        return SLOW if {sender, receiver} == {2, 3} else USUAL

    (cause,) = trace_causes(simulated_run(pp=PP, dp=1, num_steps=STEPS, transfer=transfer))
    assert (cause.kind, {*(cause.ranks or ())}) == ("slow_link", {2, 3})
    assert "link between" in str(cause.verdict)


def test_where_every_link_is_of_the_slow_rank_nobody_is_named() -> None:
    def transfer(_: int, step: int, sender: int, receiver: int) -> int:
        return SLOW

    assert not list(trace_causes(simulated_run(pp=3, dp=1, num_steps=STEPS, transfer=transfer)))


def test_links_of_equal_times_are_not_named() -> None:
    assert list(trace_causes(linked(None))) == []
