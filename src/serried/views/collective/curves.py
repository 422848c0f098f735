"""The time of each algorithm over the size, both as logarithms, with the crossings marked.

1 ms  │              .·  tree             a line for each algorithm, named where it ends; a
      │ ── .. ── ·'   ── ring             ring and a size where another one becomes quickest
10 us │─────'──────────────
      └─────┬─────────┬────
         36 KiB     1 GiB
"""

from __future__ import annotations

from itertools import pairwise
from math import floor, log2, log10

from serried.plan.collective_crossing import AlgorithmsBySize
from serried.units import duration_text, memory_text
from serried.views.collective.comparison import comparison_verdict
from serried.views.drawing import INK, RULE, Drawing, DrawnArea, DrawnLine, DrawnWords
from serried.views.sentences import tell
from serried.views.table import folds

WIDTH, HEIGHT = 960, 560
LEFT, RIGHT, TOP, BOTTOM = 74, 150, 84, 58
"""Room around the curves: for times, names, the verdict, and sizes."""
COLOURS = (
    *("#2f6db3", "#c4570f", "#2b8a4b", "#8a3fa0", "#8a6d00"),
    *("#b3243b", "#157f86", "#5a5f66"),
)
"""One colour an algorithm, each 4.5 times as dark as the page."""


def curves(by_size: AlgorithmsBySize, *, lang: str = "en") -> Drawing:
    """Returns the picture of all algorithms of a collective over the size."""
    verdict = comparison_verdict(by_size, lang=lang)
    drawing = Drawing(WIDTH, HEIGHT, verdict)
    axes = _Axes.of(by_size)
    for row, line in enumerate(_lines_of(verdict, WIDTH - 40, 14)[:2]):
        drawing.add(DrawnWords(20, 28 + 20 * row, line, 14, is_strong=True))
    axes.draw(drawing, lang)
    ends = _spread({name: axes.y(by_size.time_s(name, by_size.sizes[-1])) for name in by_size.ways})
    for number, name in enumerate(by_size.ways):
        colour = COLOURS[number % len(COLOURS)]
        points = [(axes.x(size), axes.y(by_size.time_s(name, size))) for size in by_size.sizes]
        for start, end in pairwise(points):
            drawing.add(DrawnLine(start, end, colour, 2))
        right = WIDTH - RIGHT
        drawing.add(
            DrawnLine(points[-1], (right + 16, ends[name]), colour, 1),
            DrawnArea(right + 18, ends[name] - 5, 10, 10, colour),
            DrawnWords(right + 34, ends[name] + 4, name),
        )
    _crossings(drawing, by_size, axes)
    return drawing


def _crossings(drawing: Drawing, by_size: AlgorithmsBySize, axes: _Axes) -> None:
    """Draws a mark where another algorithm becomes the quickest, and its size below."""
    before = -100.0
    for number, each in enumerate(by_size.crossings):
        x = axes.x(each.size_bytes)
        y = axes.y(by_size.time_s(each.after, each.size_bytes))
        # Sizes of neighbours would overlap, so every other one stands a line lower.
        lower = 15 if x - before < 60 and number % 2 else 0
        before = x
        drawing.add(
            DrawnLine((x, y), (x, HEIGHT - BOTTOM), INK, 1, is_dashed=True),
            DrawnArea(x - 4, y - 4, 8, 8, "#ffffff", edge=True),
            DrawnWords(x + 5, HEIGHT - BOTTOM - 8 - lower, memory_text(each.size_bytes), 12),
        )


class _Axes:
    """Turns sizes and times into places."""

    def __init__(self, smallest: int, largest: int, shortest: float, longest: float) -> None:
        self.sizes = (log2(smallest), log2(largest))
        self.times = (floor(log10(shortest)), log10(longest) + 0.1)

    @classmethod
    def of(cls, by_size: AlgorithmsBySize) -> _Axes:
        times = [by_size.time_s(name, size) for name in by_size.ways for size in by_size.sizes]
        return cls(by_size.sizes[0], by_size.sizes[-1], min(times), max(times))

    def x(self, size_bytes: int) -> float:
        low, high = self.sizes
        return LEFT + (log2(size_bytes) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(self, seconds: float) -> float:
        low, high = self.times
        return HEIGHT - BOTTOM - (log10(seconds) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def draw(self, drawing: Drawing, lang: str) -> None:
        right, floor_y = WIDTH - RIGHT, HEIGHT - BOTTOM
        for power in range(floor(self.times[0]), floor(self.times[1]) + 1):
            y = self.y(10.0**power)
            drawing.add(DrawnLine((LEFT, y), (right, y), RULE, 0.6))
            text = duration_text(round(10.0 ** (power + 9)))
            drawing.add(DrawnWords(LEFT - 8, y + 4, _plain(text), anchor="end"))
        for power in range(10, 33, 2):
            x = self.x(1 << power)
            drawing.add(DrawnLine((x, floor_y), (x, floor_y + 5), INK, 1))
            words = _plain(memory_text(1 << power))
            drawing.add(DrawnWords(x, floor_y + 20, words, anchor="middle"))
        drawing.add(DrawnLine((LEFT, floor_y), (right, floor_y), INK, 1))
        middle = (LEFT + right) / 2
        size = tell("size of the buffer, S", lang)
        drawing.add(DrawnWords(middle, HEIGHT - 14, size, anchor="middle", short="S"))
        drawing.add(DrawnWords(LEFT, TOP - 12, tell("time", lang), anchor="end", short="TIME"))


def _plain(text: str) -> str:
    """Returns a round quantity without its zeros: 1 ms for 1.00 ms."""
    number, unit = text.split(" ")
    return f"{float(number):g} {unit}"


def _spread(places: dict[str, float]) -> dict[str, float]:
    """Returns where names stand: near where lines end, and 16 units apart."""
    found: dict[str, float] = {}
    below = -100.0
    for name, place in sorted(places.items(), key=lambda each: each[1]):
        below = found[name] = max(place, below + 16)
    over = max(found.values()) - (HEIGHT - BOTTOM)
    return {name: place - max(0.0, over) for name, place in found.items()}


def _lines_of(text: str, width: float, size: int) -> list[str]:
    """Returns a text in lines of about ``width`` units, broken between words."""
    return list(folds(text, int(width / (size * 0.52))))
