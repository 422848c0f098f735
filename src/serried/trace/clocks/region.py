"""The feasible region: all straight lines between bounds, and how far apart they may lie.

    upper      ˅            ˅         A line of slope d fits if its height at 0 is between
       hi ·····˅·····˅····· ˅·            L(d) = max (lower - d t)  and  U(d) = min (upper - d t)
       lo ··˄·····˄·····˄·····        U(d) - L(d), the width of the region, is concave in d:
    lower   ˄     ˄     ˄             it bends only at the slopes of the hulls' edges.

So where it is widest, the least and greatest slope that fit, and the highest and lowest line at
any time stand at one of those slopes, and are found exactly by trying each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

STEEPEST = 2e-4
"""The greatest drift between two clocks: 200 ppm, as crystals stay within 100 of their frequency.

RFC 5905 counts on 15 ppm of a clock that NTP has disciplined; only a clock that is being set at
that moment is steeper, and is followed in pieces.
"""
RESOLUTION_NS = 1_000.0
"""By how much bounds may cross before they contradict: other tools' stamps are microseconds."""
_LARGEST_HULL = 1_024


@dataclass(frozen=True, eq=False)
class FeasibleRegion:
    """Holds the hulls of both sides' bounds, and the slopes of the lines that fit between."""

    lower: tuple[Reals, Reals]
    upper: tuple[Reals, Reals]
    slope: float
    """Where the region is widest; where its bounds cross least if no line fits."""
    width: float
    slopes: Reals
    """Those among which the extreme lines are."""

    @property
    def is_feasible(self) -> bool:
        """Whether any line fits."""
        return self.width >= -RESOLUTION_NS

    def range_at(self, at: Reals) -> tuple[Reals, Reals]:
        """Returns the lowest and the highest line at each time.

        >>> times, zero = np.array([0.0, 10.0]), np.zeros(2)
        >>> region = feasible_region((times, zero - 1), (times, zero + 3))
        >>> [each.tolist() for each in region.range_at(np.array([0.0, 5.0, 10.0]))]
        [[-1.0, -1.0, -1.0], [3.0, 3.0, 3.0]]
        """
        low = _extreme(*self.lower, self.slopes, np.max)
        high = _extreme(*self.upper, self.slopes, np.min)
        crossed = np.maximum(low - high, 0) / 2  # by less than a time stamp can tell
        tilt = self.slopes[None, :] * at[:, None]
        lowest = (low - crossed + tilt).min(axis=1)
        return lowest, np.maximum((high + crossed + tilt).max(axis=1), lowest)


def feasible_region(lower: tuple[Reals, Reals], upper: tuple[Reals, Reals]) -> FeasibleRegion:
    """Returns the region between bounds, their times and values; of either at least one."""
    below, above = _hull(lower[0], -lower[1]), _hull(*upper)
    hulls = (below[0], -below[1]), above
    edges = [_edges(*hull) for hull in hulls]
    tried = np.unique(np.clip(np.concatenate([[0.0, -STEEPEST, STEEPEST], *edges]), -1, 1))
    tried = tried[np.abs(tried) <= STEEPEST]
    width = _extreme(*hulls[1], tried, np.min) - _extreme(*hulls[0], tried, np.max)
    best = int(np.argmax(width))
    none = int(np.flatnonzero(tried == 0.0)[0])
    # Bounds at one moment alone say nothing of drift.
    best = none if width[none] >= width[best] else best
    if width[best] <= 0:
        return FeasibleRegion(
            *hulls, float(tried[best]), float(width[best]), tried[best : best + 1]
        )
    return FeasibleRegion(*hulls, float(tried[best]), float(width[best]), _that_fit(tried, width))


def _that_fit(slopes: Reals, width: Reals) -> Reals:
    """Returns the slopes of width above 0, and the two, between slopes, where it becomes 0."""
    fit = np.flatnonzero(width > 0)
    ends = []
    for inside, outside in ((fit[0], fit[0] - 1), (fit[-1], fit[-1] + 1)):
        if 0 <= outside < len(slopes):
            # The width is straight between two tried slopes: this is where it crosses 0.
            share = width[inside] / (width[inside] - width[outside])
            ends.append(slopes[inside] + share * (slopes[outside] - slopes[inside]))
    return np.concatenate([slopes[fit], ends])


def _extreme(at: Reals, value: Reals, slopes: Reals, most: Callable[..., Reals]) -> Reals:
    """Returns where lines of ``slopes`` through the outermost bounds stand at time 0."""
    return np.asarray(most(value[:, None] - at[:, None] * slopes[None, :], axis=0), dtype=float)


def _edges(at: Reals, value: Reals) -> Reals:
    return np.asarray(np.diff(value) / np.diff(at), dtype=float)


def _hull(at: Reals, value: Reals) -> tuple[Reals, Reals]:
    """Returns the lower convex hull of points: no other can be the tightest, whatever the slope.

    A point above the line between its neighbours is none of it; such points go, all at once,
    until there are none. Of a hull that bends a thousand times some points are kept.

    >>> at, value = _hull(np.array([0.0, 1, 2, 3, 3]), np.array([0.0, 5, 0.5, 1, 9]))
    >>> at.tolist(), value.tolist()
    ([0.0, 2.0, 3.0], [0.0, 0.5, 1.0])
    """
    order = np.lexsort((value, at))
    at, value = at[order], value[order]
    # Of points at one moment only the lowest can be on the hull.
    first = np.diff(at, prepend=at[0] - 1) > 0
    at, value = at[first], value[first]
    while len(at) > 2:
        chord = (at[1:-1] - at[:-2]) * (value[2:] - value[:-2])
        rise = (value[1:-1] - value[:-2]) * (at[2:] - at[:-2])
        kept = np.concatenate([[True], rise < chord, [True]])
        if kept.all():
            break
        at, value = at[kept], value[kept]
    if len(at) > _LARGEST_HULL:
        some = np.linspace(0, len(at) - 1, _LARGEST_HULL).astype(int)
        at, value = at[some], value[some]
    return at, value
