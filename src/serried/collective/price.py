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

from collections.abc import Hashable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from serried.collective.algorithm import Collective
from serried.collective.step import CollectiveStep, Integers
from serried.errors import InputError
from serried.limits import COLLECTIVE_LOOKS

Floats = NDArray[np.float64]


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
    peak_bytes_per_s: float | None = None
    """What its maker says that it carries, where that is known."""

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
    name: str = ""
    """What the network is called, such as h100; "" where its links are the user's own."""
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


@dataclass(frozen=True, eq=False)
class StepLoads:
    """Holds how many blocks go through the fullest link of each kind, step by step.

    Steps of one pattern use their links alike, so that a long ring is counted once: ``which``
    names the pattern of each step, and the other columns have a row a pattern.
    """

    collective: Collective
    nics_per_node: int | None
    which: Integers
    in_node: Floats
    """Blocks through the fullest port of a rank, shape (patterns,); 0 where none is used."""
    across: Floats
    """Blocks through the fullest NIC, shape (patterns,)."""
    moved: Floats
    """Blocks that all ranks send together, shape (patterns,)."""
    sent: Floats
    """Blocks that each position sends in all steps, switches behind the ranks."""

    def time_s(self, network: Network, size_bytes: int) -> float:
        """Returns the seconds of all steps and of the launch."""
        seconds, _ = self._patterns(network, size_bytes)
        return float(network.launch_s + seconds @ self._times)

    def cost(self, network: Network, size_bytes: int) -> CollectiveCost:
        """Returns what a collective over buffers of ``size_bytes`` costs."""
        block_bytes = float(self.collective.block_bytes(size_bytes))
        seconds, link = self._patterns(network, size_bytes)
        return CollectiveCost(
            network,
            seconds[self.which],
            link[self.which],
            (self.moved * block_bytes)[self.which],
            self.sent * block_bytes,
        )

    @cached_property
    def _times(self) -> Integers:
        return np.bincount(self.which, minlength=len(self.in_node))

    def _patterns(self, network: Network, size_bytes: int) -> tuple[Floats, NDArray[np.uint8]]:
        """Returns the seconds of a step of each pattern, and the kind of link it waits for."""
        block_bytes = float(self.collective.block_bytes(size_bytes))
        inside, across = (
            np.where(blocks > 0, cost.latency_s + blocks * block_bytes / cost.bytes_per_s, 0.0)
            for blocks, cost in (
                (self.in_node, network.in_node),
                (self.across, network.across),
            )
        )
        kinds = np.where(across > inside, LinkClass.ACROSS, LinkClass.IN_NODE)
        link = np.where((inside == 0) & (across == 0), LinkClass.NONE, kinds)
        return np.maximum(inside, across), link.astype(np.uint8)


def cost_of(collective: Collective, network: Network, size_bytes: int) -> CollectiveCost:
    """Returns what a collective over buffers of ``size_bytes`` costs.

    >>> from serried.collective.placed_group import PlacedGroup
    >>> from serried.collective.registry import make
    >>> ring = make("all-reduce", "ring", PlacedGroup.first(4))
    >>> cost = cost_of(ring, Network(LinkCost(1.0, 1.0), LinkCost(9.0, 0.1)), 8)
    >>> cost.step_s.tolist(), cost.time_s, cost.sent[:4].tolist()
    ([3.0, 3.0, 3.0, 3.0, 3.0, 3.0], 18.0, [12.0, 12.0, 12.0, 12.0])
    """
    return loads_of(collective, network.nics_per_node).cost(network, size_bytes)


def loads_of(collective: Collective, nics_per_node: int | None = None) -> StepLoads:
    """Returns how many blocks go through the links of a collective, whatever their size.

    Raises InputError where more of its steps differ than are counted.
    """
    first, which = _alike(collective)
    if _looks(collective, len(first)) > COLLECTIVE_LOOKS.most:
        raise _uncountable(collective, len(first))
    ends = _Ends(collective, nics_per_node)
    times = np.bincount(which, minlength=len(first))
    sent = np.zeros(ends.num)
    rows = np.zeros((3, len(first)))
    for place, index in enumerate(first):
        step = collective.steps[index]
        by_sender = np.bincount(step.source, step.count, minlength=ends.num)
        sent += by_sender * times[place]
        rows[:, place] = (*ends.fullest(step), by_sender.sum())
    return StepLoads(collective, nics_per_node, which, rows[0], rows[1], rows[2], sent)


def is_countable(collective: Collective) -> bool:
    """Tells whether few enough steps of a collective differ for ``loads_of`` to count them."""
    return _looks(collective, len(_alike(collective)[0])) <= COLLECTIVE_LOOKS.most


def _looks(collective: Collective, unlike: int) -> int:
    return collective.group.size * unlike


def _uncountable(collective: Collective, unlike: int) -> InputError:
    size = collective.group.size
    # Steps grow with ranks, so that what is counted grows with their square.
    fewer = size * (COLLECTIVE_LOOKS.most / _looks(collective, unlike)) ** 0.5
    return InputError(
        "{collective} by {algorithm} over {ranks:,} ranks has {steps:,} steps that differ, which "
        "is more than serried counts; ask for fewer ranks, such as {fewer:,}",
        collective=collective.name,
        algorithm=collective.algorithm,
        ranks=size,
        steps=unlike,
        fewer=1 << int(fewer).bit_length() - 1,
    )


def _alike(collective: Collective) -> tuple[list[int], Integers]:
    """Returns the first step of each pattern, and of each step which pattern it has."""
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


class _Ends:
    """Numbers the ends of links, so that blocks that share one are added up."""

    def __init__(self, collective: Collective, nics_per_node: int | None) -> None:
        group = collective.group
        self.num = group.size + group.num_nodes
        # A switch is on its node, and is no end that could be full: its ports are its ranks'.
        self.node = np.concatenate([group.node_index, np.arange(group.num_nodes)])
        self.is_rank = np.arange(self.num) < group.size
        place = np.zeros(self.num, dtype=np.int64)
        for positions in group.by_node:
            place[list(positions)] = np.arange(len(positions))
        nics = nics_per_node or max(map(len, group.by_node))
        self.nic = self.node * nics + place % nics

    def fullest(self, step: CollectiveStep) -> tuple[float, float]:
        """Returns the blocks through the fullest port in a node, and through the fullest NIC."""
        is_across = self.node[step.source] != self.node[step.target]
        inside = across = 0.0
        for ends in (step.source, step.target):
            within = ~is_across & self.is_rank[ends]
            inside = max(inside, _most(ends[within], step.count[within]))
            across = max(across, _most(self.nic[ends[is_across]], step.count[is_across]))
        return inside, across


def _most(ends: Integers, blocks: Integers) -> float:
    """Returns the blocks of the end that has most; 0 where none is used."""
    return float(np.bincount(ends, blocks).max()) if len(ends) else 0.0
