"""Slow ends, links and groups are named by comparing like with like; noise names nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray

from serried.runtime.check.report import GroupTimes, Link, Seat
from serried.runtime.check.slow import slow_groups, slow_links, slow_ones

SIZES = (4096, 1 << 20)
BASE_NS = np.array([50_000.0, 2_000_000.0])
ROUNDS = 4


def seats(num_nodes: int, per_node: int) -> list[Seat]:
    ranks = range(num_nodes * per_node)
    return [Seat(rank, rank // per_node, f"host{rank // per_node}", 1, "cpu") for rank in ranks]


def links(
    num_nodes: int,
    *,
    per_node: int = 1,
    seed: int = 0,
    noise: float = 0.1,
    slow: Callable[[Seat, Seat], NDArray[np.float64] | float] = lambda a, b: 1.0,
) -> list[Link]:
    """Returns every link, with lognormal noise and slowed by ``slow(source, target)``."""
    random = np.random.default_rng(seed)
    made = []
    for a, b in permutations(seats(num_nodes, per_node), 2):
        if a.node == b.node or a.rank % per_node == b.rank % per_node:
            faster = 1.0 if a.node != b.node else 0.1
            times = BASE_NS * faster * np.exp(noise * random.standard_normal((ROUNDS, 2)))
            made.append(Link(a.rank, b.rank, a.node != b.node, times * slow(a, b)))
    return made


def named(num_nodes: int, per_node: int, made: list[Link]) -> Iterator[tuple[str, tuple[int, ...]]]:
    for finding in slow_links(made, seats(num_nodes, per_node), SIZES):
        yield finding.kind, finding.ranks


LARGE = np.array([1.0, 8.0])


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("num_nodes", [2, 3, 4, 8])
@pytest.mark.parametrize("noise", [0.05, 0.2, 0.5])
def test_a_healthy_network_names_nobody(seed: int, num_nodes: int, noise: float) -> None:
    made = links(num_nodes, per_node=2, seed=seed, noise=noise)
    assert list(named(num_nodes, 2, made)) == []


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("num_nodes", [3, 4, 9])
def test_a_node_with_a_slow_card_is_named_alone(seed: int, num_nodes: int) -> None:
    bad = seed % num_nodes
    made = links(
        num_nodes,
        per_node=2,
        seed=seed,
        slow=lambda a, b: LARGE if a.node != b.node and bad in (a.node, b.node) else 1.0,
    )
    assert list(named(num_nodes, 2, made)) == [("slow-node", (2 * bad, 2 * bad + 1))]


def test_a_node_says_what_is_slow_and_by_how_much() -> None:
    made = links(4, noise=0.01, slow=lambda a, b: LARGE if a.node == 2 else 1.0)
    (finding,) = slow_links(made, seats(4, 1), SIZES)
    assert str(finding) == (
        "node 2 (host2) sends 8.0 x slower than its like, of 4 compared, in every round, with "
        "messages of 1.05 MB; look at its network card, cable and switch port, and at what else "
        "runs there"
    )


def test_a_node_that_answers_late_is_named_for_small_messages_too() -> None:
    late = np.array([40.0, 2.5])
    made = links(4, noise=0.01, slow=lambda a, b: late if 1 in (a.node, b.node) else 1.0)
    (finding,) = slow_links(made, seats(4, 1), SIZES)
    assert "node 1 (host1) sends and receives 39" in str(finding) or "40" in str(finding)
    assert "messages of 4.10 kB, 1.05 MB" in str(finding)


@pytest.mark.parametrize("num_nodes", [3, 5])
def test_one_path_between_two_nodes_is_named_as_a_link(num_nodes: int) -> None:
    made = links(num_nodes, slow=lambda a, b: LARGE if (a.node, b.node) == (0, 2) else 1.0)
    (finding,) = slow_links(made, seats(num_nodes, 1), SIZES)
    assert finding.kind == "slow-link"
    assert str(finding).startswith("messages from node 0 (host0) to node 2 (host2) take ")


def test_of_two_nodes_the_slower_direction_is_named() -> None:
    made = links(2, per_node=2, slow=lambda a, b: LARGE if (a.node, b.node) == (1, 0) else 1.0)
    (finding,) = slow_links(made, seats(2, 2), SIZES)
    assert str(finding).startswith("messages from node 1 (host1) to node 0 (host0) take ")


def test_a_slow_card_of_one_rank_is_told_from_its_node() -> None:
    made = links(
        4,
        per_node=2,
        slow=lambda a, b: LARGE if a.node != b.node and 5 in (a.rank, b.rank) else 1.0,
    )
    assert list(named(4, 2, made)) == [("slow-rank", (5,))]


def test_a_rank_that_is_slow_inside_its_node_is_named() -> None:
    made = links(
        1, per_node=8, slow=lambda a, b: LARGE if 3 in (a.rank, b.rank) else 1.0, noise=0.05
    )
    (finding,) = slow_links(made, seats(1, 8), SIZES)
    assert str(finding).startswith("rank 3 on node 0 sends and receives ")


def test_links_inside_a_node_are_not_compared_with_those_between_nodes() -> None:
    assert list(named(3, 4, links(3, per_node=4))) == []


def test_slow_in_all_rounds_but_one_is_not_slow() -> None:
    even = np.tile(BASE_NS, (ROUNDS, 1))
    now_and_then = even * 9
    now_and_then[2] = BASE_NS
    assert slow_ones({0: even, 1: even, 2: even, 3: now_and_then}) == {}


def test_slow_at_a_middle_size_only_is_not_slow() -> None:
    even = np.full((ROUNDS, 3), 1e6)
    assert slow_ones({0: even, 1: even, 2: even, 3: even * [1, 9, 1]}) == {}


# ------------------------------------------------------------------------------- groups


def times(operation: str, factors: list[float]) -> GroupTimes:
    table = np.outer(factors, np.full(ROUNDS, 1e6))
    count = len(factors)
    return GroupTimes(
        "dp", operation, 1 << 20, (2,) * count, (1,) * count, table, table[:, 0], None
    )


MEMBERS = {"dp": [[0, 4], [1, 5], [2, 6], [3, 7]]}


def test_a_group_that_is_slow_in_every_operation_is_named() -> None:
    timings = [times("all_reduce", [1, 1, 5, 1.1]), times("sendrecv", [1, 1.2, 4, 1])]
    (finding,) = slow_groups(timings, MEMBERS)
    assert (finding.ranks, finding.groups) == ((2, 6), ("dp",))
    assert str(finding) == (
        "dp group 2 [2 6] takes 5.0 x as long as groups like it, of 4 compared, in every "
        "operation and round"
    )


def test_a_group_that_is_slow_in_one_operation_is_not_named() -> None:
    timings = [times("all_reduce", [1, 1, 5, 1]), times("sendrecv", [1, 1, 1, 1])]
    assert slow_groups(timings, MEMBERS) == []
