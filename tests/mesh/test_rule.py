"""Each rule makes the groups of its picture, and says which axis groups a rank's come from."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.mesh import (
    ByFirst,
    ByLowest,
    Chain,
    Chunks,
    Ends,
    First,
    GroupKind,
    JoinRuns,
    JoinStrided,
    Leading,
    Level,
    Mesh,
    Pick,
    RankWindows,
    RingPairs,
    Rule,
    Slices,
    Strides,
)
from serried.mesh.ranges import LastAssigned, RangesFromFirst

TABLE = np.array([[0, 8, 16, 24], [1, 9, 17, 25]], dtype=np.int32)
TURNED = TABLE[::-1, ::-1]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Chunks(2), [[0, 8], [16, 24], [1, 9], [17, 25]]),
        (Chunks(3), [[0, 8, 16], [24], [1, 9, 17], [25]]),
        (Level(2, 2), [[0, 16], [8, 24], [1, 17], [9, 25]]),
        (Level(4, 1), [[0, 8, 16, 24], [1, 9, 17, 25]]),
        (First(), [[0], [1]]),
        (Ends(), [[0, 24], [1, 25]]),
        (Strides(2), [[0, 16], [8, 24], [1, 17], [9, 25]]),
        (Strides(3), [[0, 24], [8], [16], [1, 25], [9], [17]]),
        (Strides(5), [[0], [8], [16], [24], [1], [9], [17], [25]]),
        (RingPairs(), [[0, 8], [8, 16], [16, 24], [24, 0], [1, 9], [9, 17], [17, 25], [25, 1]]),
        (RingPairs(1), [[24, 0], [0, 8], [8, 16], [16, 24], [25, 1], [1, 9], [9, 17], [17, 25]]),
        (
            Chain((RingPairs(), ByFirst())),
            [[0, 8], [1, 9], [8, 16], [9, 17], [16, 24], [17, 25], [24, 0], [25, 1]],
        ),
        (Pick((0, 2, 1, 3)), [[0, 16, 8, 24], [1, 17, 9, 25]]),
        (Pick((0, 3)), [[0, 24], [1, 25]]),
        (Slices(((0, 2, 1), (2, 4, 1))), [[0, 8], [1, 9], [16, 24], [17, 25]]),
        (Slices(((0, 4, 2),)), [[0, 16], [1, 17]]),
        (RangesFromFirst(2, 3), [[0, 1, 2], [3, 4, 5], [1, 2, 3], [4, 5, 6]]),
        (JoinRuns(2), [[0, 8, 16, 24, 1, 9, 17, 25]]),
        (JoinStrided(2, 1), [[0, 8, 16, 24, 1, 9, 17, 25]]),
        (Leading(1), [[0, 8, 16, 24]]),
        (RankWindows(3), [[0, 1, 8], [9, 16, 17], [24, 25]]),
        (Chain((Pick((0, 2, 1, 3)), Chunks(2))), [[0, 16], [8, 24], [1, 17], [9, 25]]),
    ],
)
def test_a_rule_derives_its_groups(rule: Rule, expected: list[list[int]]) -> None:
    assert rule(TABLE).lists() == expected


def test_the_ends_of_a_lone_member_are_one_rank() -> None:
    assert Ends()(TABLE[:, :1]).lists() == [[0], [1]]


def test_groups_can_stand_by_their_first_or_by_their_lowest_member() -> None:
    assert ByFirst()(TURNED).lists() == [[24, 16, 8, 0], [25, 17, 9, 1]]
    mixed = np.array([[3, 0], [2, 1]], dtype=np.int32)
    assert ByFirst()(mixed).lists() == [[2, 1], [3, 0]]
    assert ByLowest()(mixed).lists() == [[3, 0], [2, 1]]


def test_hierarchical_levels_of_sixteen_ranks() -> None:
    ranks = np.arange(16, dtype=np.int32).reshape(1, 16)
    assert Level(2, 1)(ranks).lists()[:3] == [[0, 1], [2, 3], [4, 5]]
    assert Level(2, 2)(ranks).lists()[:3] == [[0, 2], [1, 3], [4, 6]]
    assert Level(4, 4)(ranks).lists()[:2] == [[0, 4, 8, 12], [1, 5, 9, 13]]


def test_strided_joins_overlap_where_the_step_does_not_fit() -> None:
    table = np.arange(8, dtype=np.int32).reshape(4, 2)
    assert JoinStrided(2, 2)(table).lists() == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert JoinStrided(2, 1)(table).lists() == [[0, 1, 2, 3], [2, 3, 4, 5]]


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 4), st.integers(1, 4))
def test_a_rank_holds_the_last_group_made_with_it(
    num_groups: int, size: int, count: int, length: int
) -> None:
    table = np.arange(num_groups * size, dtype=np.int32).reshape(num_groups, size)
    made = RangesFromFirst(count, length)(table).lists()
    held: dict[int, list[int]] = {}
    for ranks in made:
        held |= dict.fromkeys(ranks, ranks)
    in_rank_order = [held[rank] for rank in range(num_groups * size) if rank in held]
    expected = list(dict.fromkeys(map(tuple, in_rank_order)))
    assert LastAssigned(RangesFromFirst(count, length))(table).lists() == [
        list(ranks) for ranks in expected
    ]


RULES = (
    *(Chunks(2), Chunks(3), Level(2, 2), First(), Ends(), RingPairs(), Pick((1, 0))),
    *(RingPairs(1), Strides(3), Strides(2), Chain((RingPairs(), ByFirst()))),
    *(Slices(((0, 2, 1), (2, 4, 1))), JoinRuns(2), Leading(2), Leading(0), ByFirst(), ByLowest()),
    *(
        RangesFromFirst(2, 2),
        LastAssigned(RangesFromFirst(2, 3)),
        JoinStrided(2, 1),
        RankWindows(5),
    ),
    Chain((Pick((0, 2, 1, 3)), Chunks(2))),
    Chain((Leading(3), Level(2, 2))),
    Chain((JoinStrided(2, 1), Chunks(2))),
)


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("offset", [0, 7])
def test_one_ranks_groups_are_those_of_all_ranks(rule: Rule, offset: int) -> None:
    mesh = Mesh({"outer": 3, "kept": 4, "inner": 2}, offset=offset)
    kind = GroupKind("some", ("kept",), rule=rule)
    groups = kind.groups(mesh)
    for rank in range(offset + 26):
        found = [groups[number].tolist() for number in groups.containing(rank)]
        assert kind.of(rank, {"dense": mesh}) == (found if rank in mesh else [])


@given(st.integers(1, 100), st.integers(1, 40))
def test_windows_cover_the_world_in_order_and_only_the_last_is_short(world: int, size: int) -> None:
    groups = GroupKind("nettest", ("dp",), rule=RankWindows(size)).groups(Mesh({"dp": world}))
    assert groups.members.tolist() == list(range(world))
    assert len(groups) == -(-world // size)
    assert all(length == size for length in groups.sizes[:-1])
    assert [a for a, _ in pairwise(groups.bounds.tolist())] == list(range(0, world, size))
