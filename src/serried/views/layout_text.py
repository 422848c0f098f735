"""A Layout as tables for the terminal: all kinds, the groups of one kind, or one rank."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from serried.errors import listed
from serried.mesh import Groups, Layout, Placement, RankPlace

MEMBERS_SHOWN = 16


def headline(layout: Layout, placement: Placement) -> str:
    """Returns one line: framework, sizes, order and nodes."""
    sizes = " x ".join(f"{axis} {size}" for axis, size in layout.mesh.sizes.items() if size > 1)
    nodes = f"{placement.num_nodes:,} node{'s' if placement.num_nodes > 1 else ''}"
    return (
        f"{layout.framework} {layout.version}: {layout.world_size:,} ranks"
        f"{' = ' + sizes if sizes else ''}, order {layout.order}, "
        f"{nodes} of {placement.gpus_per_node} GPUs"
    )


def kinds_table(layout: Layout, placement: Placement, kinds: Sequence[str]) -> Table:
    """Returns a row per kind: how many groups, how large, how many stay on one node."""
    table = _table("kind", "groups", "ranks each", "on one node", "first groups", "what it carries")
    for name in kinds:
        groups = layout.groups(name)
        local = int((placement.nodes_of(groups) == 1).sum())
        share = "all" if local == len(groups) else f"{local:,}" if local else "none"
        first = " ".join(_members(groups[g].tolist(), 4) for g in range(min(2, len(groups))))
        more = " …" if len(groups) > 2 else ""
        about = layout.kind(name).about
        table.add_row(name, f"{len(groups):,}", _sizes(groups), share, first + more, about)
    return table


def groups_table(layout: Layout, placement: Placement, kind: str) -> Table:
    """Returns a row per group of ``kind``, every one of them."""
    table = _table(f"{kind} group", "ranks", "nodes", "members")
    groups = layout.groups(kind)
    nodes = placement.nodes_of(groups)
    for number, ranks in enumerate(groups.lists()):
        table.add_row(str(number), str(len(ranks)), str(nodes[number]), _members(ranks, 64))
    return table


def rank_lines(layout: Layout, place: RankPlace) -> list[str]:
    """Returns what a rank is, in sentences: its node and GPUs, coordinates, neighbours."""
    gpus = f"GPU{'s' if len(place.gpus) > 1 else ''} {listed(place.gpus)}"
    coordinates = listed(f"{axis} {at}" for axis, at in reversed(list(place.coordinates.items())))
    lines = [
        f"rank {place.rank} of {layout.world_size:,}",
        f"  node {place.node}, local rank {place.local_rank}, {gpus}",
        f"  coordinates: {coordinates}",
    ]
    if place.previous is not None:
        lines.append(
            f"  stage {place.stage}: takes activations from rank {place.previous} "
            "and sends it their gradients"
        )
    if place.next is not None:
        lines.append(
            f"  stage {place.stage}: sends activations to rank {place.next} "
            "and takes their gradients"
        )
    return lines


def rank_table(layout: Layout, place: RankPlace) -> Table:
    """Returns a row per group of one rank: its position, and whom it talks to there."""
    table = _table("kind", "group", "rank within", "talks to", "what it carries")
    for name, found in place.groups.items():
        kind = layout.kind(name)
        numbers = layout.groups(name).containing(place.rank)
        for number, ranks in zip(numbers, found, strict=True):
            others = [rank for rank in ranks if rank != place.rank]
            position = f"{ranks.index(place.rank)} of {len(ranks)}"
            talks = _members(others, MEMBERS_SHOWN) if others else "nobody: it is alone"
            table.add_row(name, str(number), position, talks, kind.about)
        if not found:
            table.add_row(name, "-", "-", "not a member", kind.about)
    return table


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, heading in enumerate(headings):
        table.add_column(heading, no_wrap=i == 0, overflow="fold")
    return table


def _sizes(groups: Groups) -> str:
    low, high = int(groups.sizes.min()), int(groups.sizes.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _members(ranks: list[int], limit: int) -> str:
    shown = " ".join(map(str, ranks[:limit]))
    return f"[{shown} …]" if len(ranks) > limit else f"[{shown}]"
