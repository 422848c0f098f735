"""PlacedGroup: the ranks of one process group in their order, and the node of each.

positions   0  1  2  3  4  5  6  7      algorithms speak of positions,
ranks       0  2  4  6  8 10 12 14      answers speak of ranks
nodes       0  0  0  0  1  1  1  1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from serried.errors import InputError
from serried.mesh import Placement


@dataclass(frozen=True)
class PlacedGroup:
    """Holds the ranks of a group and the node of each, by position in the group.

    >>> group = PlacedGroup.of([0, 2, 4, 6], Placement(8, gpus_per_node=4))
    >>> group.size, group.nodes, group.rails
    (4, (0, 0, 1, 1), 2)
    """

    ranks: tuple[int, ...]
    nodes: tuple[int, ...]

    @classmethod
    def of(cls, ranks: Sequence[int], placement: Placement) -> PlacedGroup:
        """Returns the group of ``ranks`` on the nodes of ``placement``."""
        return cls(tuple(ranks), tuple(placement.node(rank) for rank in ranks))

    @classmethod
    def first(cls, num_ranks: int, gpus_per_node: int = 8) -> PlacedGroup:
        """Returns ranks 0 to ``num_ranks`` - 1 on nodes that they fill one after another."""
        return cls.of(range(num_ranks), Placement(num_ranks, gpus_per_node))

    def __post_init__(self) -> None:
        if not self.ranks:
            raise InputError("a group without ranks has nothing to send; name at least one rank")
        if len(set(self.ranks)) < len(self.ranks):
            raise InputError("a rank stands twice in the group; each rank stands in it once")

    @property
    def size(self) -> int:
        """How many ranks the group has."""
        return len(self.ranks)

    @cached_property
    def node_index(self) -> NDArray[np.int64]:
        """The node of each position, counted from 0 in the order of first visits: shape (size,)."""
        numbers = {node: index for index, node in enumerate(dict.fromkeys(self.nodes))}
        return np.array([numbers[node] for node in self.nodes], dtype=np.int64)

    @cached_property
    def by_node(self) -> tuple[tuple[int, ...], ...]:
        """Positions of each node, nodes in the order of first visits."""
        held: dict[int, list[int]] = {}
        for position, node in enumerate(self.nodes):
            held.setdefault(node, []).append(position)
        return tuple(map(tuple, held.values()))

    @property
    def num_nodes(self) -> int:
        """How many nodes the group spreads over."""
        return len(self.by_node)

    @cached_property
    def rails(self) -> int:
        """Ranks of the group on the node that has fewest: so many paths between nodes are whole."""
        return min(map(len, self.by_node))

    @property
    def is_even(self) -> bool:
        """Whether every node holds as many ranks of the group."""
        return len(set(map(len, self.by_node))) == 1

    @property
    def channels(self) -> int:
        """Rings or trees that together use every NIC: one on a node, else one for each rail.

        >>> PlacedGroup.first(8).channels, PlacedGroup.first(12).channels
        (1, 4)
        """
        return 1 if self.num_nodes == 1 else self.rails

    def orders(self, channels: int) -> NDArray[np.int64]:
        """Returns positions node by node, once for each channel: shape (channels, size).

        Channel c begins each node at place c, so that it leaves the node by another NIC.

        >>> PlacedGroup.first(4, gpus_per_node=2).orders(2).tolist()
        [[0, 1, 2, 3], [1, 0, 3, 2]]
        """
        # One array of all nodes where they are alike, for there may be tens of thousands.
        alike = [np.array(self.by_node)] if self.is_even else []
        nodes = alike or [np.array([node]) for node in self.by_node]
        orders = [
            np.concatenate([np.roll(node, -channel, axis=1).ravel() for node in nodes])
            for channel in range(channels)
        ]
        return np.stack(orders).astype(np.int64)
