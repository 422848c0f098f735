"""A Layout as tables for the terminal: its kinds, the groups of one, one rank, or its layers.

Several world sizes tried after one another are a table too: a row each, or why one cannot be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from serried.errors import listed
from serried.mesh import Groups, Layout, Placement
from serried.mesh.domain import widths_told
from serried.mesh.groups import shown
from serried.mesh.layers import LayerSplit, positions
from serried.views.explain.words import about_in
from serried.views.sentences import say, tell
from serried.views.table import Table

if TYPE_CHECKING:
    from serried.mesh.rank import RankPlace
    from serried.mesh.sweep import Tried

MEMBERS_SHOWN = 16
POSITIONS_SHOWN = 64
LONG_NAME = 24
MANY_GROUPS = 1000
"""More groups than this are told in plain lines, which need no measuring."""
SWEPT = ("dp", "model", "tp", "pp")
"""Kinds of groups that several world sizes are compared by."""

Place = Callable[[int], Placement]
"""Returns where the ranks of a world size sit."""


def headline(layout: Layout, placement: Placement, *, lang: str = "en") -> str:
    """Returns one line: framework, sizes, order and nodes."""
    sizes = " x ".join(f"{axis} {size}" for axis, size in layout.mesh.sizes.items() if size > 1)
    return tell(
        "{framework} {version}: 1 rank{sizes}, order {order}, {nodes}"
        if layout.world_size == 1
        else "{framework} {version}: {world:,} ranks{sizes}, order {order}, {nodes}",
        lang,
        framework=layout.framework,
        version=layout.version,
        world=layout.world_size,
        sizes=f" = {sizes}" if sizes else "",
        order=layout.order,
        nodes=_nodes(placement, lang),
    )


def _nodes(placement: Placement, lang: str) -> str:
    """Returns how many nodes there are and how many GPUs each has, where they differ too."""
    differ = len(set(placement.widths)) > 1
    return tell(
        "{nodes:,} nodes, of {gpus} GPUs"
        if differ
        else "{nodes:,} node of {gpus} GPUs"
        if placement.num_nodes == 1
        else "{nodes:,} nodes of {gpus} GPUs",
        lang,
        nodes=placement.num_nodes,
        gpus=widths_told(placement),
    )


def kinds_table(
    layout: Layout,
    placement: Placement,
    kinds: Sequence[str],
    domain: Placement | None = None,
    *,
    lang: str = "en",
) -> Table:
    """Returns a row per kind: how many groups, how large, how many stay on one node.

    ``domain`` adds how many stay in one NVLink domain, where that is no node. Beside names as
    long as Megatron's variables there is no room for the first groups, which ``--kind`` shows.
    """
    has_room = max(map(cell_len, kinds), default=0) <= LONG_NAME
    inside = [tell("on one node", lang)] + ([tell("in one domain", lang)] if domain else [])
    rows = table(
        tell("kind", lang),
        tell("groups", lang),
        tell("ranks each", lang),
        *inside,
        *([tell("first groups", lang)] if has_room else []),
        tell("what it carries", lang),
    )
    for name in kinds:
        groups = layout.groups(name)
        shares = [_share(where, groups, lang) for where in (placement, domain) if where]
        first = [_first_groups(groups)] if has_room else []
        about = about_in(layout, layout.kind(name), lang)
        rows.add_row(name, f"{len(groups):,}", sizes_text(groups, lang), *shares, *first, about)
    return rows


def _first_groups(groups: Groups) -> str:
    first = " ".join(shown(groups[g].tolist(), 4) for g in range(min(2, len(groups))))
    return first + (" …" if len(groups) > 2 else "")


def _share(placement: Placement, groups: Groups, lang: str) -> str:
    """Returns how many groups stay on one node (or domain) of a placement, in a word."""
    local = int((placement.nodes_of(groups) == 1).sum())
    if local == len(groups):
        return tell("all", lang)
    return f"{local:,}" if local else tell("none", lang)


def groups_table(
    layout: Layout, placement: Placement, kind: str, *, lang: str = "en"
) -> Table | str:
    """Returns a row per group of ``kind``, every one of them; many of them as plain lines."""
    headings = (
        tell("{kind} group", lang, kind=kind),
        tell("ranks", lang),
        tell("nodes", lang),
        tell("members", lang),
    )
    groups = layout.groups(kind)
    nodes = placement.nodes_of(groups).tolist()
    lists = (ranks for part in groups.in_parts() for ranks in part)
    found = (
        (str(number), str(len(ranks)), str(nodes[number]), shown(ranks, 64))
        for number, ranks in enumerate(lists)
    )
    if len(groups) > MANY_GROUPS:
        return _plain_table(headings, found)
    rows = table(*headings)
    for row in found:
        rows.add_row(*row)
    return rows


def _plain_table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Returns rows as lines, all columns but the last as wide as their heading or ten columns."""
    widths = [max(10, cell_len(heading)) for heading in headings[:-1]]

    def line(cells: tuple[str, ...]) -> str:
        padded = (set_cell_size(cell, width) for cell, width in zip(cells, widths, strict=False))
        return "  ".join((*padded, cells[-1]))

    return "\n".join(map(line, (headings, *rows)))


def rank_lines(layout: Layout, place: RankPlace, *, lang: str = "en") -> list[str]:
    """Returns what a rank is, in sentences: its node and GPUs, coordinates, neighbours."""
    where = tell(
        "node {node}, local rank {local}, GPUs {gpus}"
        if len(place.gpus) > 1
        else "node {node}, local rank {local}, GPU {gpus}",
        lang,
        node=place.node,
        local=place.local_rank,
        gpus=listed(place.gpus),
    )
    coordinates = listed(f"{axis} {at}" for axis, at in reversed(list(place.coordinates.items())))
    at = tell("coordinates: {coordinates}", lang, coordinates=coordinates)
    lines = [
        tell("rank {rank} of {world:,}", lang, rank=place.rank, world=layout.world_size),
        f"  {where}",
        f"  {at}",
    ]
    if place.previous is not None:
        taken = tell(
            "stage {stage}: takes activations from rank {rank} and sends it their gradients",
            lang,
            stage=place.stage,
            rank=place.previous,
        )
        lines.append(f"  {taken}")
    if place.next is not None:
        sent = tell(
            "stage {stage}: sends activations to rank {rank} and takes their gradients",
            lang,
            stage=place.stage,
            rank=place.next,
        )
        lines.append(f"  {sent}")
    return lines


def rank_table(layout: Layout, place: RankPlace, *, lang: str = "en") -> Table:
    """Returns a row per group of one rank: its position, and whom it talks to there."""
    rows = table(
        tell("kind", lang),
        tell("group", lang),
        tell("rank within", lang),
        tell("talks to", lang),
        tell("what it carries", lang),
    )
    alone, absent = tell("nobody: it is alone", lang), tell("not a member", lang)
    within = place.within
    for name, found in place.groups.items():
        about = about_in(layout, layout.kind(name), lang)
        numbers = layout.numbers_of(name, place.rank)
        for number, ranks, at in zip(numbers, found, within[name], strict=True):
            # Two more than are shown: one may be the rank itself, one makes the list end in '…'.
            others = [rank for rank in ranks[: MEMBERS_SHOWN + 2] if rank != place.rank]
            position = tell("{at} of {count}", lang, at=at, count=len(ranks))
            talks = shown(others, MEMBERS_SHOWN) if others else alone
            rows.add_row(name, str(number), position, talks, about)
        if not found:
            rows.add_row(name, "-", "-", absent, about)
    return rows


def table(*headings: str) -> Table:
    """Returns an empty table of serried's look: no lines, bold headings."""
    rows = Table()
    for i, heading in enumerate(headings):
        rows.add_column(heading, no_wrap=i == 0)
    return rows


def sizes_text(groups: Groups, lang: str) -> str:
    """Returns the size of groups, or their smallest and largest."""
    return range_text(int(groups.sizes.min()), int(groups.sizes.max()), lang)


def range_text(low: int, high: int, lang: str) -> str:
    """Returns a number, or two as a range.

    >>> range_text(16, 32, "en"), range_text(16, 32, "zh"), range_text(8, 8, "en")
    ('16 to 32', '16 到 32', '8')
    """
    return f"{low:,}" if low == high else tell("{low:,} to {high:,}", lang, low=low, high=high)


def layers_table(layout: Layout, split: LayerSplit, *, lang: str = "en") -> Table:
    """Returns a row per pipeline position: its layers, chunk by chunk, and its ranks."""
    at = positions(layout)
    rows = table(
        tell("position", lang), tell("layers", lang), tell("which", lang), tell("on ranks", lang)
    )
    for position, count in enumerate(split.counts[:POSITIONS_SHOWN]):
        ranks = (at == position).nonzero()[0].tolist()
        rows.add_row(
            str(position), str(count), layers_text(split, position, lang=lang), shown(ranks, 8)
        )
    if len(split.counts) > POSITIONS_SHOWN:
        more = len(split.counts) - POSITIONS_SHOWN
        rows.add_row("…", "", tell("and {count} more positions", lang, count=more), "")
    return rows


def layers_text(split: LayerSplit, position: int, *, lang: str = "en") -> str:
    """Returns the layers of a position as runs, one per chunk.

    >>> from serried.mesh.layers import evenly
    >>> layers_text(evenly(16, pp=4, chunks=2), 1)
    '2 to 3, 10 to 11'
    """
    runs = [chunk for chunk in split.held[position] if len(chunk)]
    words = [range_text(run[0], run[-1], lang) for run in runs]
    return say(listed(words, limit=len(words)), lang) if words else tell("none", lang)


def sweep_table(worlds: Sequence[Tried], place: Place, *, lang: str = "en") -> Table:
    """Returns a row per world size that can be: dp, how many groups of each kind, nodes."""
    from serried.mesh.sweep import four_lists

    kinds = [tell("model", lang) if kind == "model" else kind for kind in SWEPT]
    groups = [tell("{kind} groups", lang, kind=kind) for kind in kinds]
    rows = table(tell("world", lang), "dp", *groups, tell("nodes", lang))
    for tried in worlds:
        if tried.layout is None:
            rows.add_row(f"{tried.world_size:,}", *["-"] * (len(SWEPT) + 2))
            continue
        lists = four_lists(tried.layout)
        counts = [
            tell(
                "{count:,} of {size}",
                lang,
                count=len(lists[kind]),
                size=sizes_text(lists[kind], lang),
            )
            for kind in SWEPT
        ]
        nodes = f"{place(tried.world_size).num_nodes:,}"
        rows.add_row(f"{tried.world_size:,}", str(tried.layout.sizes.get("dp", 1)), *counts, nodes)
    return rows


def refusal_lines(worlds: Sequence[Tried], *, lang: str = "en") -> Iterator[str]:
    """Yields, for each world size that cannot be, why, and those near it that can."""
    for tried in worlds:
        if tried.refusal is not None:
            why, fits = say(tried.refusal, lang), listed(tried.fits)
            yield (
                tell(
                    "{world:,} cannot be: {why}; worlds that do: {fits}",
                    lang,
                    world=tried.world_size,
                    why=why,
                    fits=fits,
                )
                if tried.fits
                else tell("{world:,} cannot be: {why}", lang, world=tried.world_size, why=why)
            )
