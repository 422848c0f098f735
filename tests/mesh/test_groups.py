"""Groups keep their lists, whatever their sizes, and find the groups of a rank."""

from __future__ import annotations

from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from serried.mesh import Groups
from serried.mesh import groups as groups_module

LISTS = st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=6, unique=True), max_size=8)


@given(LISTS)
def test_groups_give_back_the_lists_they_were_made_of(lists: list[list[int]]) -> None:
    groups = Groups.of(lists)
    assert groups.lists() == lists
    assert [groups[g].tolist() for g in range(len(groups))] == lists
    for rank in range(51):
        assert groups.containing(rank) == [g for g, ranks in enumerate(lists) if rank in ranks]


@given(LISTS, LISTS)
def test_joined_groups_stand_behind_one_another(
    some: list[list[int]], others: list[list[int]]
) -> None:
    assert Groups.joined([Groups.of(some), Groups.of(others)]).lists() == some + others


def test_even_groups_are_a_table() -> None:
    table = np.array([[0, 2], [1, 3]], dtype=np.int32)
    groups = Groups.even(table.T)
    assert groups.lists() == [[0, 1], [2, 3]]
    assert groups.table.tolist() == [[0, 1], [2, 3]]
    assert groups.sizes.tolist() == [2, 2]


def test_the_index_names_each_ranks_first_group_or_none() -> None:
    assert Groups.of([[0, 2], [2, 3]]).index(5).tolist() == [0, -1, 0, 1, -1]


def test_the_index_leaves_out_ranks_beyond_the_world() -> None:
    assert Groups.of([[0, 9], [1, 8]]).index(2).tolist() == [0, 1]


@given(LISTS)
def test_parts_hold_all_groups_in_their_order(lists: list[list[int]]) -> None:
    with mock.patch.object(groups_module, "PART_RANKS", 5):
        parts = list(Groups.of(lists).in_parts())
    assert [ranks for part in parts for ranks in part] == lists
    assert all(sum(map(len, part)) < 5 + 6 for part in parts)


@given(LISTS)
def test_groups_know_whether_their_ranks_ascend(lists: list[list[int]]) -> None:
    assert Groups.of(lists).is_ascending == all(ranks == sorted(ranks) for ranks in lists)
