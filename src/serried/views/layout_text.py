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


def kinds_table(
    layout: Layout, placement: Placement, kinds: Sequence[str], domain: Placement | None = None
) -> Table:
    """Returns a row per kind: how many groups, how large, how many stay on one node.

    ``domain`` adds how many stay in one NVLink domain, where that is no node.
    """
    inside = ("on one node", "in one domain") if domain else ("on one node",)
    rows = table("kind", "groups", "ranks each", *inside, "first groups", "what it carries")
    for name in kinds:
        groups = layout.groups(name)
        shares = [_share(each, groups) for each in (placement, domain) if each]
        first = " ".join(_members(groups[g].tolist(), 4) for g in range(min(2, len(groups))))
        more = " …" if len(groups) > 2 else ""
        about = layout.kind(name).about
        rows.add_row(name, f"{len(groups):,}", _sizes(groups), *shares, first + more, about)
    return rows


def _share(placement: Placement, groups: Groups) -> str:
    """Returns how many groups stay on one node (or domain) of a placement, in a word."""
    local = int((placement.nodes_of(groups) == 1).sum())
    return "all" if local == len(groups) else f"{local:,}" if local else "none"


def groups_table(layout: Layout, placement: Placement, kind: str) -> Table:
    """Returns a row per group of ``kind``, every one of them."""
    rows = table(f"{kind} group", "ranks", "nodes", "members")
    groups = layout.groups(kind)
    nodes = placement.nodes_of(groups)
    for number, ranks in enumerate(groups.lists()):
        rows.add_row(str(number), str(len(ranks)), str(nodes[number]), _members(ranks, 64))
    return rows


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
    rows = table("kind", "group", "rank within", "talks to", "what it carries")
    for name, found in place.groups.items():
        kind = layout.kind(name)
        numbers = layout.groups(name).containing(place.rank)
        for number, ranks in zip(numbers, found, strict=True):
            others = [rank for rank in ranks if rank != place.rank]
            position = f"{ranks.index(place.rank)} of {len(ranks)}"
            talks = _members(others, MEMBERS_SHOWN) if others else "nobody: it is alone"
            rows.add_row(name, str(number), position, talks, kind.about)
        if not found:
            rows.add_row(name, "-", "-", "not a member", kind.about)
    return rows


def table(*headings: str) -> Table:
    """Returns an empty table of serried's look: no lines, bold headings."""
    rows = Table(box=None, pad_edge=False, header_style="bold")
    for i, heading in enumerate(headings):
        rows.add_column(heading, no_wrap=i == 0, overflow="fold")
    return rows


def _sizes(groups: Groups) -> str:
    low, high = int(groups.sizes.min()), int(groups.sizes.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _members(ranks: list[int], limit: int) -> str:
    shown = " ".join(map(str, ranks[:limit]))
    return f"[{shown} …]" if len(ranks) > limit else f"[{shown}]"
