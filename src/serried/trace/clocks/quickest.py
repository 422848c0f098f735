"""Quick ones: what the quickest messages of a window of time say of two clocks, and how surely.

        ·   ·      ·                  ·          the slow tell little of the offset
     ·     ·    ·       ·    ·  ·   ·
    ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄           the quickest k of n: their mean
      ·  ·   ·  ·   ·  ·  ·    ·
    ═══ centre: half way between both sides' means, if delays are alike ═══
      ˄  ˄   ˄

1. *Centre.* The mean of several is off by much the same, and nearly normally, whatever the law of
   delays, which the quickest alone is not; and what is slow, and often slower one way, has no part.
2. *Variance.* With q the k-th quickest and u = max(q - x, 0), the mean of the k quickest of n has
   variance n var(u) / k^2, again whatever the law: it is the mean of u that was drawn, over k / n.
3. *Choice.* Windows and k are those that make the mean of all centres surest, k among a quarter of
   n and its halves: few where the quickest are close together (exponential delays), many where
   being quickest is chance; long windows where few messages are quick. So many are averaged that
   the variance itself is known, for else Student's factor would be most of the figure.
4. *Unlike sides.* If delays are alike, so is how far the mean is below q. What both sides differ
   in it, beyond chance, shows that they are not, or that many wait one way: their means are then
   off from the least delay by twice as much, of a density that rises straight from nothing.

Source of 2.: the influence function of a trimmed mean, P. J. Huber, "Robust Statistics", 1981,
section 3.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count, takewhile

import numpy as np

from serried.trace.clocks.line import Reals

Side = tuple[Reals, Reals]
"""Times and values of one side's bounds."""
Sides = tuple[Side, Side]
"""Lower and upper bounds."""

_WINDOWS = 16
_FEWEST, _FEWEST_FOR_TWO = 20, 6
"""Bounds of either side that a window of time needs; two windows take fewer."""
_SHARE = 4
"""The quickest of a window are this part of it at most, but for a window of few."""
_ENOUGH, _FEWEST_QUICK = 8, 4
"""So many are taken of a few, if they are half; and so many are averaged at least."""
_FREEDOM = 0.4
"""Degrees of freedom of the variance for each of the quickest, from draws of several laws."""
_ENOUGH_FREEDOM = 16.0
"""Degrees of freedom without which Student's factor would be far above a normal variable's."""
_BLOCKS = 4
"""Blocks of time in a window, each of as many bounds at least."""
_FROM_LEAST = 2.0
"""How often as far as below the k-th quickest the mean is above the least possible."""


@dataclass(frozen=True, eq=False)
class Centres:
    """Holds what windows say of the offset: when, how much, how surely."""

    at: Reals
    value: Reals
    delay: Reals
    """Means of both sides' delays: alike all along, if nothing but the clocks changes."""
    variance: Reals
    freedom: float
    between: float
    """The sum of squares between blocks of time, in variances: without trends, ``blocks``."""
    blocks: int
    unlike: float
    """The square of how far unlike sides may have moved all centres."""

    @property
    def weights(self) -> Reals:
        """What each centre counts: as a variance is a guess, half of it is what all share."""
        variance = (self.variance + np.median(self.variance)) / 2
        return np.asarray(1 / np.maximum(variance, 1.0), dtype=float)  # stamps tell a nanosecond

    @property
    def unsure(self) -> float:
        """The variance of the mean of all centres."""
        wider = max(1.0, self.between / self.blocks) if self.blocks else 1.0
        return float(self.variance.mean()) * wider / len(self.at) + self.unlike


def centres_of(sides: Sides, drift: float) -> Centres:
    """Returns the centres of bounds from which ``drift`` is taken off, surest of all ways."""
    most = _most_windows(sides)
    halved = takewhile(lambda each: each >= min(most, 2), (most >> i for i in count()))
    found = [each for number in halved for each in _tried(_windows(sides, drift, number))]
    enough = min(_ENOUGH_FREEDOM, max(each.freedom for each in found))
    return min((each for each in found if each.freedom >= enough), key=lambda each: each.unsure)


def narrowest_half(sides: Sides, drift: float) -> float:
    """Returns half of what lies between the tightest bounds of that window where it is least."""
    windows = _windows(sides, drift, _most_windows(sides))
    return max(float(min((low[1].min() + high[1].min()) / 2 for low, high in windows)), 0.0)


def _most_windows(sides: Sides) -> int:
    fewest = min(len(at) for at, _ in sides)
    # Two windows at least, for one alone says nothing of the drift.
    return min(_WINDOWS, max(fewest // _FEWEST, 1 + (fewest >= _FEWEST_FOR_TWO)))


def _windows(sides: Sides, drift: float, windows: int) -> list[Sides]:
    """Returns the bounds of windows of time that have both sides', as delays: the least is best."""
    times = [at for at, _ in sides]
    edges = np.quantile(np.concatenate(times), np.linspace(0, 1, windows + 1)[1:-1])
    number = [np.searchsorted(edges, at, side="right") for at in times]
    delays = [sign * (value - drift * at) for sign, (at, value) in zip((-1, 1), sides, strict=True)]
    found = []
    for each in range(windows):
        low, high = (one == each for one in number)
        if low.any() and high.any():
            found.append(((times[0][low], delays[0][low]), (times[1][high], delays[1][high])))
    # The two sides' bounds may lie in times of their own.
    return found or [((times[0], delays[0]), (times[1], delays[1]))]


def _tried(windows: Sequence[Sides]) -> list[Centres]:
    """Returns the centres by each number of the quickest."""
    counts = [[_counts(len(at)) for at, _ in window] for window in windows]
    depth = min(len(tried) for each in counts for tried in each)
    low, high = (
        [_means(window[n], tried[n][:depth]) for window, tried in zip(windows, counts, strict=True)]
        for n in (0, 1)
    )
    return [_joined([each[n] for each in low], [each[n] for each in high]) for n in range(depth)]


def _counts(bounds: int) -> list[int]:
    """Returns how many of the quickest are tried.

    >>> _counts(100), _counts(16), _counts(3)
    ([25, 12, 6], [8, 4], [1])
    """
    most = max(bounds // _SHARE, min(_ENOUGH, bounds // 2), 1)
    return [most, *takewhile(lambda each: each >= _FEWEST_QUICK, (most >> i for i in count(1)))]


@dataclass(frozen=True)
class _Mean:
    """Is the mean of the quickest of one side in one window."""

    at: float
    value: float
    variance: float
    freedom: float
    blocks: Reals
    """How far the bounds of each block of time moved it; none for a few bounds."""
    by_chance: Reals
    """The squares of that, by chance."""
    below: float
    """How far it is below the k-th quickest."""


def _means(side: Side, counts: Sequence[int]) -> list[_Mean]:
    """Returns the mean of the quickest, by each of ``counts``."""
    order = np.argsort(side[1], kind="stable")
    at, delay = (each[order] for each in side)
    n = len(delay)
    if n < 2:
        return [_Mean(float(at[0]), float(delay[0]), np.inf, 0.0, np.zeros(0), np.zeros(0), 0.0)]
    blocks = _BLOCKS if n >= _BLOCKS**2 else 0
    # The number of each one's block of time.
    block = np.empty(n, dtype=np.int64)
    block[np.argsort(at, kind="stable")] = np.arange(n) * blocks // n
    sizes = np.bincount(block, minlength=blocks)[:blocks]
    found = []
    for quickest in counts:
        limit = (delay[quickest - 1] + delay[quickest]) / 2
        quicker = limit - delay[:quickest]
        below = float(quicker.mean())
        variance = (float(quicker @ quicker) - quickest * below * below * quickest / n) / (n - 1)
        sums = np.bincount(block[:quickest], quicker, blocks)[:blocks]
        found.append(
            _Mean(
                float(at[:quickest].mean()),
                float(limit) - below,
                variance * n / quickest**2,
                _FREEDOM * quickest,
                sums / quickest - sizes * (below / n),
                variance * sizes * (1 - sizes / n) / quickest**2,
                below,
            )
        )
    return found


def _joined(lows: Sequence[_Mean], highs: Sequence[_Mean]) -> Centres:
    pairs = [*zip(lows, highs, strict=True)]
    rows = [
        (
            (low.at + high.at) / 2,
            (high.value - low.value) / 2,
            (high.value + low.value) / 2,
            (low.variance + high.variance) / 4,
        )
        for low, high in pairs
    ]
    at, value, delay, variance = np.array(rows).T
    between = [_between(low, high) for low, high in pairs]
    found = Centres(
        at,
        value,
        delay,
        variance,
        sum(each.freedom for each in (*lows, *highs)),
        sum(squares for squares, _ in between),
        sum(blocks for _, blocks in between),
        0.0,
    )
    apart = np.array([(high.below - low.below) / 2 for low, high in pairs])
    return replace(found, unlike=_unlike(found.weights, apart))


def _between(low: _Mean, high: _Mean) -> tuple[float, int]:
    """Returns the squares of how far blocks of time moved a centre, in variances, and how many.

    What slows both ways at once moves it nowhere.
    """
    by_chance = low.by_chance + high.by_chance if low.blocks.size == high.blocks.size else ()
    if not len(by_chance) or not np.all(by_chance):
        return 0.0, 0
    squares = (high.blocks - low.blocks) ** 2 / by_chance
    return float(squares.mean()) * (_BLOCKS - 1), _BLOCKS - 1


def _unlike(weights: Reals, apart: Reals) -> float:
    """Returns the square of how far unlike sides may have moved all centres, beyond chance."""
    if not weights.all():
        return 0.0
    mean = float(np.average(apart, weights=weights))
    return _FROM_LEAST**2 * max(0.0, mean**2 - 1 / float(weights.sum()))
