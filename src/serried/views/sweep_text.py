"""Several world sizes for the terminal: a line each with its groups, or why it cannot be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.table import Table

from serried.errors import listed
from serried.mesh import Placement
from serried.mesh.sweep import Tried, four_lists
from serried.views.layout_text import table
from serried.views.sentences import say

Place = Callable[[int], Placement]
KINDS = ("dp", "model", "tp", "pp")


def sweep_table(worlds: Sequence[Tried], place: Place) -> Table:
    """Returns a row per world size that can be: dp, how many groups of each kind, nodes."""
    rows = table("world", "dp", *(f"{kind} groups" for kind in KINDS), "nodes")
    for each in worlds:
        if each.layout is None:
            rows.add_row(f"{each.world_size:,}", *["-"] * (len(KINDS) + 2))
            continue
        lists = four_lists(each.layout)
        counts = (f"{len(lists[kind]):,} of {_sizes(lists[kind].sizes.tolist())}" for kind in KINDS)
        nodes = f"{place(each.world_size).num_nodes:,}"
        rows.add_row(f"{each.world_size:,}", str(each.layout.sizes.get("dp", 1)), *counts, nodes)
    return rows


def refusal_lines(worlds: Sequence[Tried], *, lang: str = "en") -> Iterator[str]:
    """Yields, for each world size that cannot be, why, and those near it that can."""
    for each in worlds:
        if each.refusal is not None:
            near = f"; worlds that do: {listed(each.fits)}" if each.fits else ""
            yield f"{each.world_size:,} cannot be: {say(each.refusal, lang)}{near}"


def _sizes(sizes: Sequence[int]) -> str:
    low, high = int(min(sizes)), int(max(sizes))
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
