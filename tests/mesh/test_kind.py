"""Group kinds: each rule derives the groups that its picture shows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.mesh import Chunks, Ends, First, GroupKind, Groups, Level, Mesh, Rule, Runs, Windows

TABLE = np.array([[0, 8, 16, 24], [1, 9, 17, 25]], dtype=np.int32)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Chunks(2), [[0, 8], [16, 24], [1, 9], [17, 25]]),
        (Chunks(3), [[0, 8, 16], [24], [1, 9, 17], [25]]),
        (Level(2, 2), [[0, 16], [8, 24], [1, 17], [9, 25]]),
        (Level(4, 1), [[0, 8, 16, 24], [1, 9, 17, 25]]),
        (First(), [[0], [1]]),
        (Ends(), [[0, 24], [1, 25]]),
        (Runs(2), [[0, 8, 16, 24, 1, 9, 17, 25]]),
        (Windows(3), [[0, 1, 8], [9, 16, 17], [24, 25]]),
    ],
)
def test_a_rule_derives_its_groups(rule: Rule, expected: list[list[int]]) -> None:
    assert rule(TABLE).lists() == expected


def test_the_ends_of_a_lone_member_are_one_rank() -> None:
    assert Ends()(TABLE[:, :1]).lists() == [[0], [1]]


def test_hierarchical_levels_of_sixteen_ranks() -> None:
    ranks = np.arange(16, dtype=np.int32).reshape(1, 16)
    assert Level(2, 1)(ranks).lists()[:3] == [[0, 1], [2, 3], [4, 5]]
    assert Level(2, 2)(ranks).lists()[:3] == [[0, 2], [1, 3], [4, 6]]
    assert Level(4, 4)(ranks).lists()[:2] == [[0, 4, 8, 12], [1, 5, 9, 13]]


@given(st.integers(1, 100), st.integers(1, 40))
def test_windows_cover_the_world_in_order_and_only_the_last_is_short(world: int, size: int) -> None:
    groups = GroupKind("nettest", ("dp",), rule=Windows(size)).groups(Mesh({"dp": world}))
    assert groups.members.tolist() == list(range(world))
    assert len(groups) == -(-world // size)
    assert all(length == size for length in groups.sizes[:-1])


@given(st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=6, unique=True), max_size=8))
def test_groups_give_back_the_lists_they_were_made_of(lists: list[list[int]]) -> None:
    groups = Groups.of(lists)
    assert groups.lists() == lists
    assert [groups[g].tolist() for g in range(len(groups))] == lists
    for rank in range(51):
        assert groups.containing(rank) == [g for g, ranks in enumerate(lists) if rank in ranks]


def test_the_index_names_each_ranks_first_group_or_none() -> None:
    assert Groups.of([[0, 2], [2, 3]]).index(5).tolist() == [0, -1, 0, 1, -1]
