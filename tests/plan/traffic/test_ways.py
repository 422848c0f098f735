"""Closed forms of collectives: what bounds each, and which is quickest where."""

from __future__ import annotations

import pytest

from serried.errors import InputError
from serried.plan.catalog import cluster_named
from serried.plan.traffic.transfers import Pricer
from serried.plan.traffic.ways import GroupLinks, quickest, ways

NODE = GroupLinks(8, 8, 300e9, 25e9, 3.4e-6, 14e-6)
NODES = GroupLinks(64, 8, 300e9, 25e9, 3.4e-6, 14e-6)


def test_a_ring_moves_twice_the_buffer_but_for_a_rank_s_own_part() -> None:
    large = ways("all_reduce", 8e9, NODE)["ring"]
    assert large == pytest.approx(2 * 7 / 8 * 8e9 / 300e9, rel=0.01)


def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather() -> None:
    whole = ways("all_reduce", 1e8, NODES)["ring"]
    halves = [ways(each, 1e8, NODES)["ring"] for each in ("reduce_scatter", "all_gather")]
    assert whole == pytest.approx(sum(halves))


def test_small_messages_go_by_trees_and_large_ones_by_rings() -> None:
    assert quickest("all_reduce", 1e4, NODES)[0] == "tree"
    assert quickest("all_reduce", 1e10, NODES)[0] == "ring"


def test_switches_that_add_up_spare_half_of_the_way() -> None:
    summing = GroupLinks(8, 8, 450e9, 50e9, 3.4e-6, 14e-6, summed_bytes_per_s=315e9)
    found = ways("all_reduce", 1e9, summing)
    assert found["nvls"] < found["ring"]
    assert quickest("all_reduce", 1e9, summing)[0] == "nvls"
    assert quickest("all_gather", 1e9, summing)[0] == "ring"


@pytest.mark.parametrize(
    ("name", "ring", "nvls"),
    [("a100", 235e9, None), ("h100", 370e9, 480e9), ("b200", 720e9, 830e9)],
)
def test_eight_gpus_reach_what_nccl_tests_do(name: str, ring: float, nvls: float | None) -> None:
    """Bus bandwidths of large all-reduces over one node, as nccl-tests print them."""
    links = Pricer(cluster_named(name), None).links(8, 1)
    busbw = {way: 2 * 7 / 8 * 8e9 / time for way, time in ways("all_reduce", 8e9, links).items()}
    assert busbw["ring"] == pytest.approx(ring, rel=0.02)
    assert busbw.get("nvls") == (pytest.approx(nvls, rel=0.04) if nvls else None)
    assert quickest("all_reduce", 8e9, links)[0] == ("nvls" if nvls else "ring")
    assert quickest("all_reduce", 1e5, links)[0] == "tree"


def test_a_group_of_one_takes_no_time_and_unknown_collectives_are_refused() -> None:
    assert quickest("all_reduce", 1e9, GroupLinks(1, 1, 3e11, 3e10, 0, 0)) == ("none", 0.0)
    with pytest.raises(InputError, match="closed form"):
        ways("gossip", 1.0, NODE)


def test_experts_of_other_nodes_are_reached_through_nics() -> None:
    near = quickest("all_to_all", 1e9, NODE)[1]
    far = quickest("all_to_all", 1e9, NODES)[1]
    assert far > 8 * near
