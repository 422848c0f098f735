"""Steps of one rank as a stream: rows that stay bounded however long the job is.

    steps 0 1 2 3 4 5 …         a row a step, as long as they fit
    rows  0-1  2-3  4-5  …      else two rows become one, the mean of both, and again

The latest steps are kept one by one as well, for what lasts a step or two and would be lost in a
mean: pauses.

>>> folded = FoldedSteps(most=4)
>>> for step in range(10):
...     folded.add(step, {"step": float(step)})
>>> folded.width, folded.row(4), len(folded)
(4, {'step': 5.5}, 3)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

MOST_ROWS = 2_048
"""Rows of one rank that are kept, about 200 bytes each, and as many of its latest steps."""


@dataclass
class FoldedSteps:
    """Holds means of figures by step, of ``width`` steps each; the first of them is its number."""

    most: int = MOST_ROWS
    width: int = 1
    latest: dict[int, Mapping[str, float]] = field(default_factory=dict)
    """The last steps, each with its own figures, in the order in which they came."""
    _rows: dict[int, tuple[int, dict[str, float]]] = field(default_factory=dict)
    """By step over width: how many steps were added, and the sums of their figures."""

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[int]:
        """Yields the first step of every row."""
        return (number * self.width for number in self._rows)

    def add(self, step: int, figures: Mapping[str, float]) -> None:
        """Adds a step's figures."""
        self.latest.pop(step, None)
        self.latest[step] = figures
        if len(self.latest) > self.most:
            del self.latest[next(iter(self.latest))]
        self._put(self._rows, step // self.width, 1, figures)
        while len(self._rows) > self.most:
            self.widen(2 * self.width)

    def row(self, step: int) -> Mapping[str, float]:
        """Returns the means of the row that ``step`` is in; raises KeyError where there is none."""
        count, sums = self._rows[step // self.width]
        return {name: each / count for name, each in sums.items()}

    def widen(self, width: int) -> None:
        """Makes rows of ``width`` steps, a multiple of what they are of."""
        factor, self.width = width // self.width, width
        wider: dict[int, tuple[int, dict[str, float]]] = {}
        for number, (count, sums) in self._rows.items():
            self._put(wider, number // factor, count, sums)
        self._rows = wider

    @staticmethod
    def _put(
        rows: dict[int, tuple[int, dict[str, float]]],
        number: int,
        count: int,
        sums: Mapping[str, float],
    ) -> None:
        known, total = rows.get(number, (0, {}))
        # Of figures that only some steps have, there is no mean.
        names = sums.keys() if not known else total.keys() & sums.keys()
        rows[number] = (known + count, {name: total.get(name, 0.0) + sums[name] for name in names})
