"""Several world sizes for the terminal: a line each with its groups, or why it cannot be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.table import Table

from serried.errors import listed
from serried.mesh import Placement
from serried.mesh.sweep import Tried, four_lists
from serried.views.layout.text import sizes_text, table
from serried.views.sentences import say, tell

Place = Callable[[int], Placement]
KINDS = ("dp", "model", "tp", "pp")


def sweep_table(worlds: Sequence[Tried], place: Place, *, lang: str = "en") -> Table:
    """Returns a row per world size that can be: dp, how many groups of each kind, nodes."""
    kinds = [tell("model", lang) if kind == "model" else kind for kind in KINDS]
    groups = [tell("{kind} groups", lang, kind=kind) for kind in kinds]
    rows = table(tell("world", lang), "dp", *groups, tell("nodes", lang))
    for each in worlds:
        if each.layout is None:
            rows.add_row(f"{each.world_size:,}", *["-"] * (len(KINDS) + 2))
            continue
        lists = four_lists(each.layout)
        counts = [
            tell(
                "{count:,} of {size}",
                lang,
                count=len(lists[kind]),
                size=sizes_text(lists[kind], lang),
            )
            for kind in KINDS
        ]
        nodes = f"{place(each.world_size).num_nodes:,}"
        rows.add_row(f"{each.world_size:,}", str(each.layout.sizes.get("dp", 1)), *counts, nodes)
    return rows


def refusal_lines(worlds: Sequence[Tried], *, lang: str = "en") -> Iterator[str]:
    """Yields, for each world size that cannot be, why, and those near it that can."""
    for each in worlds:
        if each.refusal is not None:
            why, fits = say(each.refusal, lang), listed(each.fits)
            yield (
                tell(
                    "{world:,} cannot be: {why}; worlds that do: {fits}",
                    lang,
                    world=each.world_size,
                    why=why,
                    fits=fits,
                )
                if each.fits
                else tell("{world:,} cannot be: {why}", lang, world=each.world_size, why=why)
            )
