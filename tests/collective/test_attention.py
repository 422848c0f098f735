"""Attention over a split sequence: each pair once, where the query is, while the keys are there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from serried.collective.algorithm import Collective
from serried.collective.blocks import BrokenAlgorithmError, prove
from serried.collective.placed_group import PlacedGroup
from serried.collective.registry import make
from serried.collective.step import CollectiveSteps, Work
from serried.errors import InputError

RINGS = pytest.mark.parametrize("algorithm", ["ring", "ring-two-pass"])


def ring(ranks: int, algorithm: str = "ring", **options: Any) -> Collective:
    return make("attention", algorithm, PlacedGroup.first(ranks), **options)


def pairs(collective: Collective) -> list[list[float]]:
    """Returns how many pairs of chunks each rank computes, a row for each step."""
    steps = [step.work for step in collective.steps if step.work is not None]
    return [work.pairs(collective.group.size).tolist() for work in steps]


def test_zig_zag_gives_every_rank_as_many_pairs_in_every_step() -> None:
    for ranks in range(1, 33):
        assert pairs(ring(ranks)) == [[2.0] * ranks] * ranks


def test_contiguous_shards_leave_the_first_rank_idle_after_its_own() -> None:
    assert pairs(ring(4, split="contiguous")) == [
        [2, 2, 2, 2],
        [0, 4, 4, 4],
        [0, 0, 4, 4],
        [0, 0, 0, 4],
    ]


@RINGS
def test_without_a_mask_every_rank_meets_all_chunks_in_either_split(algorithm: str) -> None:
    for split in ("zig-zag", "contiguous"):
        made = ring(5, algorithm, split=split, causal=False)
        prove(made)
        assert {count for step in pairs(made) for count in step} == {4.0}


@RINGS
@pytest.mark.parametrize("split", ["zig-zag", "contiguous"])
def test_keys_are_used_in_the_step_after_they_came_or_by_their_owner(
    algorithm: str, split: str
) -> None:
    made = ring(7, algorithm, split=split)
    prove(made)
    owned = {(int(owner), block) for block, owner in enumerate(made.owner)}
    came: set[tuple[int, int]] = set()
    for step in made.steps:
        assert step.work is not None
        used = set(zip(step.work.position.tolist(), step.work.key.tolist(), strict=True))
        assert used <= owned | came
        came = set(zip(step.target.tolist(), step.first.tolist(), strict=True))


def test_all_scores_come_before_any_output_in_two_passes() -> None:
    steps = [step.work for step in ring(3, "ring-two-pass").steps]
    assert [(work is not None) and set(work.key.tolist()) <= set(range(6)) for work in steps] == [
        True
    ] * 3 + [False] * 3


def test_ulysses_gives_each_rank_all_pairs_of_its_heads() -> None:
    made = make("attention", "ulysses", PlacedGroup.first(4))
    assert pairs(made) == [[4 * 4 / 2] * 4]
    assert [step.work is not None for step in made.steps] == [False] * 3 + [True] + [False] * 3


def test_one_rank_attends_to_its_own_keys_and_sends_nothing() -> None:
    for algorithm in ("ring", "ring-two-pass", "ulysses"):
        made = make("attention", algorithm, PlacedGroup.first(1))
        prove(made)
        assert sum(map(len, made.steps)) == 0


def changed(made: Collective, change: Callable[[Work], Work], at: int = 1) -> Collective:
    steps = list(made.steps)
    work = steps[at].work
    assert work is not None
    steps[at] = replace(steps[at], work=change(work))
    return replace(made, steps=CollectiveSteps.listed(steps))


def taken(work: Work, rows: list[int]) -> Work:
    return Work(work.position[rows], work.query[rows], work.key[rows], work.is_half[rows])


def test_a_proof_fails_where_a_pair_is_left_out() -> None:
    with pytest.raises(BrokenAlgorithmError, match="does not meet each of its keys once"):
        prove(changed(ring(3), lambda work: taken(work, list(range(1, len(work.key))))))


def test_a_proof_fails_where_a_pair_is_computed_twice() -> None:
    twice = changed(ring(3), lambda work: taken(work, [0, *range(len(work.key))]))
    with pytest.raises(BrokenAlgorithmError, match="does not meet each of its keys once"):
        prove(twice)


def test_a_proof_fails_where_keys_are_used_before_they_came() -> None:
    # In the first step a rank has only its own keys; the second step's are on their way.
    steps = list(ring(3).steps)
    early = changed(ring(3), lambda _: steps[1].work or pytest.fail(), at=0)
    with pytest.raises(BrokenAlgorithmError, match="keys that it does not hold"):
        prove(early)


def test_a_proof_fails_where_another_rank_answers_a_query() -> None:
    def moved(work: Work) -> Work:
        return replace(work, query=(work.query + 1) % 6)

    with pytest.raises(BrokenAlgorithmError, match="queries that it does not hold"):
        prove(changed(ring(3), moved))


def test_a_split_that_there_is_not_is_answered_with_those_there_are() -> None:
    with pytest.raises(InputError, match="split 'striped'; it is split zig-zag or contiguous"):
        ring(4, split="striped")


def test_a_split_is_of_rings_only() -> None:
    with pytest.raises(InputError, match="takes no split; those that do: ring, ring-two-pass"):
        ring(4, "ulysses", split="contiguous")


def test_more_ranks_than_a_model_has_heads_are_refused() -> None:
    with pytest.raises(InputError, match="no model has them for 129 ranks"):
        ring(129, "ulysses")
