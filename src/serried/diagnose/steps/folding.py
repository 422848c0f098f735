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

import numpy as np
from numpy.typing import NDArray

MOST_ROWS = 2_048
"""Rows of one rank that are kept, about 200 bytes each, and as many of its latest steps."""

_Steps = tuple[NDArray[np.int64], Mapping[str, NDArray[np.float64]]]
"""Rising steps, and their figures."""


@dataclass
class FoldedSteps:
    """Holds means of figures by step, of ``width`` steps each; the first of them is its number."""

    most: int = MOST_ROWS
    width: int = 1
    _latest: dict[int, Mapping[str, float]] = field(default_factory=dict)
    _rows: dict[int, tuple[int, dict[str, float]]] = field(default_factory=dict)
    """By step over width: how many steps were added, and the sums of their figures."""
    _fresh: list[_Steps] = field(default_factory=list)
    """Runs of the latest steps that are not yet told one by one."""
    _last: int = -1
    """The highest step that was added."""

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[int]:
        """Yields the first step of every row."""
        return (number * self.width for number in self._rows)

    @property
    def latest(self) -> dict[int, Mapping[str, float]]:
        """The last steps, each with its own figures, in the order in which they came."""
        for steps, figures in self._fresh:
            columns = zip(*(each.tolist() for each in figures.values()), strict=True)
            for step, values in zip(steps.tolist(), columns, strict=True):
                self._keep(step, dict(zip(figures, values, strict=True)))
        self._fresh.clear()
        return self._latest

    def add(self, step: int, figures: Mapping[str, float]) -> None:
        """Adds a step's figures."""
        _ = self.latest
        self._keep(step, figures)
        self._last = max(self._last, step)
        self._put(self._rows, step // self.width, 1, figures)
        while len(self._rows) > self.most:
            self.widen(2 * self.width)

    def is_before(self, steps: NDArray[np.int64]) -> bool:
        """Tells whether steps rise, and all that were added came before them."""
        return bool(steps[0] > self._last and (steps[1:] > steps[:-1]).all())

    def add_run(self, steps: NDArray[np.int64], figures: Mapping[str, NDArray[np.float64]]) -> None:
        """Adds the figures of many steps that rise, and come after those that were added."""
        self._last = int(steps[-1])
        self._fresh.append((steps[-self.most :], {n: f[-self.most :] for n, f in figures.items()}))
        while sum(len(each) for each, _ in self._fresh[1:]) >= self.most:
            del self._fresh[0]
        while True:
            numbers = steps // self.width
            starts = np.flatnonzero(np.diff(numbers, prepend=-1))
            if len(starts) <= self.most:
                break
            self.widen(2 * self.width)
        counts = np.diff([*starts.tolist(), len(steps)]).tolist()
        sums = {name: np.add.reduceat(each, starts).tolist() for name, each in figures.items()}
        for at, (number, count) in enumerate(zip(numbers[starts].tolist(), counts, strict=True)):
            self._put(self._rows, number, count, {name: each[at] for name, each in sums.items()})
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

    def _keep(self, step: int, figures: Mapping[str, float]) -> None:
        self._latest.pop(step, None)
        self._latest[step] = figures
        if len(self._latest) > self.most:
            del self._latest[next(iter(self._latest))]

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
