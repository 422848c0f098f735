"""Everything one rank would say of itself: where it sits, its groups, its pipeline neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from serried.mesh.layout import Layout
from serried.mesh.members import place_within
from serried.mesh.placement import Placement


@dataclass(frozen=True)
class RankPlace:
    """Says what rank ``rank`` is: coordinates, node, GPUs, groups, and pipeline neighbours.

    ``groups`` maps each kind to the groups that hold the rank: most often one.
    ``previous`` sends it activations and takes its gradients, ``next`` the reverse;
    None at the ends of the pipeline, or without one.
    """

    rank: int
    coordinates: Mapping[str, int]
    node: int
    local_rank: int
    gpus: tuple[int, ...]
    stage: int
    previous: int | None
    next: int | None
    groups: Mapping[str, list[Sequence[int]]]

    @property
    def within(self) -> dict[str, list[int]]:
        """The rank within each group, which counts members ascending, however they are listed."""
        return {
            kind: [place_within(ranks, self.rank) for ranks in lists]
            for kind, lists in self.groups.items()
        }


def place_of(layout: Layout, placement: Placement, rank: int) -> RankPlace:
    """Returns the place of ``rank``; raises InputError when it is outside the world."""
    groups = layout.groups_of(rank)
    pipelines = groups[layout.dims["pp"]] if "pp" in layout.dims else []
    # A rank of a separate encoder (Megatron 0.9 to 0.13) is in several pipelines: its neighbours
    # are those in the first.
    pipeline = sorted(pipelines[0]) if pipelines else [rank]
    stage = pipeline.index(rank)
    return RankPlace(
        rank=rank,
        coordinates=layout.coordinates(rank),
        node=placement.node(rank),
        local_rank=placement.local_rank(rank),
        gpus=placement.gpus(rank),
        stage=stage,
        previous=pipeline[stage - 1] if stage else None,
        next=pipeline[stage + 1] if stage + 1 < len(pipeline) else None,
        groups=groups,
    )
