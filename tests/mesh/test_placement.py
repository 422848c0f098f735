"""Placement: nodes are filled in rank order, and a rank may own several GPUs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.errors import InputError
from serried.mesh import Groups, Placement


def test_two_nodes_of_four_gpus_hold_four_ranks_of_two_gpus() -> None:
    place = Placement(4, gpus_per_node=4, gpus_per_rank=2)
    assert place.num_nodes == 2
    assert [place.node(rank) for rank in range(4)] == [0, 0, 1, 1]
    assert [place.local_rank(rank) for rank in range(4)] == [0, 1, 0, 1]
    assert [place.gpus(rank) for rank in range(4)] == [(0, 1), (2, 3), (0, 1), (2, 3)]


def test_the_last_node_may_be_partly_filled() -> None:
    place = Placement(10, gpus_per_node=8)
    assert place.num_nodes == 2
    assert list(place.ranks_on(1)) == [8, 9]


def test_groups_are_told_over_how_many_nodes_they_spread() -> None:
    spread = Placement(16).nodes_of(Groups.of([[0, 7], [7, 8], [0, 15, 8]]))
    assert spread.tolist() == [1, 2, 2]


def test_groups_that_name_ranks_beyond_the_world_spread_beyond_its_nodes() -> None:
    spread = Placement(8).nodes_of(Groups.of([[0, 1], [0, 8], [16, 24]]))
    assert spread.tolist() == [1, 2, 2]


def test_gpus_of_a_rank_must_divide_those_of_a_node() -> None:
    with pytest.raises(
        InputError,
        match="gpus_per_rank=3 does not divide 8 GPUs of a node; numbers that do: 1, 2, 4, 8",
    ):
        Placement(8, gpus_per_node=8, gpus_per_rank=3)


@pytest.mark.parametrize("name", ["gpus_per_node", "gpus_per_rank"])
def test_a_count_below_one_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name}=0; it is at least 1"):
        Placement(8, **{name: 0})  # type: ignore[arg-type]


@given(st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=6, unique=True), max_size=8))
def test_nodes_are_counted_whatever_the_order_of_ranks(lists: list[list[int]]) -> None:
    spread = Placement(41).nodes_of(Groups.of(lists))
    assert spread.tolist() == [len({rank // 8 for rank in ranks}) for ranks in lists]


WIDTHS = st.lists(st.integers(1, 9), min_size=1, max_size=12)


def walked(widths: list[int], world_size: int) -> list[tuple[int, int]]:
    """Returns the node and local rank of each rank, nodes filled one after the other."""
    places = [(node, place) for node, width in enumerate(widths) for place in range(width)]
    return places[:world_size]


@given(WIDTHS, st.integers(1, 3), st.integers(0, 40))
def test_nodes_of_any_widths_are_filled_one_after_the_other(
    widths: list[int], per_rank: int, unused: int
) -> None:
    world = max(1, sum(widths) - unused)
    place = Placement.on(world, [width * per_rank for width in widths], per_rank)
    expected = walked(widths, world)
    ranks = np.arange(world, dtype=np.int32)
    assert [(place.node(rank), place.local_rank(rank)) for rank in range(world)] == expected
    assert [*zip(place.nodes(ranks), place.local_ranks(ranks), strict=True)] == expected
    assert place.num_nodes == expected[-1][0] + 1
    held = [list(place.ranks_on(node)) for node in range(place.num_nodes)]
    assert [rank for ranks_there in held for rank in ranks_there] == ranks.tolist()
    assert all(place.node(rank) == node for node, ranks in enumerate(held) for rank in ranks)


@given(
    WIDTHS,
    st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=6, unique=True), max_size=8),
)
def test_nodes_that_differ_are_counted_whatever_the_order_of_ranks(
    widths: list[int], lists: list[list[int]]
) -> None:
    widths = [*widths, 41]
    spread = Placement.on(41, widths).nodes_of(Groups.of(lists))
    node = [at for at, _ in walked(widths, 41)]
    assert spread.tolist() == [len({node[rank] for rank in ranks}) for ranks in lists]


def test_nodes_that_are_named_hold_the_world() -> None:
    with pytest.raises(InputError, match="nodes of 4, 1 GPUs hold 5 of 6 ranks"):
        Placement.on(6, (4, 1))
    with pytest.raises(InputError, match="nodes of 4, 4 GPUs hold 8 of 9 ranks"):
        Placement.on(9, (4, 4))
    assert Placement.on(8, (4, 4)) == Placement(8, 4)


def test_gpus_of_a_rank_must_divide_those_of_every_node() -> None:
    with pytest.raises(InputError, match="gpus_per_rank=2 does not divide 4, 1 GPUs of a node"):
        Placement.on(2, (4, 1), 2)


def test_nodes_that_differ_have_no_number_of_ranks_in_common() -> None:
    place = Placement.on(12, (8, 4))
    with pytest.raises(InputError, match="nodes of 8, 4 GPUs hold different numbers of ranks"):
        _ = place.ranks_per_node
    assert (place.ranks_on_largest, place.ranks_on_every) == (8, 4)
