"""Executed on blocks, every algorithm leaves each rank with what its collective promises."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.collective.algorithm import Collective
from serried.collective.blocks import BrokenAlgorithmError, prove
from serried.collective.placed_group import PlacedGroup
from serried.collective.registry import ENTRIES, AlgorithmEntry, make
from serried.collective.step import CollectiveStep, CollectiveSteps

EVERY_ALGORITHM = pytest.mark.parametrize(
    "entry", ENTRIES, ids=lambda entry: f"{entry.collective} {entry.name}"
)


@st.composite
def groups(draw: st.DrawFn) -> PlacedGroup:
    """Draws up to 64 ranks on nodes of drawn sizes, a node's ranks not always together."""
    nodes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=8))
    places = [node for node, size in enumerate(nodes) for _ in range(size)][:64]
    if draw(st.booleans()):
        places = draw(st.permutations(places))
    return PlacedGroup(tuple(range(len(places))), tuple(places))


@EVERY_ALGORITHM
@pytest.mark.parametrize("ranks", range(1, 65))
def test_holds_for_any_number_of_ranks(entry: AlgorithmEntry, ranks: int) -> None:
    prove(make(entry.collective, entry.name, PlacedGroup.first(ranks)))


@EVERY_ALGORITHM
@given(groups())
def test_holds_on_any_nodes(entry: AlgorithmEntry, group: PlacedGroup) -> None:
    prove(make(entry.collective, entry.name, group))


def broken(*steps: CollectiveStep) -> Collective:
    return Collective(
        "all-reduce", "broken", PlacedGroup.first(2), 1, CollectiveSteps.listed(steps)
    )


def test_a_proof_fails_where_a_rank_misses_a_contribution() -> None:
    with pytest.raises(BrokenAlgorithmError, match="without what it was promised"):
        prove(broken(CollectiveStep.of([0], [1], [0], reduces=True)))


def test_a_proof_fails_where_a_contribution_is_added_twice() -> None:
    once = CollectiveStep.of([0], [1], [0], reduces=True)
    with pytest.raises(BrokenAlgorithmError, match="step 1 adds a contribution twice: block 0"):
        prove(broken(once, once))


def test_a_proof_fails_where_a_sum_is_overwritten_with_less() -> None:
    with pytest.raises(BrokenAlgorithmError, match="step 0 overwrites a sum with less"):
        prove(broken(CollectiveStep.of([0], [1], [0])))


@pytest.mark.parametrize("ranks", [2, 3, 8, 13, 64])
def test_a_ring_sends_as_many_bytes_as_the_closed_formula(ranks: int) -> None:
    ring = make("all-reduce", "ring", PlacedGroup.first(ranks))
    size = 1000 * ranks
    sent: Counter[int] = Counter()
    for step in ring.steps:
        for source, count in zip(step.source, step.count, strict=True):
            sent[int(source)] += int(count * ring.block_bytes(size))
    assert set(sent.values()) == {2 * (ranks - 1) * size // ranks}
    assert np.array_equal(sorted(sent), np.arange(ranks))
