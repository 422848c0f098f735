"""A collective is priced by its links, or by a table that was measured."""

from __future__ import annotations

import pytest

from serried.collective import price
from serried.collective.networks import OwnLinks, preset_of, presets
from serried.collective.placed_group import PlacedGroup
from serried.collective.price import LinkClass, LinkCost, Network
from serried.errors import InputError
from serried.limits import Limit
from serried.plan.busbw import BusbwRow, BusbwTable
from serried.plan.collective_price import CollectiveQuestion

H100 = preset_of("h100")
PLAIN = (Network(LinkCost(1e-6, 100e9), LinkCost(10e-6, 10e9)),)


def question(ranks: int = 8, size: int = 1 << 20) -> CollectiveQuestion:
    return CollectiveQuestion("all-reduce", PlacedGroup.first(ranks), size, PLAIN, "ring")


def test_a_ring_takes_the_closed_form() -> None:
    priced = question(8, 1 << 30).priced()
    assert priced.time_s == pytest.approx(14 * (1e-6 + (1 << 30) / 8 / 100e9))
    assert priced.algbw == pytest.approx((1 << 30) / priced.time_s)
    assert priced.busbw == pytest.approx((1 << 30) / priced.time_s * 14 / 8)


def test_the_quickest_protocol_counts() -> None:
    group = PlacedGroup.first(8)
    small, large = (
        CollectiveQuestion("all-reduce", group, size, H100.networks(), "ring").priced()
        for size in (1024, 1 << 30)
    )
    assert (small.cost.network.protocol, large.cost.network.protocol) == ("LL", "Simple")


def test_over_nodes_the_time_is_that_of_the_links_across() -> None:
    assert question(8).priced().bottleneck is LinkClass.IN_NODE
    assert question(16).priced().bottleneck is LinkClass.ACROSS


def test_one_rank_takes_no_time() -> None:
    priced = question(1).priced()
    assert (priced.time_s, priced.busbw, len(priced.collective.steps)) == (0.0, None, 0)


def test_a_measured_table_replaces_the_model_and_says_its_rows() -> None:
    rows = tuple(BusbwRow("all_reduce", 8, 1, 1, size, size * 10.0) for size in (1024, 4096, 16384))
    asked = CollectiveQuestion(
        "all-reduce", PlacedGroup.first(8), 2048, PLAIN, "ring", measured=BusbwTable("here", rows)
    )
    priced = asked.priced()
    assert priced.time_s == pytest.approx(2048 * 10.0 / 1e9)
    assert [row.size_bytes for row in priced.measured_rows] == [1024, 4096]
    assert priced.step_s.sum() == pytest.approx(priced.time_s)
    assert priced.step_s.sum() != pytest.approx(priced.cost.time_s)


def test_what_was_not_measured_is_refused() -> None:
    table = BusbwTable("here", (BusbwRow("all_gather", 8, 1, 1, 1024, 10.0),))
    asked = CollectiveQuestion(
        "all-reduce", PlacedGroup.first(8), 2048, PLAIN, "ring", measured=table
    )
    with pytest.raises(InputError, match="all_reduce was not measured on one node"):
        _ = asked.priced().time_s


def test_own_links_leave_nothing_of_the_table_where_both_are_given() -> None:
    (network,) = OwnLinks((1e-6,), (100e9, 10e9)).networks(H100)
    assert (network.in_node.bytes_per_s, network.across.bytes_per_s) == (100e9, 10e9)
    assert (network.in_node.latency_s, network.launch_s) == (1e-6, 0.0)


def test_a_bandwidth_of_one_s_own_is_shared_by_protocols_as_the_table_s() -> None:
    networks = OwnLinks(bytes_per_s=(100e9,)).networks(H100)
    assert [each.in_node.bytes_per_s / 100e9 for each in networks] == [0.5, 0.9375, 1.0]
    assert networks[0].in_node.latency_s == H100.networks()[0].in_node.latency_s


@pytest.mark.parametrize("name", presets())
def test_a_preset_reaches_less_than_its_links_could(name: str) -> None:
    for wire in (presets()[name].in_node, presets()[name].across):
        if "nominal" in wire.source:  # nobody measured what those links reach
            assert wire.efficiency == 1
        else:
            assert 0.5 < wire.efficiency < 1
        assert wire.source


def test_a_network_that_there_is_not_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match="there is no network 'h900'; those there are: a100, h100"):
        preset_of("h900")


def test_an_algorithm_that_cannot_be_counted_is_left_out_unless_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(price, "COLLECTIVE_LOOKS", Limit(1000, "ranks x steps", "a test"))
    group = PlacedGroup.first(64)
    asked = CollectiveQuestion("broadcast", group, 1 << 20, PLAIN)
    names = {way.entry.name for way in asked.ways()}
    assert "tree" in names and "chain" not in names
    with pytest.raises(InputError, match="broadcast by chain over 64 ranks"):
        CollectiveQuestion("broadcast", group, 1 << 20, PLAIN, "chain").priced()


@pytest.mark.soak
def test_an_all_reduce_of_131072_ranks_is_priced() -> None:
    asked = CollectiveQuestion("all-reduce", PlacedGroup.first(131_072), 1 << 30, H100.networks())
    assert asked.priced().entry.name == "tree"
