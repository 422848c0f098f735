"""Every collective by every algorithm that it has, and one sentence for what it has not."""

from __future__ import annotations

from typing import Any

import pytest

from serried.collective.blocks import prove
from serried.collective.entry import AlgorithmEntry
from serried.collective.placed_group import PlacedGroup
from serried.collective.registry import ENTRIES, ROOTED, make
from serried.errors import InputError

EIGHT = PlacedGroup.first(8)


def refused(name: str, algorithm: str, group: PlacedGroup = EIGHT, **options: Any) -> str:
    with pytest.raises(InputError) as raised:
        make(name, algorithm, group, **options)
    return str(raised.value)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda each: f"{each.collective} {each.name}")
def test_one_rank_sends_nothing_and_that_is_no_error(entry: AlgorithmEntry) -> None:
    made = make(entry.collective, entry.name, PlacedGroup.first(1))
    assert sum(map(len, made.steps)) == 0


def test_an_unknown_collective_is_answered_with_those_there_are() -> None:
    said = refused("all-sum", "ring")
    assert said.startswith("there is no collective 'all-sum'; those there are: all-reduce, ")


def test_an_algorithm_that_a_collective_does_not_have_is_answered_with_its_own() -> None:
    assert refused("all-reduce", "bruck") == (
        "all-reduce has no algorithm 'bruck'; it has ring, tree, recursive, hierarchical, switch"
    )


def test_chunks_are_those_that_make_sense() -> None:
    assert refused("all-reduce", "tree", chunks=0) == "chunks=0 cannot be; here it is 1 to 4096"
    assert refused("all-reduce", "tree", chunks=9999).startswith("chunks=9999 cannot be")
    assert len(make("all-reduce", "tree", EIGHT, chunks=4096).steps) == 6 + 4095


def test_rings_are_as_many_as_the_smallest_node_has_ranks() -> None:
    nodes = PlacedGroup.first(11)  # 8 and 3 ranks
    assert refused("all-reduce", "ring", nodes, channels=4) == (
        "channels=4 cannot be; here it is 1 to 3"
    )
    assert make("all-reduce", "ring", nodes, channels=3).num_blocks == 33


def test_an_option_that_an_algorithm_does_not_take_is_answered_with_those_that_do() -> None:
    assert refused("all-reduce", "ring", chunks=4) == (
        "all-reduce by ring takes no chunks; those that do: tree"
    )


def test_a_root_is_a_place_of_the_group() -> None:
    assert refused("all-reduce", "ring", root=8) == (
        "root 8 is not in the group; its 8 ranks stand at places 0 to 7"
    )


def test_a_collective_in_which_all_are_alike_has_no_root() -> None:
    assert refused("all-reduce", "ring", root=3) == (
        "all-reduce has no root, and 3 is asked for; broadcast, reduce, gather and scatter have one"
    )
    assert ROOTED == ("broadcast", "reduce", "gather", "scatter")


@pytest.mark.parametrize("name", ROOTED)
@pytest.mark.parametrize("algorithm", ["tree", "chain"])
def test_the_last_of_a_prime_number_of_ranks_may_be_the_root(name: str, algorithm: str) -> None:
    made = make(name, algorithm, PlacedGroup.first(13), root=12)
    assert made.root == 12
    prove(made)


def test_a_root_outside_the_group_is_refused_for_a_broadcast_too() -> None:
    assert refused("broadcast", "tree", root=-1).startswith("root -1 is not in the group")


def test_blocks_are_counted_one_by_one_only_over_so_many_ranks_of_unequal_nodes() -> None:
    unequal = PlacedGroup.first(2049)
    assert refused("all-to-all", "hierarchical", unequal) == (
        "a hierarchical all-to-all over unequal or mixed nodes takes at most 2048 ranks, and the "
        "group has 2049; pairwise takes any number"
    )
    assert len(make("all-to-all", "hierarchical", PlacedGroup.first(16_384)).steps) == 2048


def test_steps_of_16384_ranks_are_made_when_they_are_asked_for() -> None:
    made = make("all-to-all", "pairwise", PlacedGroup.first(16_384))
    assert len(made.steps) == 16_383
    assert len(made.steps[5000]) == 16_384
