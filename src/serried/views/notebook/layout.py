"""A layout as a notebook draws it: nodes of ranks, coloured by their group of one kind.

node 0                          node 1
[0][1][2][3][4][5][6][7]        [8][9] …       a colour a group; its number is told on each rank
"""

from __future__ import annotations

from serried.mesh import Layout, Placement
from serried.mesh.groups import shown
from serried.views.colours import family, shades
from serried.views.drawing import PALE, Drawing, DrawnArea, DrawnWords
from serried.views.layout.text import headline, kinds_table
from serried.views.notebook.drawn import Drawn
from serried.views.sentences import tell

MOST_RANKS = 1024
"""Ranks that are drawn; a sentence says how many more there are."""
WIDTH, CELL, TALL, GAP, TITLE = 960, 28, 22, 12, 18
"""The picture's width, a rank's box, and what lies between nodes and above each."""
IN_A_LINE = 8
"""Ranks of a node that stand beside each other."""


def layout_drawn(layout: Layout, kind: str = "", lang: str = "en", gpus_per_node: int = 8) -> Drawn:
    """Returns what is drawn of a layout, coloured by a kind, by default that of tp, pp or dp.

    Hosts that the layout's settings name go before ``gpus_per_node``. Raises InputError for a kind
    that it does not have.
    """
    kind = layout.kind(kind).name if kind else usual_kind(layout)
    place = Placement.on(layout.world_size, layout.ranks_per_host or gpus_per_node)
    kinds = [each.name for each in layout.kinds]
    told = headline(layout, place, lang=lang)
    below: list[str] = []
    ranks = range(min(layout.world_size, MOST_RANKS))
    if layout.world_size > MOST_RANKS:
        below.append(
            tell(
                "the first {shown:,} of {count:,} ranks are drawn; serried serve shows all",
                lang,
                shown=MOST_RANKS,
                count=layout.world_size,
            )
        )
    return Drawn(
        told,
        _picture(layout, place, kind, len(ranks), lang).svg(),
        (*below, kinds_table(layout, place, kinds, lang=lang)),
        tuple((rank,) for rank in ranks),
        tuple(kinds),
        kind,
    )


def usual_kind(layout: Layout) -> str:
    """Returns the kind that is shown where none was asked for: one that divides the world."""
    wanted = [layout.dims[dim] for dim in ("tp", "pp", "dp") if dim in layout.dims]
    for name in [*wanted, *(kind.name for kind in layout.kinds)]:
        groups = layout.groups(name)
        if len(groups) > 1 and int(groups.sizes.max()) > 1:
            return name
    return layout.kinds[0].name


def _picture(layout: Layout, place: Placement, kind: str, count: int, lang: str) -> Drawing:
    groups = layout.groups(kind)
    numbers = groups.index(layout.world_size)
    dim = next((dim for dim, name in layout.dims.items() if name == kind), kind)
    colours = [f"#{shade:06x}" for shade in shades(family(dim), len(groups)).tolist()]
    drawing = Drawing(WIDTH, 0, tell("ranks by node, coloured by {kind}", lang, kind=kind))
    x, y, tallest = 0.0, 0.0, 0.0
    for node in range(place.num_nodes):
        ranks = [rank for rank in place.ranks_on(node) if rank < count]
        if not ranks:
            break
        wide = CELL * min(IN_A_LINE, len(place.ranks_on(node)))
        tall = TITLE + TALL * -(-len(ranks) // IN_A_LINE)
        if x and x + wide > WIDTH:
            x, y, tallest = 0.0, y + tallest + GAP, 0.0
        drawing.add(DrawnWords(x, y + TITLE - 5, tell("node {node}", lang, node=node), 11))
        for at, rank in enumerate(ranks):
            left, top = x + CELL * (at % IN_A_LINE), y + TITLE + TALL * (at // IN_A_LINE)
            number = int(numbers[rank])
            colour = colours[number] if number >= 0 else PALE
            told = "\n".join(rank_told(layout, rank, kind, lang))
            drawing.add(
                DrawnArea(left + 1, top + 1, CELL - 2, TALL - 2, colour, row=rank, told=told),
                DrawnWords(left + CELL / 2, top + TALL / 2 + 4, str(rank), 10, "middle"),
            )
        x, tallest = x + wide + GAP, max(tallest, tall)
    drawing.height = y + tallest + 4
    return drawing


def rank_told(layout: Layout, rank: int, kind: str, lang: str) -> list[str]:
    """Returns what is said of a rank: its coordinates, then its groups of a kind.

    >>> from serried.api import layout
    >>> rank_told(layout(world_size=16, tp=2, pp=4), 5, "dp", "en")
    ['rank 5: tp 1, dp 0, pp 1', 'dp group 3: [5 7]']
    """
    place = layout.coordinates(rank)
    axes = [f"{axis} {place[axis]}" for axis in reversed(place) if layout.mesh.sizes[axis] > 1]
    groups = layout.groups(kind)
    told = [
        tell(
            "{kind} group {number}: {members}",
            lang,
            kind=kind,
            number=number,
            members=shown(groups[number].tolist()),
        )
        for number in layout.numbers_of(kind, rank)
    ]
    return [f"rank {rank}{': ' if axes else ''}{', '.join(axes)}", *told]
