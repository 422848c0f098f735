"""Which layers each pipeline position and its ranks hold, for the terminal."""

from __future__ import annotations

from rich.table import Table

from serried.mesh import Layout
from serried.mesh.compare import shown
from serried.mesh.layers import LayerSplit, positions
from serried.views.layout_text import table

ROWS_SHOWN = 64


def layers_table(layout: Layout, split: LayerSplit) -> Table:
    """Returns a row per pipeline position: its layers, chunk by chunk, and its ranks."""
    at = positions(layout)
    rows = table("position", "layers", "which", "ranks")
    for position, count in enumerate(split.counts[:ROWS_SHOWN]):
        ranks = (at == position).nonzero()[0].tolist()
        rows.add_row(str(position), str(count), layers_text(split, position), shown(ranks, 8))
    if len(split.counts) > ROWS_SHOWN:
        rows.add_row("…", "", f"and {len(split.counts) - ROWS_SHOWN} more positions", "")
    return rows


def layers_text(split: LayerSplit, position: int) -> str:
    """Returns the layers of a position as runs, one per chunk.

    >>> from serried.mesh.layers import evenly
    >>> layers_text(evenly(16, pp=4, chunks=2), 1)
    '2 to 3, 10 to 11'
    """
    runs = [chunk for chunk in split.held[position] if len(chunk)]
    words = (f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    return ", ".join(words) or "none"
