"""Placement: which node, local rank and GPUs a rank has, nodes filled in rank order.

2 nodes x 4 GPUs, gpus_per_rank 2, world size 4
node 0: rank 0 = GPUs 0 1, rank 1 = GPUs 2 3      node 1: rank 2 = GPUs 0 1, rank 3 = GPUs 2 3

Nodes may differ, as those of a hostfile do: 5 ranks on nodes of 4 and 1 GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from serried.errors import InputError, listed
from serried.mesh.groups import Groups
from serried.mesh.sizes import MOST_GPUS

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Placement:
    """Lays ``world_size`` ranks on nodes of ``gpus_per_node`` GPUs, ``gpus_per_rank`` each.

    >>> place = Placement(4, gpus_per_node=4, gpus_per_rank=2)
    >>> place.num_nodes, place.node(3), place.local_rank(3), place.gpus(3)
    (2, 1, 1, (2, 3))

    Where nodes differ, ``node_gpus`` holds the GPUs of each and ``gpus_per_node`` those of the
    largest; ``on`` makes either. Raises InputError when a rank's GPUs would not fill a node evenly.
    """

    world_size: int
    gpus_per_node: int = 8
    gpus_per_rank: int = 1
    node_gpus: tuple[int, ...] = ()

    @classmethod
    def on(cls, world_size: int, gpus: int | Sequence[int], gpus_per_rank: int = 1) -> Placement:
        """Lays ranks on nodes of ``gpus`` GPUs: of so many each, or of one number per node.

        >>> place = Placement.on(5, (4, 1))
        >>> place.num_nodes, place.node(4), place.local_rank(4), list(place.ranks_on(0))
        (2, 1, 0, [0, 1, 2, 3])

        Raises InputError where the nodes that are named do not hold the world.
        """
        if isinstance(gpus, int):
            return cls(world_size, gpus, gpus_per_rank)
        if len(gpus) == 1:
            return cls(world_size, gpus[0], gpus_per_rank)
        # A list of equal numbers is the same placement as that one number, and is kept as such.
        differ = len(set(gpus)) > 1
        place = cls(world_size, max(gpus), gpus_per_rank, tuple(gpus) if differ else ())
        if sum(gpus) < world_size * gpus_per_rank:
            raise InputError(
                "nodes of {gpus} GPUs hold {ranks:,} of {world:,} ranks; name more nodes, or one "
                "number of GPUs for all",
                gpus=listed(gpus),
                ranks=sum(gpus) // gpus_per_rank,
                world=world_size,
            )
        return place

    def __post_init__(self) -> None:
        for name, value in (
            *(
                ("gpus_per_node", gpus)
                for gpus in dict.fromkeys((*self.node_gpus, self.gpus_per_node))
            ),
            ("gpus_per_rank", self.gpus_per_rank),
        ):
            if value < 1:
                raise InputError("{name}={value}; it is at least 1", name=name, value=value)
            if value > MOST_GPUS:
                raise InputError(
                    "{name}={value} is more than a node has; it is at most {most}",
                    name=name,
                    value=value,
                    most=MOST_GPUS,
                )
        # A rank's GPUs lie on one node, so their number divides the GPUs of every node.
        shared = gcd(self.gpus_per_node, *self.node_gpus)
        if shared % self.gpus_per_rank:
            fits = [n for n in range(1, shared + 1) if shared % n == 0]
            raise InputError(
                "gpus_per_rank={per_rank} does not divide {per_node} GPUs of a node; "
                "numbers that do: {fits}",
                per_rank=self.gpus_per_rank,
                per_node=listed(self.node_gpus or [self.gpus_per_node]),
                fits=listed(fits),
            )

    @property
    def ranks_per_node(self) -> int:
        """How many ranks every full node holds; raises InputError where nodes differ."""
        self.require_alike()
        return self.gpus_per_node // self.gpus_per_rank

    def require_alike(self) -> None:
        """Raises InputError where nodes differ."""
        if self.node_gpus:
            raise InputError(
                "nodes of {gpus} GPUs hold different numbers of ranks, and here each node needs "
                "the same; give one number as --gpus-per-node",
                gpus=listed(self.node_gpus),
            )

    @property
    def ranks_on_largest(self) -> int:
        """How many ranks the largest node holds."""
        return self.gpus_per_node // self.gpus_per_rank

    @property
    def ranks_on_every(self) -> int:
        """The largest number of ranks that divides those of every node."""
        return gcd(self.gpus_per_node, *self.node_gpus) // self.gpus_per_rank

    @property
    def widths(self) -> tuple[int, ...]:
        """GPUs of each node that the world touches, where nodes differ; else empty."""
        return self.node_gpus[: self.num_nodes]

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """The first rank of each node, and the one after the last: shape (nodes + 1,)."""
        return np.cumsum([0, *self.node_gpus]) // self.gpus_per_rank

    @property
    def num_nodes(self) -> int:
        """How many nodes the world touches; the last may be partly filled."""
        if self.node_gpus:
            return self.node(self.world_size - 1) + 1
        return -(-self.world_size // self.ranks_per_node)

    def node(self, rank: int) -> int:
        """Returns the number of the node that ``rank`` runs on."""
        if self.node_gpus:
            return int(np.searchsorted(self._starts, rank, side="right")) - 1
        return rank // self.ranks_per_node

    def local_rank(self, rank: int) -> int:
        """Returns the place of ``rank`` on its node."""
        if self.node_gpus:
            return rank - int(self._starts[self.node(rank)])
        return rank % self.ranks_per_node

    def nodes(self, ranks: NDArray[np.int32]) -> NDArray[np.int32]:
        """Returns the node of each of ``ranks``; those beyond the nodes are on one more."""
        if self.node_gpus:
            found = np.searchsorted(self._starts, ranks, side="right") - 1
            return found.astype(np.int32)
        return ranks // np.int32(self.ranks_per_node)

    def local_ranks(self, ranks: NDArray[np.int32]) -> NDArray[np.int32]:
        """Returns the place of each of ``ranks`` on its node."""
        if self.node_gpus:
            return (ranks - self._starts[self.nodes(ranks)]).astype(np.int32)
        return ranks % np.int32(self.ranks_per_node)

    def gpus(self, rank: int) -> tuple[int, ...]:
        """Returns the numbers of the GPUs of its node that ``rank`` owns."""
        first = self.local_rank(rank) * self.gpus_per_rank
        return tuple(range(first, first + self.gpus_per_rank))

    def ranks_on(self, node: int) -> range:
        """Returns the ranks of a node."""
        if self.node_gpus:
            first, end = map(int, self._starts[node : node + 2])
            return range(first, min(end, self.world_size))
        first = node * self.ranks_per_node
        return range(first, min(first + self.ranks_per_node, self.world_size))

    def nodes_of(self, groups: Groups) -> NDArray[np.int64]:
        """Returns over how many nodes each group spreads, shape (groups,).

        A group on one node talks over NVLink alone.

        >>> Placement(16).nodes_of(Groups.of([[0, 1], [7, 8]])).tolist()
        [1, 2]
        """
        if not len(groups.members):
            return np.zeros(len(groups), dtype=np.int64)
        nodes = self.nodes(groups.members)
        is_new = np.empty(len(nodes), dtype=np.bool_)
        steps = np.diff(nodes)
        is_new[1:] = steps != 0
        is_new[groups.bounds[:-1]] = True
        falls = steps < 0
        falls[groups.bounds[1:-1] - 1] = False
        if falls.any():
            is_new = _first_visits(nodes, groups)
        return np.add.reduceat(is_new, groups.bounds[:-1], dtype=np.int64)


def _first_visits(nodes: NDArray[np.int32], groups: Groups) -> NDArray[np.bool_]:
    """Returns True for each node of a group, False for its repeats, groups in any order."""
    owner = np.repeat(np.arange(len(groups)), groups.sizes)
    order = np.lexsort((nodes, owner))
    is_new = np.ones(len(nodes), dtype=np.bool_)
    is_new[1:] = (np.diff(nodes[order]) != 0) | (np.diff(owner) != 0)
    return is_new
