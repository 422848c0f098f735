"""An explanation as plain text for the terminal, wrapped by columns, Chinese included."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rich.cells import cell_len

from serried.units import QUANTITY

if TYPE_CHECKING:
    from serried.views.explain.explanation import Explanation

NEVER_FIRST = "，。：；、？！）》」"
NEVER_LAST = "（《「"
"""Chinese marks that may not begin, or end, a line."""

_PIECE = rf"\s+|{QUANTITY}[^\s\u2e80-\u9fff\uff00-\uffef]*|[^\s\u2e80-\u9fff\uff00-\uffef]+|."
"""What a line may be broken between: spaces, Latin words, single Chinese characters."""


def as_text(explained: Explanation, width: int) -> str:
    """Returns title, sections and reading, no line wider than ``width`` columns.

    Only a word or an address that is wider by itself stands out.
    """
    lines = [explained.title, "=" * cell_len(explained.title)]
    for section in explained.sections:
        lines += ["", section.heading, "-" * cell_len(section.heading)]
        for number, paragraph in enumerate(section.paragraphs):
            lines += [""] * (number > 0) + wrap(paragraph, width)
    lines += [""] + [
        row
        for link in explained.reading
        for row in (*wrap(f"- {link.title}", width, hanging=2), f"  {link.url}")
    ]
    return "\n".join(lines)


def wrap(text: str, width: int, *, hanging: int = 0) -> list[str]:
    """Breaks ``text`` into lines of at most ``width`` columns, later ones indented.

    >>> wrap("每个 rank 一份，都相同", 11)
    ['每个 rank', '一份，都相', '同']
    >>> wrap("gradients 8.72 GiB, activations 24.9 GiB", 34)
    ['gradients 8.72 GiB, activations', '24.9 GiB']
    """
    lines = [""]
    for piece in _pieces(text):
        # A line that holds nothing yet takes any piece: words and addresses are never cut.
        if cell_len(lines[-1] + piece.rstrip()) > width and lines[-1].strip():
            lines.append(" " * hanging + piece.lstrip())
        else:
            lines[-1] += piece
    return [each.rstrip() for each in lines]


def _pieces(text: str) -> list[str]:
    """Splits ``text`` where a line may break; marks stay with what they close or open.

    >>> _pieces("一份，（rank 0）")
    ['一', '份，', '（rank', ' ', '0）']
    """
    pieces: list[str] = []
    for piece in re.findall(_PIECE, text):
        if pieces and (piece in NEVER_FIRST or pieces[-1][-1] in NEVER_LAST):
            pieces[-1] += piece
        else:
            pieces.append(piece)
    return pieces
