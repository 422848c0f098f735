"""What the steps of a collective cost: latency and bytes over bandwidth, link by link.

    in a node   every rank has one port into the switch and one out of it (NVLink)
    across      every rank has a way into its node's NICs and one out of them

A step lasts as long as its slowest link: the latency of that link, and the bytes of all moves that
share it over its bandwidth. Steps follow one another, so that a collective costs their sum. With
fewer NICs than ranks on a node, ranks share a NIC in turns of their place on the node.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.collective.algorithm import Collective
from serried.collective.step import CollectiveStep, Integers


@dataclass(frozen=True)
class LinkCost:
    """Holds what a link costs: ``latency_s`` seconds a message, then ``bytes_per_s`` each way."""

    latency_s: float
    bytes_per_s: float


@dataclass(frozen=True)
class Network:
    """Holds the links of a cluster, alike on all nodes."""

    in_node: LinkCost
    across: LinkCost
    """What one NIC costs."""
    nics_per_node: int | None = None
    """None: one for each rank."""


def step_times(collective: Collective, network: Network, size_bytes: int) -> NDArray[np.float64]:
    """Returns the seconds of each step, shape (steps,).

    >>> from serried.collective.placed_group import PlacedGroup
    >>> from serried.collective.registry import make
    >>> ring = make("all-reduce", "ring", PlacedGroup.first(4))
    >>> times = step_times(ring, Network(LinkCost(1.0, 1.0), LinkCost(9.0, 0.1)), 8)
    >>> times.tolist()
    [3.0, 3.0, 3.0, 3.0, 3.0, 3.0]
    """
    block_bytes = float(collective.block_bytes(size_bytes))
    ends = _Ends(collective, network)
    known: dict[Hashable, float] = {}
    times = np.zeros(len(collective.steps))
    steps = collective.steps
    for number in range(len(steps)):
        # Steps of one pattern use their links alike, so that a long ring is priced once.
        pattern = steps.pattern(number)
        if pattern is None or pattern not in known:
            known[pattern] = ends.time(steps[number], block_bytes)
        times[number] = known[pattern]
    return times


class _Ends:
    """Numbers the ends of links, so that bytes that share one are added up."""

    def __init__(self, collective: Collective, network: Network) -> None:
        group = collective.group
        self.network = network
        self.num = group.size + group.num_nodes
        # A switch is on its node, and is no end that could be full: its ports are its ranks'.
        self.node = np.concatenate([group.node_index, np.arange(group.num_nodes)])
        self.is_rank = np.arange(self.num) < group.size
        place = np.zeros(self.num, dtype=np.int64)
        for positions in group.by_node:
            place[list(positions)] = np.arange(len(positions))
        most = max(map(len, group.by_node))
        nics = network.nics_per_node or most
        self.nic = self.node * nics + place % nics

    def time(self, step: CollectiveStep, block_bytes: float) -> float:
        """Returns the seconds of one step."""
        size = step.count * block_bytes
        is_across = self.node[step.source] != self.node[step.target]
        slowest = 0.0
        for ends in (step.source, step.target):
            inside = ~is_across & self.is_rank[ends]
            slowest = max(
                slowest,
                _fullest(ends[inside], size[inside], self.network.in_node),
                _fullest(self.nic[ends[is_across]], size[is_across], self.network.across),
            )
        return slowest


def _fullest(ends: Integers, size: NDArray[np.float64], cost: LinkCost) -> float:
    """Returns the seconds that the end with the most bytes is busy; 0 where none is used."""
    if not len(ends):
        return 0.0
    return cost.latency_s + float(np.bincount(ends, size).max()) / cost.bytes_per_s
