"""Two layouts side by side: paired kinds, the first rank that parts, and what counts as same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.frameworks import Sizes, layout
from serried.mesh import Groups
from serried.mesh.compare import Comparison, Pair, compare, first_difference
from serried.mesh.groups import signature


def comparison(left: str, right: str, **sizes: Any) -> Comparison:
    world = sizes.pop("world", 16)
    return compare(layout(left, Sizes(world, **sizes)), layout(right, Sizes(world, **sizes)))


def pair(found: Comparison, kind: str) -> Pair:
    return next(each for each in found.pairs if each.left == kind)


def test_megatron_and_internlm_part_at_rank_zeros_data_group() -> None:
    found = comparison("megatron", "internlm", tp=2, pp=4)
    data = pair(found, "dp")
    assert (data.right, data.rank, data.ours, data.theirs) == ("data", 0, [[0, 2]], [[0, 8]])
    assert str(data.sentence("megatron", "internlm")) == (
        "rank 0's data group is [0 2] under megatron (dp) and [0 8] under internlm (data)"
    )
    assert not found.is_same


def test_a_kind_that_is_the_same_says_nothing() -> None:
    found = comparison("megatron", "internlm", tp=2, pp=4)
    tensor = pair(found, "tp")
    assert (tensor.right, tensor.is_same) == ("tensor", True)
    assert tensor.sentence("megatron", "internlm") is None


def test_kinds_of_other_names_are_paired_by_their_groups() -> None:
    found = comparison("megatron", "deepspeed", tp=2, pp=4)
    assert pair(found, "mp").right == "ds_model"
    assert found.is_same


def test_a_layout_is_the_same_as_itself() -> None:
    found = comparison("megatron", "megatron", tp=2, pp=2, cp=2)
    assert found.is_same and not found.alone
    assert not any(each.is_reordered for each in found.pairs)


def test_a_kind_that_one_version_lacks_is_a_difference_unless_its_groups_are_known() -> None:
    sizes = Sizes(16, tp=2)
    more = Sizes(16, tp=2, options={"num_distributed_optimizer_instances": "2"})
    found = compare(layout("megatron", sizes), layout("megatron", more))
    assert "intra_dp_cp" in [each.right for each in found.alone]
    assert not found.is_same


def test_another_world_is_never_the_same() -> None:
    found = compare(layout("fsdp", Sizes(8)), layout("fsdp", Sizes(16)))
    assert not found.is_same


@pytest.mark.parametrize(
    ("left", "right", "rank"),
    [
        ([[0, 1], [2, 3]], [[2, 3], [0, 1]], None),
        ([[0, 1], [2, 3]], [[1, 0], [3, 2]], None),
        ([[0, 2], [1, 3]], [[0, 1], [2, 3]], 0),
        ([[0, 1], [2, 3]], [[0, 1], [2], [3]], 2),
        ([[0, 1], [2, 3]], [[0, 1]], 2),
        ([[0, 1], [1, 2]], [[0, 1], [1, 2]], None),
        ([[0, 1], [1, 2]], [[0, 1], [2]], 1),
        ([[0, 1], [2, 9]], [[0, 1], [2, 3]], 2),
    ],
)
def test_the_first_rank_that_parts(
    left: list[list[int]], right: list[list[int]], rank: int | None
) -> None:
    assert first_difference(Groups.of(left), Groups.of(right), 4) == rank


@given(st.lists(st.integers(0, 3), min_size=8, max_size=8), st.randoms())
def test_the_order_of_groups_and_members_does_not_count(labels: list[int], random) -> None:  # type: ignore[no-untyped-def]
    lists = [[r for r, at in enumerate(labels) if at == label] for label in sorted(set(labels))]
    mixed = [random.sample(ranks, len(ranks)) for ranks in random.sample(lists, len(lists))]
    assert first_difference(Groups.of(lists), Groups.of(mixed), 8) is None
    assert signature(Groups.of(lists)) == signature(Groups.of(mixed))


@given(*[st.lists(st.integers(0, 2), min_size=6, max_size=6) for _ in range(2)])
def test_the_first_difference_is_what_asking_each_rank_finds(
    ours: list[int], theirs: list[int]
) -> None:
    sides = [
        [[r for r, at in enumerate(labels) if at == label] for label in sorted(set(labels))]
        for labels in (ours, theirs)
    ]

    def group(lists: list[list[int]], rank: int) -> list[int]:
        return next(ranks for ranks in lists if rank in ranks)

    expected = [rank for rank in range(6) if group(sides[0], rank) != group(sides[1], rank)]
    found = first_difference(Groups.of(sides[0]), Groups.of(sides[1]), 6)
    assert found == min(expected, default=None)
