"""Rings: every rank sends to the next one, all at once, n - 1 steps to gather or to reduce.

    all-gather, 4 ranks: in step i position p sends on block p - i, which it got a step before

    step 0    0 ─0─> 1 ─1─> 2 ─2─> 3 ─3─> 0
    step 1    0 ─3─> 1 ─0─> 2 ─1─> 3 ─2─> 0
    step 2    0 ─2─> 1 ─3─> 2 ─0─> 3 ─1─> 0

Reduce-scatter is such an all-gather backwards, and all-reduce is a reduce-scatter and an all-gather
the same way round: each rank sends (n - 1) / n S, or 2 (n - 1) / n S for an all-reduce, which no
algorithm without a switch goes below. The price is n - 1 latencies, or 2 (n - 1).

Over nodes there are as many rings as the smallest node has ranks of the group, each with a share
of the buffer: ring c enters and leaves every node by another of its ranks, as NCCL does, so that
every rank's NIC carries traffic. With one ring a single NIC of a node would carry all.

    2 nodes of 2 ranks    ring 0   0 > 1 > 2 > 3 > 0     ring 1   1 > 0 > 3 > 2 > 1

Sources: Patarasuk and Yuan, JPDC 69(2), 2009 (bandwidth optimal); NCCL 2.x, graph/rings.cc.
"""

from __future__ import annotations

import numpy as np

from serried.collective.algorithm import Collective
from serried.collective.entry import AlgorithmEntry, CollectiveRequest, others
from serried.collective.placed_group import PlacedGroup
from serried.collective.step import CollectiveStep, CollectiveSteps, Integers


def ring_all_gather(group: PlacedGroup, channels: int) -> CollectiveSteps:
    """Returns n - 1 steps over n x ``channels`` blocks; rank p begins with blocks p channels + c.

    >>> steps = ring_all_gather(PlacedGroup.first(4), 1)
    >>> [step.first.tolist() for step in steps]
    [[0, 1, 2, 3], [3, 0, 1, 2], [2, 3, 0, 1]]
    """
    return _gathered(group.orders(channels))


def ring_reduce_scatter(group: PlacedGroup, channels: int) -> CollectiveSteps:
    """Returns n - 1 steps that leave the sum of blocks p channels + c on rank p.

    >>> for step in ring_reduce_scatter(PlacedGroup.first(3), 1):
    ...     print(*zip(step.source.tolist(), step.target.tolist(), step.first.tolist()))
    (0, 1, 2) (1, 2, 0) (2, 0, 1)
    (0, 1, 1) (1, 2, 2) (2, 0, 0)
    """
    # Backwards the links turn round too, so it undoes an all-gather along the ring turned round.
    return _gathered(group.orders(channels), turned=True).backwards()


def ring_all_reduce(group: PlacedGroup, channels: int) -> CollectiveSteps:
    """Returns 2 (n - 1) steps: a reduce-scatter and then an all-gather, the same way round."""
    return ring_reduce_scatter(group, channels).then(ring_all_gather(group, channels))


def _gathered(orders: Integers, *, turned: bool = False) -> CollectiveSteps:
    """Returns an all-gather along rings, given as positions in their order: shape (channels, n).

    A ring that is ``turned`` round sends to the position before.
    """
    channels, size = orders.shape
    after = np.roll(orders, -1, axis=1)
    source, target = (after, orders) if turned else (orders, after)
    begun = source * channels + np.arange(channels)[:, None]
    places, behind = np.arange(size), 1 if turned else -1

    def step(index: int) -> CollectiveStep:
        # What a rank sends in step i began i ranks behind it along the ring.
        sent = begun[:, (places + behind * index) % size]
        return CollectiveStep.of(source.ravel(), target.ravel(), sent.ravel())

    return CollectiveSteps(size - 1, step, lambda index: "turned ring" if turned else "ring")


def _make(asked: CollectiveRequest) -> Collective:
    channels = asked.channels or asked.group.channels
    steps = {
        "all-gather": ring_all_gather,
        "reduce-scatter": ring_reduce_scatter,
        "all-reduce": ring_all_reduce,
    }[asked.name](asked.group, channels)
    return Collective(
        asked.name, "ring", asked.group, asked.group.size * channels, steps, num_channels=channels
    )


_SOURCE = "Patarasuk and Yuan, JPDC 69(2), 2009; NCCL 2.x, graph/rings.cc"

ENTRIES = (
    AlgorithmEntry(
        collective="all-reduce",
        name="ring",
        make=_make,
        about="Each block goes once round the ring to be summed, and once more to be told.",
        formula="2 (n - 1) / n S, 2 (n - 1) steps",
        share_sent=lambda made: 2 * others(made),
        num_steps=lambda made: 2 * (made.group.size - 1),
        source=_SOURCE,
        takes=("channels",),
    ),
    AlgorithmEntry(
        collective="all-gather",
        name="ring",
        make=_make,
        about="Each rank passes on the block that it got a step before.",
        formula="(n - 1) / n S, n - 1 steps",
        share_sent=others,
        num_steps=lambda made: made.group.size - 1,
        source=_SOURCE,
        takes=("channels",),
    ),
    AlgorithmEntry(
        collective="reduce-scatter",
        name="ring",
        make=_make,
        about="Each block goes round the ring, summed on the way, and ends at its owner.",
        formula="(n - 1) / n S, n - 1 steps",
        share_sent=others,
        num_steps=lambda made: made.group.size - 1,
        source=_SOURCE,
        takes=("channels",),
    ),
)
