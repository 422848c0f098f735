"""Places of a picture: one for each rank of a small group, else for its nodes, or runs of nodes.

    64 ranks or fewer     0 1 2 3 | 4 5 6 7          a place for each rank, bands for the nodes
    64 nodes or fewer     node 0 (8) | node 1 (8)    a place for each node, with its ranks counted
    more                  nodes 0-31 | nodes 32-63   runs of nodes, 64 places at most

Switches of nodes are places of their own after those of ranks, where every rank has one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.collective.placed_group import PlacedGroup

MOST_PLACES = 64
"""Places that a picture has at most, switches left out."""


@dataclass(frozen=True, eq=False)
class Places:
    """Holds where each position of a group is drawn, switches after the ranks."""

    group: PlacedGroup
    of_position: NDArray[np.int64]
    """The place of each position and of each node's switch."""
    num_ranks: NDArray[np.int64]
    """Ranks at each place; 0 for a switch."""
    num_nodes: NDArray[np.int64]
    first_node: NDArray[np.int64]
    """The first node of each place, by the cluster's own numbers."""

    @classmethod
    def of(cls, group: PlacedGroup) -> Places:
        """Returns the places of a group.

        >>> places = Places.of(PlacedGroup.first(128))
        >>> len(places.num_ranks), int(places.num_ranks[0]), places.is_grouped
        (16, 8, True)
        """
        names = np.array(list(dict.fromkeys(group.nodes)), dtype=np.int64)
        node = group.node_index
        if group.size <= MOST_PLACES:
            switch = np.arange(group.size, group.size + group.num_nodes)
            return cls(
                group,
                np.concatenate([np.arange(group.size), switch]),
                np.repeat([1, 0], [group.size, group.num_nodes]),
                np.ones(len(node) + len(names), dtype=np.int64),
                np.concatenate([names[node], names]),
            )
        together = -(-group.num_nodes // MOST_PLACES)
        run = np.arange(group.num_nodes) // together
        return cls(
            group,
            np.concatenate([run[node], run]),
            np.bincount(run[node]),
            np.bincount(run),
            names[::together],
        )

    @property
    def is_grouped(self) -> bool:
        """Whether a place stands for more than one rank."""
        return self.group.size > MOST_PLACES
