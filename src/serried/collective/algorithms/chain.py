"""The chain: ranks stand in a row from the root, and parts of the buffer follow one another.

    broadcast, 4 ranks, 3 chunks         scatter, 4 ranks: the farthest block goes first

    step   0   1   2   3   4             step   0   1   2
    0 > 1  c0  c1  c2                    0 > 1  b3  b2  b1
    1 > 2      c0  c1  c2                1 > 2      b3  b2
    2 > 3          c0  c1  c2            2 > 3          b3

Nobody sends more than S, however many ranks there are: with enough chunks a broadcast takes the
time of S on one link, which no algorithm goes below, after n - 2 latencies of filling the chain.
The row goes through the root's node first and then node by node, so that each node is entered once.
Backwards a broadcast is a reduce and a scatter a gather.

Source: NCCL 2.x, device/broadcast.h and reduce.h (its ring, cut at the root).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import chain

import numpy as np

from serried.collective.algorithm import Collective
from serried.collective.entry import AlgorithmEntry, CollectiveRequest, others
from serried.collective.placed_group import PlacedGroup
from serried.collective.step import CollectiveStep, CollectiveSteps, Integers

DEFAULT_CHUNKS = 8


def chain_broadcast(row: Integers, chunks: int) -> CollectiveSteps:
    """Returns n - 2 + ``chunks`` steps along ``row``, which begins with the root.

    >>> steps = chain_broadcast(np.array([0, 1, 2, 3]), 3)
    >>> [(step.source.tolist(), step.first.tolist()) for step in steps]
    [([0], [0]), ([0, 1], [1, 0]), ([0, 1, 2], [2, 1, 0]), ([1, 2], [2, 1]), ([2], [2])]
    """

    def step(index: int) -> CollectiveStep:
        place = np.arange(max(0, index - chunks + 1), min(index + 1, len(row) - 1))
        return CollectiveStep.of(row[place], row[place + 1], index - place)

    return CollectiveSteps(len(row) - 2 + chunks, step)


def chain_scatter(row: Integers) -> CollectiveSteps:
    """Returns n - 1 steps along ``row``; the blocks of those farthest away go first.

    >>> [step.first.tolist() for step in chain_scatter(np.array([0, 1, 2, 3]))]
    [[3], [2, 3], [1, 2, 3]]
    """
    last = len(row) - 1

    def step(index: int) -> CollectiveStep:
        place = np.arange(index + 1)
        return CollectiveStep.of(row[place], row[place + 1], row[last - index + place])

    return CollectiveSteps(last, step)


def row_from(group: PlacedGroup, root: int) -> Integers:
    """Returns the positions in a row from ``root``, its own node first, then node by node.

    >>> row_from(PlacedGroup.first(6, gpus_per_node=2), 3).tolist()
    [3, 2, 4, 5, 0, 1]
    """
    home = int(group.node_index[root])
    at_home = group.by_node[home]
    begin = at_home.index(root)
    elsewhere = group.by_node[home + 1 :] + group.by_node[:home]
    row = at_home[begin:] + at_home[:begin] + tuple(chain.from_iterable(elsewhere))
    return np.array(row, dtype=np.int64)


def _make(asked: CollectiveRequest) -> Collective:
    row = row_from(asked.group, asked.root)
    if asked.name in ("broadcast", "reduce"):
        blocks = asked.chunks or DEFAULT_CHUNKS
        steps = chain_broadcast(row, blocks)
        steps = steps if asked.name == "broadcast" else steps.backwards()
    else:
        blocks, steps = len(row), chain_scatter(row)
        steps = steps if asked.name == "scatter" else steps.turned()
    return Collective(asked.name, asked.algorithm, asked.group, blocks, steps, asked.root)


_SOURCE = "NCCL 2.x, device/broadcast.h and reduce.h"

ENTRIES = (
    AlgorithmEntry(
        collective="broadcast",
        name="chain",
        make=_make,
        about="Each rank passes a chunk on to the next while the chunk after it arrives.",
        formula="S, n - 2 + chunks steps",
        share_sent=lambda made: Fraction(1),
        num_steps=lambda made: made.group.size - 2 + made.num_blocks,
        source=_SOURCE,
        takes=("chunks",),
    ),
    AlgorithmEntry(
        collective="reduce",
        name="chain",
        make=_make,
        about="Each rank adds its own to the chunk that comes, and passes the sum on to the root.",
        formula="S, n - 2 + chunks steps",
        share_sent=lambda made: Fraction(1),
        num_steps=lambda made: made.group.size - 2 + made.num_blocks,
        source=_SOURCE,
        takes=("chunks",),
    ),
    AlgorithmEntry(
        collective="scatter",
        name="chain",
        make=_make,
        about="The root sends the blocks of the farthest rank first; ranks pass them on.",
        formula="(n - 1) / n S by the root, n - 1 steps",
        share_sent=others,
        num_steps=lambda made: made.group.size - 1,
        source=_SOURCE,
    ),
    AlgorithmEntry(
        collective="gather",
        name="chain",
        make=_make,
        about="Each rank passes on towards the root what comes from behind, its own first.",
        formula="(n - 1) / n S by the last before the root, n - 1 steps",
        share_sent=others,
        num_steps=lambda made: made.group.size - 1,
        source=_SOURCE,
    ),
)
