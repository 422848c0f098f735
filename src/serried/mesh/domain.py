"""The NVLink domain: the GPUs that talk without leaving fast links; a node unless said otherwise.

nodes of 8, domain 8      one node                         most machines
nodes of 4, domain 72     18 nodes                         racks such as GB200 NVL72
nodes of 8, domain 4      half a node                      two islands on one board
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from serried.errors import InputError, Listed, listed
from serried.finding import Sentence, said
from serried.mesh.groups import Groups
from serried.mesh.placement import Placement
from serried.mesh.sizes import MOST_GPUS

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Domain:
    """Holds where ranks sit domain by domain, and whether a domain is just a node."""

    placement: Placement
    is_node: bool

    @property
    def num_ranks(self) -> int:
        """Ranks that every domain holds; where nodes differ, what divides those of each."""
        return self.placement.ranks_on_every

    @property
    def name(self) -> Sentence:
        """What domains are called within a sentence."""
        gpus = widths_told(self.placement)
        if self.is_node:
            return said("nodes of {gpus} GPUs", gpus=gpus)
        return said("NVLink domains of {gpus} GPUs", gpus=gpus)

    def left_by(self, groups: Groups) -> NDArray[np.int64]:
        """Returns the numbers of the groups that spread over several domains."""
        return np.flatnonzero(self.placement.nodes_of(groups) > 1)

    def sizes_inside(self, below: int, *, apart: int) -> list[int]:
        """Returns the group sizes under ``below`` that fit a domain, members ``apart`` ranks apart.

        >>> domain_of(Placement(64)).sizes_inside(16, apart=2)
        [1, 2, 4]
        """
        # A group of n spans n x apart ranks. Spans that divide the domain, and the world, cross no
        # border.
        steps, rest = divmod(self.num_ranks, apart)
        if rest or not steps:
            return [1]
        world_size = self.placement.world_size
        sizes = range(1, below)
        return [n for n in sizes if steps % n == 0 and world_size % (n * apart) == 0] or [1]


def domain_of(placement: Placement, nvlink_domain: int | None = None) -> Domain:
    """Returns the NVLink domain of ``nvlink_domain`` GPUs, a node when None.

    >>> domain_of(Placement(16, 8), 4).num_ranks
    4

    Raises InputError for a domain that neither divides a node nor is made of whole ones.
    """
    if nvlink_domain is None:
        return Domain(placement, is_node=True)
    per_node, gpus = placement.gpus_per_node, nvlink_domain
    shared = gcd(per_node, *placement.node_gpus)
    if gpus > MOST_GPUS:
        raise InputError(
            "{name}={value} is more than a node has; it is at most {most}",
            name="nvlink_domain",
            value=gpus,
            most=MOST_GPUS,
        )
    # A domain is a part of every node, or several whole ones, as 72 GPUs on nodes of 4 are; then
    # all nodes must be alike.
    is_whole_nodes = not placement.node_gpus and gpus > 0 and gpus % per_node == 0
    if gpus < 1 or (shared % gpus and not is_whole_nodes) or gpus % placement.gpus_per_rank:
        raise InputError(
            "an NVLink domain of {gpus} GPUs does not go with nodes of {per_node} GPUs and "
            "{per_rank} per rank; it divides a node or is made of whole nodes",
            gpus=gpus,
            per_node=widths_told(placement),
            per_rank=placement.gpus_per_rank,
        )
    inside = Placement(placement.world_size, gpus, placement.gpus_per_rank)
    return Domain(inside, gpus == per_node)


MANY_NODES = 6
"""Nodes beyond which the GPUs of each are not told one by one."""


def widths_told(placement: Placement) -> int | Listed | Sentence:
    """Says how many GPUs the nodes have: one number, that of each node, or the least and most.

    >>> widths_told(Placement(16)), str(widths_told(Placement.on(5, (4, 1))))
    (8, '4 and 1')
    """
    widths = placement.widths
    if len(set(widths)) < 2:
        return widths[0] if widths else placement.gpus_per_node
    if len(widths) <= MANY_NODES:
        return listed(widths, last="and")
    return said("{low:,} to {high:,}", low=min(widths), high=max(widths))
