"""What ranks share as an SVG: three bars for each rank, the whole outlined, its part filled."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from serried.mesh import Layout
from serried.mesh.sharding import STATES
from serried.plan.model_states import ModelStates
from serried.plan.precision import Precision
from serried.units import bytes_text
from serried.views.colours import STATES as COLOURS
from serried.views.sentences import say, tell
from serried.views.sharding.bars import BarsRow, RankBars, StateBar, bars_rows
from serried.views.sharding.text import WORDS, verdict

CELL, BAR, GAP, TALL, MARGIN, TOP = 104, 24, 6, 150, 24, 64
"""Width of a rank's cell, of a bar, between bars, height of the tallest bar, and the margins."""
ROW = TALL + 56
LETTERS = {"parameters": "P", "gradients": "G", "optimizer": "O"}
_INK, _PALE, _LINE = "#16191d", "#f1f3f5", "#8d98a6"


def picture_size(rows: list[BarsRow]) -> tuple[int, int]:
    """Returns width and height of the picture."""
    widest = max(len(row.ranks) for row in rows)
    return max(720, 2 * MARGIN + CELL * widest), TOP + ROW * len(rows) + 34


def sharding_svg(
    layout: Layout, states: ModelStates | None, precision: Precision, *, lang: str = "en"
) -> str:
    """Returns the picture: a row of ranks that train the same weights, dense ones and experts.

    A bar that is filled up is held whole; a thin line is a part of a thousand ranks.
    """
    rows = bars_rows(layout, precision, states)
    width, height = picture_size(rows)
    title = say(verdict(layout, states), lang)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *_heading(title, width),
    ]
    for number, row in enumerate(rows):
        parts += _row(row, TOP + ROW * number, states, lang)
    return "\n".join([*parts, *_legend(height, lang), "</svg>"])


def _heading(title: str, width: int) -> Iterator[str]:
    """Yields the verdict over two lines at most, broken at the middle of its words."""
    words, line = title.split(" "), ""
    lines: list[str] = []
    for word in words:
        # A letter is about 6.4 units wide; a Chinese one twice that.
        if line and _wide(f"{line} {word}") > width - 2 * MARGIN:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    for number, text in enumerate([*lines, line]):
        yield (
            f'<text x="{MARGIN}" y="{20 + 17 * number}" font-size="13" fill="{_INK}">'
            f"{escape(text)}</text>"
        )


def _wide(text: str) -> float:
    return sum(13.0 if ord(letter) > 0x2E80 else 6.6 for letter in text)


def _row(row: BarsRow, y: int, states: ModelStates | None, lang: str) -> Iterator[str]:
    x = MARGIN
    for each in row.ranks:
        if each.count:
            more = tell("{count:,} more ranks", lang, count=each.count)
            yield _text(x + CELL / 2, y + TALL / 2, more, "middle")
        else:
            label = f"rank {each.rank}"
            if row.weights == "expert":
                label = tell("experts, {rank}", lang, rank=label)
            yield _text(x + CELL / 2, y + TALL + 34, label, "middle")
            yield from _rank(each, x, y)
        x += CELL
    held = next((s for s in (states.each if states else ()) if s.cuts.weights == row.weights), None)
    if held:
        told = tell("{held} a rank", lang, held=bytes_text(held.held.total))
        yield _text(MARGIN, y + TALL + 52, told, "start")


def _rank(each: RankBars, x: float, y: float) -> Iterator[str]:
    left = x + (CELL - 3 * BAR - 2 * GAP) / 2
    for bar in each.bars:
        yield from _bar(bar, left, y)
        yield _text(left + BAR / 2, y + TALL + 16, LETTERS[bar.state], "middle")
        left += BAR + GAP


def _bar(bar: StateBar, x: float, y: float) -> Iterator[str]:
    top, height = bar_place(bar)
    start, filled = bar_part(bar)
    yield (
        f'<rect x="{x:.1f}" y="{y + top:.2f}" width="{BAR}" height="{height:.2f}" '
        f'fill="{_PALE}" stroke="{_LINE}"/>'
    )
    yield (
        f'<rect x="{x:.1f}" y="{y + start:.2f}" width="{BAR}" height="{filled:.2f}" '
        f'fill="{COLOURS[bar.state]}"/>'
    )


def bar_place(bar: StateBar) -> tuple[float, float]:
    """Returns top and height of a bar within a row: bars stand on one line."""
    height = max(2.0, TALL * bar.weight)
    return TALL - height, height


def bar_part(bar: StateBar) -> tuple[float, float]:
    """Returns top and height of what is filled, never too thin to be seen."""
    top, height = bar_place(bar)
    filled = max(1.0, height * bar.share)
    return min(top + height * bar.start, TALL - filled), filled


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{_INK}">{escape(text)}</text>'
    )


def _legend(height: int, lang: str) -> Iterator[str]:
    x, y = MARGIN, height - 22
    for state in STATES:
        word = f"{LETTERS[state]} {say(WORDS[state], lang)}"
        yield f'<rect x="{x}" y="{y}" width="14" height="12" fill="{COLOURS[state]}"/>'
        yield _text(x + 20, y + 10, word, "start")
        x += 44 + int(_wide(word))
    outlined = tell("outlined: the whole; filled: what the rank holds", lang)
    yield _text(x, y + 10, outlined, "start")
