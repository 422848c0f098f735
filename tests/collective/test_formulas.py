"""What ranks send, counted from the steps, is what the closed formula of each algorithm says."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from serried.collective.algorithm import Collective
from serried.collective.algorithms.double_tree import two_trees
from serried.collective.bus_factor import bus_factor
from serried.collective.entry import AlgorithmEntry
from serried.collective.placed_group import PlacedGroup
from serried.collective.registry import ENTRIES, entry_of, make
from tests.collective.drawn_groups import EVERY, FEW, drawn_groups

EVERY_ALGORITHM = pytest.mark.parametrize(
    "entry", ENTRIES, ids=lambda entry: f"{entry.collective} {entry.name}"
)
OPERATION = {
    "all-reduce": "all_reduce",
    "all-gather": "all_gather",
    "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all",
}


def sent(collective: Collective) -> list[Fraction]:
    """Returns what part of S each rank sends in all."""
    blocks = np.zeros(collective.group.size + collective.group.num_nodes, dtype=np.int64)
    for step in collective.steps:
        np.add.at(blocks, step.source, step.count)
    return [collective.block_bytes(1) * int(count) for count in blocks[: collective.group.size]]


def follows(entry: AlgorithmEntry, group: PlacedGroup) -> None:
    collective = make(entry.collective, entry.name, group)
    assert max(sent(collective)) == entry.bytes_sent(collective, 1)
    has_steps = group.size > 1 or entry.collective == "attention"
    assert len(collective.steps) == (entry.num_steps(collective) if has_steps else 0)


@EVERY_ALGORITHM
def test_for_any_number_of_ranks(entry: AlgorithmEntry) -> None:
    """Numbers between 33 and 64 are left to `make soak`, but for four."""
    for ranks in FEW:
        follows(entry, PlacedGroup.first(ranks))


@pytest.mark.soak
@EVERY_ALGORITHM
def test_for_every_number_of_ranks(entry: AlgorithmEntry) -> None:
    for ranks in EVERY:
        follows(entry, PlacedGroup.first(ranks))


@EVERY_ALGORITHM
@settings(max_examples=20)
@given(drawn_groups())
def test_on_any_nodes(entry: AlgorithmEntry, group: PlacedGroup) -> None:
    follows(entry, group)


@pytest.mark.parametrize("ranks", [2, 3, 8, 13, 64])
@pytest.mark.parametrize("name", ["all-reduce", "all-gather", "reduce-scatter", "all-to-all"])
def test_every_rank_of_a_ring_sends_the_factor_of_nccl_tests(name: str, ranks: int) -> None:
    # busbw = algbw x factor is the speed of a link just where S x factor bytes go through it.
    algorithm = "pairwise" if name == "all-to-all" else "ring"
    ring = make(name, algorithm, PlacedGroup.first(ranks))
    assert {float(each) for each in sent(ring)} == {bus_factor(OPERATION[name], ranks)}


@pytest.mark.parametrize("ranks", [2, 3, 8, 13, 64])
def test_no_algorithm_without_a_switch_sends_less_than_the_factor(ranks: int) -> None:
    for entry in ENTRIES:
        if entry.collective in OPERATION and entry.name != "switch":
            collective = make(entry.collective, entry.name, PlacedGroup.first(ranks))
            assert float(max(sent(collective))) >= bus_factor(OPERATION[entry.collective], ranks)


def test_a_step_of_a_ring_sends_a_share_and_steps_of_doubling_twice_as_much_each() -> None:
    ring, doubling = (
        make("all-gather", name, PlacedGroup.first(16, 16)) for name in ("ring", "recursive")
    )
    shares = [step.count.max() * ring.block_bytes(16) for step in ring.steps]
    assert shares == [1] * 15
    assert [step.count.max() * doubling.block_bytes(16) for step in doubling.steps] == [1, 2, 4, 8]


def test_half_as_much_as_by_a_ring_goes_through_a_switch_of_many_ranks() -> None:
    group = PlacedGroup.first(64, gpus_per_node=64)
    by_switch = max(sent(make("all-reduce", "switch", group)))
    assert by_switch == 1 + Fraction(1, 64)
    assert make("all-reduce", "ring", group).block_bytes(1) * 126 == 2 - Fraction(1, 32)


def test_a_rank_sends_across_nodes_only_its_share_of_a_hierarchical_all_reduce() -> None:
    group = PlacedGroup.first(32)
    made = make("all-reduce", "hierarchical", group)
    across = sum(
        int(step.count[group.node_index[step.source] != group.node_index[step.target]].sum())
        for step in made.steps
    )
    # 2 (N - 1) / n S for each of n ranks, on N = 4 nodes
    assert across * made.block_bytes(1) == Fraction(2 * 3, 32) * 32


def test_no_rank_stands_between_others_in_both_trees() -> None:
    for ranks in range(2, 200):
        inner = [set(tree[tree >= 0].tolist()) for tree in two_trees(ranks)]
        assert not inner[0] & inner[1]


def test_a_formula_is_told_as_bytes_too() -> None:
    ring = make("all-reduce", "ring", PlacedGroup.first(8))
    assert entry_of("all-reduce", "ring").bytes_sent(ring, 1 << 30) == 2 * 7 * (1 << 27)


def test_messages_across_nodes_are_fewer_and_larger_by_the_nodes_than_pairwise() -> None:
    group = PlacedGroup.first(16, gpus_per_node=4)
    across = {}
    for name in ("pairwise", "hierarchical"):
        sizes = [
            int(size)
            for step in make("all-to-all", name, group).steps
            for size in step.count[group.node_index[step.source] != group.node_index[step.target]]
        ]
        across[name] = (len(sizes), sum(sizes))
    assert across == {"pairwise": (16 * 12, 16 * 12), "hierarchical": (16 * 3, 16 * 12)}


def test_nobody_sends_more_than_the_buffer_in_a_chain_however_long() -> None:
    for ranks in (2, 5, 64):
        assert max(sent(make("broadcast", "chain", PlacedGroup.first(ranks), chunks=16))) == 1
