"""A picture as areas, lines, arrows and words in units, written as SVG or as PNG.

One layout makes both files, so that they agree. A PNG has the small font of ``pixels``: words that
it cannot write give way to their ``short`` form, or are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from math import hypot
from typing import Literal

from serried.views.pixels import can_write, encoded, fill, page_of, stroke, write

INK, PALE, RULE = "#16191d", "#f1f3f5", "#b9c1ca"
"""Colours of words and edges, of backgrounds, and of lines that only guide the eye."""
_LETTER = 4.0
"""Units that a letter of the small font takes."""


@dataclass(frozen=True)
class DrawnArea:
    """Holds a filled rectangle."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    edge: bool = False
    """Whether a thin dark edge is drawn around it."""
    row: int | None = None
    """What it stands for, such as a rank, where a notebook selects it."""
    told: str = ""
    """What an SVG says of it under the pointer."""


@dataclass(frozen=True)
class DrawnLine:
    """Holds a line, which may end in an arrow."""

    start: tuple[float, float]
    end: tuple[float, float]
    colour: str
    width: float = 1.5
    is_dashed: bool = False
    is_arrow: bool = False


@dataclass(frozen=True)
class DrawnWords:
    """Holds words at a point: their baseline in an SVG, their middle a little above it."""

    x: float
    y: float
    text: str
    size: int = 12
    anchor: Literal["start", "middle", "end"] = "start"
    short: str = ""
    """What a PNG says instead, where its font lacks a letter of the text."""
    is_strong: bool = False


@dataclass
class Drawing:
    """Holds a picture of ``width`` x ``height`` units; later marks lie above earlier ones."""

    width: float
    height: float
    title: str
    marks: list[DrawnArea | DrawnLine | DrawnWords] = field(default_factory=list)

    def add(self, *marks: DrawnArea | DrawnLine | DrawnWords) -> None:
        """Adds marks above those there are."""
        self.marks += marks

    def svg(self) -> str:
        """Returns the picture as SVG.

        >>> Drawing(10, 10, "none").svg().count("<rect")
        1
        """
        size = f'width="{self.width:g}" height="{self.height:g}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} '
                f'{self.height:g}" {size} font-family="sans-serif" fill="{INK}">',
                f"<title>{escape(self.title)}</title>",
                f'<rect {size} fill="#ffffff"/>',
                *(line for mark in self.marks for line in _svg(mark)),
                "</svg>",
            ]
        )

    def png(self) -> bytes:
        """Returns the picture as PNG."""
        page = page_of(round(self.width), round(self.height))
        for mark in self.marks:
            if isinstance(mark, DrawnArea):
                right, bottom = mark.x + mark.width, mark.y + mark.height
                if mark.edge:
                    fill(page, mark.x - 0.5, mark.y - 0.5, right + 0.5, bottom + 0.5, INK)
                fill(page, mark.x, mark.y, right, bottom, mark.colour)
            elif isinstance(mark, DrawnLine):
                for start, end in _pieces(mark):
                    stroke(page, start, end, mark.width, mark.colour)
            else:
                self._written(page, mark)
        return encoded(page)

    def _written(self, page: object, mark: DrawnWords) -> None:
        text = next(
            (each.upper() for each in (mark.text, mark.short) if can_write(each.upper())), ""
        )
        wide = _LETTER * len(text)
        middle = mark.x + {"start": wide / 2, "middle": 0.0, "end": -wide / 2}[mark.anchor]
        if text and middle - wide / 2 >= 0 and middle + wide / 2 <= self.width:
            write(page, text, middle, mark.y - 4)  # type: ignore[arg-type]


def _svg(mark: DrawnArea | DrawnLine | DrawnWords) -> Iterator[str]:
    if isinstance(mark, DrawnArea):
        edge = f' stroke="{INK}" stroke-width="0.5"' if mark.edge else ""
        row = "" if mark.row is None else f' data-row="{mark.row}"'
        close = f"><title>{escape(mark.told)}</title></rect>" if mark.told else "/>"
        yield (
            f'<rect x="{mark.x:.5g}" y="{mark.y:.5g}" width="{mark.width:.4g}" '
            f'height="{mark.height:.4g}" fill="{mark.colour}"{edge}{row}{close}'
        )
    elif isinstance(mark, DrawnWords):
        strong = ' font-weight="600"' if mark.is_strong else ""
        yield (
            f'<text x="{mark.x:.5g}" y="{mark.y:.5g}" font-size="{mark.size}" '
            f'text-anchor="{mark.anchor}"{strong}>{escape(mark.text)}</text>'
        )
    else:
        dashes = ' stroke-dasharray="4 3"' if mark.is_dashed else ""
        (x0, y0), (x1, y1) = mark.start, mark.end
        path = f"M{x0:.5g} {y0:.5g}L{x1:.5g} {y1:.5g}"
        if mark.is_arrow:
            for start, end in _head(mark):
                path += f"M{start[0]:.5g} {start[1]:.5g}L{end[0]:.5g} {end[1]:.5g}"
        yield (
            f'<path d="{path}" fill="none" stroke="{mark.colour}" '
            f'stroke-width="{mark.width:g}"{dashes} stroke-linecap="round"/>'
        )


Piece = tuple[tuple[float, float], tuple[float, float]]


def _pieces(line: DrawnLine) -> Iterator[Piece]:
    """Yields what is drawn of a line: dashes, and the two strokes of an arrow's head."""
    (x0, y0), (x1, y1) = line.start, line.end
    length = hypot(x1 - x0, y1 - y0)
    if not line.is_dashed or not length:
        yield line.start, line.end
    else:
        for number in range(int(length // 7) + 1):
            begin, end = (min(1.0, (7 * number + part) / length) for part in (0, 4))
            yield (
                (x0 + (x1 - x0) * begin, y0 + (y1 - y0) * begin),
                (x0 + (x1 - x0) * end, y0 + (y1 - y0) * end),
            )
    if line.is_arrow:
        yield from _head(line)


def _head(line: DrawnLine) -> Iterator[Piece]:
    """Yields the two strokes of an arrow's head."""
    (x0, y0), (x1, y1) = line.start, line.end
    length = hypot(x1 - x0, y1 - y0) or 1.0
    back, aside = 6.0, 3.0
    along_x, along_y = (x1 - x0) / length, (y1 - y0) / length
    for side in (-aside, aside):
        yield (
            (x1 - back * along_x - side * along_y, y1 - back * along_y + side * along_x),
            (x1, y1),
        )
