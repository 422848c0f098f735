"""The NVLink domain: the GPUs that talk without leaving fast links; a node unless said otherwise.

nodes of 8, domain 8      one node                         most machines
nodes of 4, domain 72     18 nodes                         racks such as GB200 NVL72
nodes of 8, domain 4      half a node                      two islands on one board
"""

from __future__ import annotations

from dataclasses import dataclass

from serried.errors import InputError
from serried.finding import Sentence, said
from serried.mesh.placement import MOST_GPUS, Placement


@dataclass(frozen=True)
class Domain:
    """Holds where ranks sit domain by domain, and whether a domain is just a node."""

    placement: Placement
    is_node: bool

    @property
    def num_ranks(self) -> int:
        """Ranks that a domain holds."""
        return self.placement.ranks_per_node

    @property
    def name(self) -> Sentence:
        """What domains are called within a sentence."""
        gpus = self.placement.gpus_per_node
        if self.is_node:
            return said("nodes of {gpus} GPUs", gpus=gpus)
        return said("NVLink domains of {gpus} GPUs", gpus=gpus)


def domain_of(placement: Placement, nvlink_domain: int | None = None) -> Domain:
    """Returns the NVLink domain of ``nvlink_domain`` GPUs, a node when None.

    >>> domain_of(Placement(16, 8), 4).num_ranks
    4

    Raises InputError for a domain that neither divides a node nor is made of whole ones.
    """
    per_node = placement.gpus_per_node
    gpus = per_node if nvlink_domain is None else nvlink_domain
    if gpus > MOST_GPUS:
        raise InputError(
            "{name}={value} is more than a node has; it is at most {most}",
            name="nvlink_domain",
            value=gpus,
            most=MOST_GPUS,
        )
    if gpus < 1 or (per_node % gpus and gpus % per_node) or gpus % placement.gpus_per_rank:
        raise InputError(
            "an NVLink domain of {gpus} GPUs does not go with nodes of {per_node} GPUs and "
            "{per_rank} per rank; it divides a node or is made of whole nodes",
            gpus=gpus,
            per_node=per_node,
            per_rank=placement.gpus_per_rank,
        )
    inside = Placement(placement.world_size, gpus, placement.gpus_per_rank)
    return Domain(inside, gpus == per_node)
