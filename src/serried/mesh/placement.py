"""Placement: which node, local rank and GPUs a rank has, nodes filled in rank order.

2 nodes x 4 GPUs, gpus_per_rank 2, world size 4
node 0: rank 0 = GPUs 0 1, rank 1 = GPUs 2 3      node 1: rank 2 = GPUs 0 1, rank 3 = GPUs 2 3
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.errors import InputError, listed
from serried.mesh.groups import Groups

MOST_GPUS = 1_000_000
"""More than any node or NVLink domain has; numbers below it stay within 32 bits."""


@dataclass(frozen=True)
class Placement:
    """Lays ``world_size`` ranks on nodes of ``gpus_per_node`` GPUs, ``gpus_per_rank`` each.

    >>> place = Placement(4, gpus_per_node=4, gpus_per_rank=2)
    >>> place.num_nodes, place.node(3), place.local_rank(3), place.gpus(3)
    (2, 1, 1, (2, 3))

    Raises InputError when a rank's GPUs would not fill a node evenly.
    """

    world_size: int
    gpus_per_node: int = 8
    gpus_per_rank: int = 1

    def __post_init__(self) -> None:
        for name, value in (
            ("gpus_per_node", self.gpus_per_node),
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
        if self.gpus_per_node % self.gpus_per_rank:
            fits = [n for n in range(1, self.gpus_per_node + 1) if self.gpus_per_node % n == 0]
            raise InputError(
                "gpus_per_rank={per_rank} does not divide {per_node} GPUs of a node; "
                "numbers that do: {fits}",
                per_rank=self.gpus_per_rank,
                per_node=self.gpus_per_node,
                fits=listed(fits),
            )

    @property
    def ranks_per_node(self) -> int:
        """How many ranks a full node holds."""
        return self.gpus_per_node // self.gpus_per_rank

    @property
    def num_nodes(self) -> int:
        """How many nodes the world touches; the last may be partly filled."""
        return -(-self.world_size // self.ranks_per_node)

    def node(self, rank: int) -> int:
        """Returns the number of the node that ``rank`` runs on."""
        return rank // self.ranks_per_node

    def local_rank(self, rank: int) -> int:
        """Returns the place of ``rank`` on its node."""
        return rank % self.ranks_per_node

    def gpus(self, rank: int) -> tuple[int, ...]:
        """Returns the numbers of the GPUs of its node that ``rank`` owns."""
        first = self.local_rank(rank) * self.gpus_per_rank
        return tuple(range(first, first + self.gpus_per_rank))

    def ranks_on(self, node: int) -> range:
        """Returns the ranks of a node."""
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
        nodes = groups.members // self.ranks_per_node
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
