"""What the steps of a collective cost: latency and bytes over bandwidth, link by link.

    in a node   every rank has one port into the switch and one out of it (NVLink)
    across      every rank has a way into its node's NICs and one out of them

A step lasts as long as its slowest link: the latency of that link, and the bytes of all moves that
share it over its bandwidth. Steps follow one another, so that a collective costs their sum, and
once what it takes to launch it. With fewer NICs than ranks on a node, ranks share a NIC in turns of
their place on the node.

    4 ranks on 2 nodes, all-to-all            NIC of node 0 carries 0>2 0>3 1>2 1>3 where there is
    0 1 │ 2 3                                 one, and two of them where every rank has its own
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from serried.collective.algorithm import Collective
from serried.collective.step import CollectiveStep, Integers
from serried.errors import InputError


class LinkClass(IntEnum):
    """Says over which kind of link the slowest move of a step goes."""

    NONE = 0
    IN_NODE = 1
    ACROSS = 2


@dataclass(frozen=True)
class LinkCost:
    """Holds what a link costs: ``latency_s`` seconds a message, then ``bytes_per_s`` each way.

    Raises InputError for a latency below 0, or a bandwidth that is not above 0.
    """

    latency_s: float
    bytes_per_s: float
    name: str = ""
    """What the link is called, such as NVLink 4."""

    def __post_init__(self) -> None:
        if not 0 < self.bytes_per_s < float("inf"):
            raise InputError(
                "a bandwidth of {speed:g} GB/s moves nothing; it is above 0, such as 50",
                speed=self.bytes_per_s / 1e9,
            )
        if not 0 <= self.latency_s < float("inf"):
            raise InputError(
                "a latency of {latency:g} us cannot be; it is at least 0",
                latency=self.latency_s * 1e6,
            )


@dataclass(frozen=True)
class Network:
    """Holds the links of a cluster, alike on all nodes."""

    in_node: LinkCost
    across: LinkCost
    """What one NIC costs."""
    nics_per_node: int | None = None
    """None: one for each rank."""
    launch_s: float = 0.0
    """Seconds that a collective takes before its first step."""
    protocol: str = ""
    """How the library moves bytes over these links, where it has several ways."""

    def __post_init__(self) -> None:
        if self.nics_per_node is not None and self.nics_per_node < 1:
            raise InputError(
                "a node with {count} NICs reaches no other; it has at least 1",
                count=self.nics_per_node,
            )


@dataclass(frozen=True, eq=False)
class CollectiveCost:
    """Holds what the steps of a collective cost over one network."""

    network: Network
    step_s: NDArray[np.float64]
    """Seconds of each step, shape (steps,)."""
    link: NDArray[np.uint8]
    """The ``LinkClass`` that a step waits for, shape (steps,)."""
    step_bytes: NDArray[np.float64]
    """Bytes that all ranks together send in each step, shape (steps,)."""
    sent: NDArray[np.float64]
    """Bytes that each position sends in all steps, switches behind the ranks."""

    @property
    def time_s(self) -> float:
        """Seconds of all steps and of the launch."""
        return float(self.network.launch_s + self.step_s.sum())

    def time_by_link(self) -> dict[LinkClass, float]:
        """Returns the seconds of the steps that wait for each kind of link."""
        return {kind: float(self.step_s[self.link == kind].sum()) for kind in LinkClass}


def cost_of(collective: Collective, network: Network, size_bytes: int) -> CollectiveCost:
    """Returns what a collective over buffers of ``size_bytes`` costs.

    >>> from serried.collective.placed_group import PlacedGroup
    >>> from serried.collective.registry import make
    >>> ring = make("all-reduce", "ring", PlacedGroup.first(4))
    >>> cost = cost_of(ring, Network(LinkCost(1.0, 1.0), LinkCost(9.0, 0.1)), 8)
    >>> cost.step_s.tolist(), cost.time_s, cost.sent[:4].tolist()
    ([3.0, 3.0, 3.0, 3.0, 3.0, 3.0], 18.0, [12.0, 12.0, 12.0, 12.0])
    """
    return costs_of(collective, (network,), size_bytes)[0]


def costs_of(
    collective: Collective, networks: Sequence[Network], size_bytes: int
) -> list[CollectiveCost]:
    """Returns what a collective costs over each of several networks."""
    block_bytes = float(collective.block_bytes(size_bytes))
    first, which = _alike(collective)
    times = np.bincount(which, minlength=len(first))
    steps = [collective.steps[index] for index in first]
    found = []
    for network in networks:
        ends = _Ends(collective, network)
        uses = [ends.use(step, block_bytes) for step in steps]
        sent = sum((use.sent * n for use, n in zip(uses, times, strict=True)), np.zeros(ends.num))
        seconds = np.array([use.seconds for use in uses])
        link = np.array([use.link for use in uses], dtype=np.uint8)
        step_bytes = np.array([use.sent.sum() for use in uses])
        found.append(CollectiveCost(network, seconds[which], link[which], step_bytes[which], sent))
    return found


def _alike(collective: Collective) -> tuple[list[int], Integers]:
    """Returns the first step of each pattern, and of each step which pattern it has.

    Steps of one pattern use their links alike, so that a long ring is priced once.
    """
    known: dict[Hashable, int] = {}
    first: list[int] = []
    which = np.zeros(len(collective.steps), dtype=np.int64)
    for index in range(len(collective.steps)):
        pattern = collective.steps.pattern(index)
        if pattern is None or pattern not in known:
            known[pattern] = len(first)
            first.append(index)
        which[index] = known[pattern]
    return first, which


def step_times(collective: Collective, network: Network, size_bytes: int) -> NDArray[np.float64]:
    """Returns the seconds of each step, shape (steps,)."""
    return cost_of(collective, network, size_bytes).step_s


@dataclass(frozen=True, eq=False)
class _StepUse:
    """Holds what one step costs: its seconds, the link it waits for, bytes by sender."""

    seconds: float
    link: LinkClass
    sent: NDArray[np.float64]


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

    def use(self, step: CollectiveStep, block_bytes: float) -> _StepUse:
        """Returns what one step costs."""
        size = step.count * block_bytes
        is_across = self.node[step.source] != self.node[step.target]
        seconds, link = 0.0, LinkClass.NONE
        for ends in (step.source, step.target):
            inside = ~is_across & self.is_rank[ends]
            for kind, taken, busy, cost in (
                (LinkClass.IN_NODE, ends, inside, self.network.in_node),
                (LinkClass.ACROSS, self.nic[ends], is_across, self.network.across),
            ):
                takes = _fullest(taken[busy], size[busy], cost)
                if takes > seconds:
                    seconds, link = takes, kind
        sent = np.bincount(step.source, size, minlength=self.num).astype(np.float64)
        return _StepUse(seconds, link, sent)


def _fullest(ends: Integers, size: NDArray[np.float64], cost: LinkCost) -> float:
    """Returns the seconds that the end with the most bytes is busy; 0 where none is used."""
    if not len(ends):
        return 0.0
    return cost.latency_s + float(np.bincount(ends, size).max()) / cost.bytes_per_s
