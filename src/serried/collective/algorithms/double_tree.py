"""The double binary tree: two trees share the buffer, and a rank that is inner in one ends other.

    8 ranks, tree 0          0          tree 1: the mirror of it          7
                      ┌──────4                                            3──────┐
                   ┌──2──┐ ┌─6─┐                                        ┌─1─┐ ┌──5──┐
                   1     3 5   7                                        0   2 4     6

    step     0    1    2    3    4    5    6         chunks go up, each rank adding its own,
    chunk 0  up   up   up  down down down            and come down as sums; each follows the
    chunk 1       up   up   up  down down down       one before it by a step

Either tree reduces and then broadcasts its half of the buffer. An inner rank sends its half once
up and twice down, and as a leaf of the other tree once up: 2 S in all, near the ring's
2 (n - 1) / n S, but after 2 log2 n latencies instead of 2 (n - 1).

Inner ranks of tree 0 are even where n is even, with rank 0 above the others, and tree 1 is its
mirror. Where n is odd they are odd, and tree 1 is turned by one place, so that no rank is inner
twice. Subtrees are full powers of two from the left, and so lie inside nodes as far as they fit.

Over nodes there are as many pairs of trees as the smallest node has ranks of the group, each with a
share of the buffer and each turned by one place on every node, as with rings: so every NIC carries
traffic, and a rank is near the root of one pair and a leaf of others.

Sources: Sanders, Speck and Träff, Parallel Computing 35(12), 2009 (two trees); NCCL 2.4, graph/
trees.cc and "Massively Scale Your Deep Learning Training with NCCL 2.4".
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from serried.collective.algorithm import Collective
from serried.collective.entry import AlgorithmEntry, CollectiveRequest
from serried.collective.placed_group import PlacedGroup
from serried.collective.step import CollectiveStep, CollectiveSteps, Integers

DEFAULT_CHUNKS = 8


def two_trees(num_ranks: int) -> Integers:
    """Returns the parent of each rank in either tree, -1 for a root: shape (2, ranks).

    >>> two_trees(8).tolist()
    [[-1, 2, 4, 2, 0, 6, 4, 6], [1, 3, 1, 7, 5, 3, 5, -1]]
    >>> two_trees(5).tolist()
    [[1, 3, 1, -1, 3], [4, 2, 4, 2, -1]]
    """
    is_even = num_ranks % 2 == 0
    first = np.full(num_ranks, -1, dtype=np.int64)
    # A part is a range of ranks, odd in number, and the rank above it.
    parts = [(1, num_ranks, 0)] if is_even else [(0, num_ranks, -1)]
    while parts:
        low, high, above = parts.pop()
        left = 2 ** ((high - low - 1).bit_length() - 1) - 1 if high - low > 1 else 0
        inner = low + left
        first[inner] = above
        if left:
            parts += [(low, inner, inner), (inner + 1, high, inner)]
    ranks = np.arange(num_ranks)
    second = np.full(num_ranks, -1, dtype=np.int64)
    twin = num_ranks - 1 - ranks if is_even else (ranks + 1) % num_ranks
    second[twin] = np.where(first < 0, -1, twin[first])
    return np.stack([first, second])


def double_tree_all_reduce(group: PlacedGroup, chunks: int, channels: int = 1) -> CollectiveSteps:
    """Returns the steps over ``channels`` x 2 x ``chunks`` blocks: so many for each tree.

    >>> for step in double_tree_all_reduce(PlacedGroup.first(4), 1):
    ...     print(*zip(step.source.tolist(), step.target.tolist(), step.first.tolist()))
    (1, 2, 0) (3, 2, 0) (0, 1, 1) (2, 1, 1)
    (2, 0, 0) (1, 3, 1)
    (0, 2, 0) (3, 1, 1)
    (2, 1, 0) (2, 3, 0) (1, 0, 1) (1, 2, 1)
    """
    orders = group.orders(channels)
    trees = two_trees(group.size)
    channel, tree, rank = np.nonzero(np.broadcast_to(trees >= 0, (channels, *trees.shape)))
    parent = trees[tree, rank]
    height = _heights(trees)
    highest = int(height.max())
    # A rank sends a chunk up once its children's have come, and gets it back after the root.
    up = height[tree, rank]
    down = highest + _depths(trees)[tree, parent]
    low, high = orders[channel, rank], orders[channel, parent]
    block = (2 * channel + tree) * chunks

    def step(index: int) -> CollectiveStep:
        rises, falls = ((at <= index) & (index < at + chunks) for at in (up, down))
        return CollectiveStep.of(
            np.concatenate([low[rises], high[falls]]),
            np.concatenate([high[rises], low[falls]]),
            np.concatenate([(block + index - at)[on] for at, on in ((up, rises), (down, falls))]),
            reduces=np.repeat([True, False], [rises.sum(), falls.sum()]),
        )

    levels = 2 * highest

    def active(index: int) -> tuple[str, int, int]:
        return "double tree", max(0, index - chunks + 1), min(index, levels - 1)

    return CollectiveSteps(levels + chunks - 1, step, active)


def _depths(trees: Integers) -> Integers:
    """Returns how many ranks are above each one, shape (2, ranks)."""
    depth, above = np.zeros_like(trees), trees.copy()
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, np.take_along_axis(trees, above, axis=1), -1)
    return depth


def _heights(trees: Integers) -> Integers:
    """Returns how far each rank is above the lowest of its subtree, shape (2, ranks)."""
    height, depth = np.zeros_like(trees), _depths(trees)
    for level in range(int(depth.max()), 0, -1):
        tree, rank = np.nonzero(depth == level)
        np.maximum.at(height, (tree, trees[tree, rank]), height[tree, rank] + 1)
    return height


def _make(asked: CollectiveRequest) -> Collective:
    chunks, channels = asked.chunks or DEFAULT_CHUNKS, asked.channels or asked.group.channels
    steps = double_tree_all_reduce(asked.group, chunks, channels)
    blocks = channels * 2 * chunks
    return Collective(
        asked.name, asked.algorithm, asked.group, blocks, steps, num_channels=channels
    )


def _share_sent(made: Collective) -> Fraction:
    """Returns the most edges that a rank has in all trees: each carries its share once from it."""
    group, channels = made.group, made.num_channels
    edges = np.zeros(group.size, dtype=np.int64)
    for tree in two_trees(group.size):
        child = np.flatnonzero(tree >= 0)
        np.add.at(edges, child, 1)
        np.add.at(edges, tree[child], 1)
    of_rank = np.zeros(group.size, dtype=np.int64)
    for order in group.orders(channels):
        of_rank[order] += edges
    return Fraction(int(of_rank.max()), 2 * channels)


def _num_steps(made: Collective) -> int:
    n, chunks = made.group.size, made.num_blocks // (2 * made.num_channels)
    return 2 * ((n - 1).bit_length() - n % 2) + chunks - 1


ENTRIES = (
    AlgorithmEntry(
        collective="all-reduce",
        name="tree",
        make=_make,
        about="Two binary trees sum one half of the buffer each, and tell it back down.",
        formula="2 S at most, 2 ⌈log2 n⌉ + chunks - 1 steps, two fewer where n is odd",
        share_sent=_share_sent,
        num_steps=_num_steps,
        source="Sanders, Speck and Träff, Parallel Computing 35(12), 2009; NCCL 2.4",
        takes=("channels", "chunks"),
    ),
)
