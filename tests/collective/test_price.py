"""Steps cost the latency and the bytes of their fullest link; moves that share one add up."""

from __future__ import annotations

import pytest

from serried.collective import price
from serried.collective.algorithm import Collective
from serried.collective.placed_group import PlacedGroup
from serried.collective.price import LinkClass, LinkCost, Network, cost_of, loads_of
from serried.collective.registry import make
from serried.collective.step import CollectiveStep, CollectiveSteps
from serried.errors import InputError
from serried.limits import Limit

SLOW = LinkCost(1.0, 10.0)
"""A second, and 10 bytes a second."""
NETWORK = Network(LinkCost(0.5, 100.0), SLOW)


def collective(group: PlacedGroup, step: CollectiveStep) -> Collective:
    return Collective("all-gather", "drawn", group, 1, CollectiveSteps.listed([step]))


def seconds(group: PlacedGroup, step: CollectiveStep, network: Network = NETWORK) -> float:
    """Returns what a step of blocks of 100 bytes takes."""
    return float(cost_of(collective(group, step), network, 100).step_s[0])


def test_a_step_takes_its_latency_and_its_bytes() -> None:
    assert seconds(PlacedGroup.first(2), CollectiveStep.of([0], [1], [0])) == 0.5 + 1


def test_a_step_lasts_as_long_as_its_slowest_link() -> None:
    step = CollectiveStep.of([0, 1], [1, 2], [0, 0])
    cost = cost_of(collective(PlacedGroup((0, 1, 2), (0, 0, 1)), step), NETWORK, 100)
    assert cost.step_s.tolist() == [1 + 10]
    assert cost.link.tolist() == [LinkClass.ACROSS]


def test_two_moves_from_one_rank_share_its_port() -> None:
    step = CollectiveStep.of([0, 0], [1, 2], [0, 0])
    assert seconds(PlacedGroup.first(3), step) == 0.5 + 2


def test_two_moves_to_one_rank_share_its_port() -> None:
    step = CollectiveStep.of([0, 1], [2, 2], [0, 0])
    assert seconds(PlacedGroup.first(3), step) == 0.5 + 2


def test_moves_both_ways_do_not_share_a_link() -> None:
    step = CollectiveStep.of([0, 1], [1, 0], [0, 0])
    assert seconds(PlacedGroup.first(2), step) == 0.5 + 1


@pytest.mark.parametrize(("nics", "takes"), [(None, 11), (2, 11), (1, 21)])
def test_ranks_of_a_node_share_its_nics_out(nics: int | None, takes: float) -> None:
    group = PlacedGroup((0, 1, 2, 3), (0, 0, 1, 2))
    step = CollectiveStep.of([0, 1], [2, 3], [0, 0])
    assert seconds(group, step, Network(NETWORK.in_node, SLOW, nics)) == takes


@pytest.mark.parametrize(("nics", "takes"), [(None, 11), (1, 21)])
def test_ranks_of_a_node_share_its_nics_in(nics: int | None, takes: float) -> None:
    group = PlacedGroup((0, 1, 2, 3), (0, 0, 1, 2))
    step = CollectiveStep.of([2, 3], [0, 1], [0, 0])
    assert seconds(group, step, Network(NETWORK.in_node, SLOW, nics)) == takes


def test_three_ranks_on_two_nics_share_in_turns() -> None:
    group = PlacedGroup(tuple(range(6)), (0, 0, 0, 1, 1, 1))
    step = CollectiveStep.of([0, 1, 2], [3, 4, 5], [0, 0, 0])
    assert seconds(group, step, Network(NETWORK.in_node, SLOW, 2)) == 21


def test_a_switch_s_own_end_is_never_full() -> None:
    group = PlacedGroup.first(2)
    step = CollectiveStep.of([0, 1], [2, 2], [0, 0], reduces=True)
    assert seconds(group, step) == 0.5 + 1


def test_steps_of_one_pattern_are_priced_as_each_by_itself() -> None:
    group = PlacedGroup(tuple(range(6)), (0, 0, 0, 0, 1, 1))
    ring = make("all-reduce", "ring", group)
    alone = CollectiveSteps.listed(list(ring.steps))
    apart = Collective("all-reduce", "ring", group, ring.num_blocks, alone)
    together, each = (cost_of(one, NETWORK, 600) for one in (ring, apart))
    assert together.step_s.tolist() == each.step_s.tolist()
    assert together.sent.tolist() == pytest.approx(each.sent.tolist())


def test_a_ring_sends_what_its_formula_says() -> None:
    ring = make("all-reduce", "ring", PlacedGroup.first(7))
    assert cost_of(ring, NETWORK, 700).sent[:7].tolist() == pytest.approx([2 * 6 / 7 * 700] * 7)


def test_a_launch_is_paid_once() -> None:
    ring = make("all-reduce", "ring", PlacedGroup.first(4))
    without, launched = (
        cost_of(ring, Network(SLOW, SLOW, launch_s=launch), 40).time_s for launch in (0.0, 5.0)
    )
    assert launched == without + 5


@pytest.mark.parametrize("speed", [0.0, -1.0, float("inf"), float("nan")])
def test_a_bandwidth_that_moves_nothing_is_refused(speed: float) -> None:
    with pytest.raises(InputError, match="GB/s moves nothing; it is above 0"):
        LinkCost(0.0, speed)


@pytest.mark.parametrize("latency", [-1e-6, float("inf"), float("nan")])
def test_a_latency_below_0_is_refused(latency: float) -> None:
    with pytest.raises(InputError, match="us cannot be; it is at least 0"):
        LinkCost(latency, 1.0)


def test_steps_that_differ_are_refused_where_they_are_too_many_and_rings_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(price, "COLLECTIVE_LOOKS", Limit(1000, "ranks x steps", "a test"))
    group = PlacedGroup.first(64)
    with pytest.raises(InputError) as refused:
        loads_of(make("all-to-all", "pairwise", group))
    assert str(refused.value) == (
        "all-to-all by pairwise over 64 ranks has 63 steps that differ, which is more than serried "
        "counts; ask for fewer ranks, such as 16"
    )
    assert loads_of(make("all-to-all", "pairwise", PlacedGroup.first(16))).in_node.size == 15
    assert len(loads_of(make("all-reduce", "ring", group)).which) == 126


def test_what_is_suggested_for_a_job_of_131072_ranks_is_counted() -> None:
    with pytest.raises(InputError, match="such as 16,384"):
        loads_of(make("all-to-all", "pairwise", PlacedGroup.first(131_072)))
    assert price.is_countable(make("all-to-all", "pairwise", PlacedGroup.first(16_384)))
