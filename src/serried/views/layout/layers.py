"""Which layers each pipeline position and its ranks hold, for the terminal."""

from __future__ import annotations

from rich.table import Table

from serried.errors import listed
from serried.mesh import Layout
from serried.mesh.compare import shown
from serried.mesh.layers import LayerSplit, positions
from serried.views.layout.text import range_text, table
from serried.views.sentences import say, tell

ROWS_SHOWN = 64


def layers_table(layout: Layout, split: LayerSplit, *, lang: str = "en") -> Table:
    """Returns a row per pipeline position: its layers, chunk by chunk, and its ranks."""
    at = positions(layout)
    rows = table(
        tell("position", lang), tell("layers", lang), tell("which", lang), tell("on ranks", lang)
    )
    for position, count in enumerate(split.counts[:ROWS_SHOWN]):
        ranks = (at == position).nonzero()[0].tolist()
        rows.add_row(
            str(position), str(count), layers_text(split, position, lang=lang), shown(ranks, 8)
        )
    if len(split.counts) > ROWS_SHOWN:
        more = len(split.counts) - ROWS_SHOWN
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
