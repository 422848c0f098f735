"""Executed on blocks, every algorithm leaves each rank with what its collective promises."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serried.collective.algorithm import Collective
from serried.collective.blocks import BrokenAlgorithmError, prove
from serried.collective.entry import AlgorithmEntry
from serried.collective.placed_group import PlacedGroup
from serried.collective.registry import ENTRIES, ROOTED, make
from serried.collective.step import CollectiveStep, CollectiveSteps
from tests.collective.drawn_groups import EVERY, FEW, drawn_groups

EVERY_ALGORITHM = pytest.mark.parametrize(
    "entry", ENTRIES, ids=lambda entry: f"{entry.collective} {entry.name}"
)


@EVERY_ALGORITHM
def test_holds_for_any_number_of_ranks(entry: AlgorithmEntry) -> None:
    """Numbers between 33 and 64 are left to `make soak`, but for four."""
    for ranks in FEW:
        prove(made(entry, PlacedGroup.first(ranks), root=ranks // 3))


@pytest.mark.soak
@EVERY_ALGORITHM
def test_holds_for_every_number_of_ranks(entry: AlgorithmEntry) -> None:
    for ranks in EVERY:
        prove(made(entry, PlacedGroup.first(ranks), root=ranks // 3))


@EVERY_ALGORITHM
@settings(max_examples=20)
@given(drawn_groups(), st.data())
def test_holds_on_any_nodes(entry: AlgorithmEntry, group: PlacedGroup, data: st.DataObject) -> None:
    prove(made(entry, group, root=data.draw(st.integers(0, group.size - 1))))


def made(entry: AlgorithmEntry, group: PlacedGroup, root: int) -> Collective:
    return make(entry.collective, entry.name, group, root=root if entry.collective in ROOTED else 0)


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
