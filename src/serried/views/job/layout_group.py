"""One group of a layout on its nodes, for a collective that is asked over it."""

from __future__ import annotations

from serried.collective.placed_group import PlacedGroup
from serried.errors import InputError
from serried.mesh import Layout, Placement
from serried.mesh.rank import place_of


def group_of(layout: Layout, placement: Placement, kind: str, rank: int | None) -> PlacedGroup:
    """Returns the group of ``kind`` that ``rank`` is in, or the first where no rank is named.

    Raises InputError where the layout lacks the kind, or the rank is in no such group.

    >>> from serried.launch.request import LayoutRequest
    >>> layout, nodes = LayoutRequest.of({"world_size": "16", "tp": "2"}).laid_out()
    >>> group_of(layout, nodes, "dp", 3).ranks
    (1, 3, 5, 7, 9, 11, 13, 15)
    """
    groups = layout.groups(layout.kind(kind).name).ascending
    number = 0
    if rank is not None:
        place_of(layout, placement, rank)
        held = groups.containing(rank)
        if not held:
            raise InputError(
                "rank {rank} is in no group of {kind}; rank {example} is",
                rank=rank,
                kind=kind,
                example=int(groups.members[0]),
            )
        number = held[0]
    # DeepSpeed pairs a lone stage with itself; a rank sends nothing to itself.
    return PlacedGroup.of(list(dict.fromkeys(groups[number].tolist())), placement)
