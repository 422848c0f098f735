"""Rails: one owner of each on every node, rings of owners between nodes, blocks in arithmetic rows.

    2 nodes of 2 and 3 ranks: as many rails as the smallest node has ranks, here two

    node 0    rank 0: rail 0    rank 1: rail 1
    node 1    rank 2: rail 0    rank 3: rail 1    rank 4: no owner, its block goes by rail 0

A rail is what stays between ranks that stand at one place of their nodes: each has a NIC, and a
path through the network's leaf switches to its like. Blocks are numbered so that those of a rail
are so many from the first, ``stride`` apart, and those of a rail and a node are one row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serried.collective.placed_group import PlacedGroup
from serried.collective.step import CollectiveStep, CollectiveSteps, Integers


@dataclass(frozen=True, eq=False)
class Rails:
    """Holds the owners of rails and the blocks of each, arrays of shape (rails, nodes)."""

    group: PlacedGroup
    owner: Integers
    first: Integers
    count: Integers
    stride: int
    owners: Integers | None = None
    """The owner of each block, where a block belongs to each position: shape (size,)."""

    @classmethod
    def shared(cls, group: PlacedGroup) -> Rails:
        """Returns rails that share a buffer: a block for each rail and node.

        >>> Rails.shared(PlacedGroup.first(5, gpus_per_node=3)).first.tolist()
        [[0, 2], [1, 3]]
        """
        nodes, rails = group.num_nodes, group.rails
        first = np.arange(nodes)[None, :] * rails + np.arange(rails)[:, None]
        return cls(group, _owners(group), first, np.ones_like(first), rails)

    @classmethod
    def of_ranks(cls, group: PlacedGroup) -> Rails:
        """Returns rails for a block of each rank, which goes by the rail of its place on its node.

        >>> rails = Rails.of_ranks(PlacedGroup.first(5, gpus_per_node=3))
        >>> rails.first.tolist(), rails.count.tolist(), rails.owners.tolist()
        ([[0, 2], [3, 4]], [[2, 1], [1, 1]], [0, 2, 3, 1, 4])
        """
        if group.is_even:
            even = cls.shared(group)
            return cls(group, even.owner, even.first, even.count, even.stride, _flat(group))
        places = places_on_nodes(group)
        # Blocks stand rail by rail, then node by node, then as ranks do on their node.
        order = np.lexsort((places, group.node_index, places % group.rails))
        count = np.zeros((group.rails, group.num_nodes), dtype=np.int64)
        np.add.at(count, (places % group.rails, group.node_index), 1)
        first = (np.cumsum(count) - count.ravel()).reshape(count.shape)
        return cls(group, _owners(group), first, count, 1, order)

    @property
    def whole(self) -> Integers:
        """How many blocks each rail has on all nodes: shape (rails,)."""
        many: Integers = self.count.sum(axis=1)
        return many

    @property
    def sent_between_nodes(self) -> Integers:
        """Blocks that each owner sends to gather its rail: all but those of the next node."""
        return self.whole[:, None] - np.roll(self.count, -1, axis=1)

    def hand_over(self) -> CollectiveSteps:
        """Returns the step in which ranks that own no rail give their block to an owner.

        No step where every rank owns one.
        """
        if self.owners is None or self.group.is_even:
            return CollectiveSteps.listed([])
        extra, rail, block = self._extras()
        owner = self.owner[rail, self.group.node_index[extra]]
        return CollectiveSteps.listed([CollectiveStep.of(extra, owner, block)])

    def between_nodes(self) -> CollectiveSteps:
        """Returns the rings over which the owners of each rail gather its blocks."""
        nodes = self.group.num_nodes
        source = self.owner.ravel()
        target = np.roll(self.owner, -1, axis=1).ravel()
        is_alike = bool((self.count == 1).all())

        def step(index: int) -> CollectiveStep:
            first, count = (np.roll(of, index, axis=1).ravel() for of in (self.first, self.count))
            return CollectiveStep.of(source, target, first, count=count)

        return CollectiveSteps(nodes - 1, step, lambda _: "between nodes" if is_alike else None)

    def within_nodes(self) -> CollectiveSteps:
        """Returns the step in which owners tell their rail to all others on their node, if any."""
        node = self.group.node_index
        member = np.arange(self.group.size)
        rail = np.repeat(np.arange(len(self.owner)), self.group.size)
        target = np.tile(member, len(self.owner))
        source = self.owner[rail, node[target]]
        first, count = self.first[rail, 0], self.whole[rail].copy()
        # Who handed over a block has it already: a row that holds it is cut in two around it.
        after: list[Integers] = [np.empty(0, dtype=np.int64)] * 4
        if self.owners is not None and not self.group.is_even:
            extra, its_rail, block = self._extras()
            row = its_rail * self.group.size + extra
            end = first[row] + count[row]
            after = [source[row], target[row], block + 1, end - block - 1]
            count[row] = block - first[row]
        columns = [
            np.concatenate(both) for both in zip((source, target, first, count), after, strict=True)
        ]
        source, target, first, count = (
            column[(columns[0] != columns[1]) & (columns[3] > 0)] for column in columns
        )
        step = CollectiveStep.of(source, target, first, count=count, stride=self.stride)
        return CollectiveSteps.listed([step] if len(step) else [])

    def _extras(self) -> tuple[Integers, Integers, Integers]:
        """Returns the positions that own no rail, the rail that each goes by, and its block."""
        assert self.owners is not None
        places = places_on_nodes(self.group)
        extra = np.flatnonzero(places >= self.group.rails)
        block = np.argsort(self.owners)[extra]
        return extra, places[extra] % self.group.rails, block


def _owners(group: PlacedGroup) -> Integers:
    """Returns the position that owns each rail on each node, shape (rails, nodes)."""
    return np.array([node[: group.rails] for node in group.by_node], dtype=np.int64).T


def _flat(group: PlacedGroup) -> Integers:
    return np.concatenate(group.by_node).astype(np.int64)


def places_on_nodes(group: PlacedGroup) -> Integers:
    """Returns the place of each position on its node, counted from 0: shape (size,)."""
    place = np.zeros(group.size, dtype=np.int64)
    for positions in group.by_node:
        place[list(positions)] = np.arange(len(positions))
    return place
