"""Symmetric delay: the offset of two clocks if messages take as long one way as the other.

    offset     ˅      ˅                 ˅
            ┬   ˅  ˅      ˅       ˅       ˅  ┬   the tightest bounds of each window of time
       ─ ─ ─│─ ─o─ ─ ─ ─┬─ ─ ─ ─ ─ ─┬─ ─ ─ o │   o  half way between them
            ┴       ˄   │   o   ˄   │        ┴   the straight line of least squares through
              ˄  ˄      ┴     ˄   ˄ ┴  ˄         those, and the band in which the truth is

1. *Minimum filter.* The quickest message of a window waited least, and says most of the offset.
2. *Least squares.* Of a clock that drifts evenly the offset is a straight line.
3. *Band.* Working and Hotelling's: that of 98 in 100 lies in it along its whole length, as far as
   windows are off independently of one another. It is known from how they scatter alone, whatever
   delays are like; few windows say little, which the degrees of freedom account for.

That both ways are alike cannot be seen from inside, and the band holds only if they are.

Sources: D. L. Mills, RFC 5905, section 10 (clock filter); H. Working and H. Hotelling,
"Applications of the theory of error to the interpretation of trends", 1929; N. R. Draper and
H. Smith, "Applied Regression Analysis", chapters 1 and 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from serried.trace.clocks.line import Reals
from serried.trace.clocks.region import STEEPEST

Side = tuple[Reals, Reals]
"""Times and values of one side's bounds."""
Sides = tuple[Side, Side]
"""Lower and upper bounds."""

_WINDOWS, _FEWEST = 16, 4
"""Windows of time, and the bounds of either side that one has at least."""
_OUTSIDE = 0.02
"""How often the truth may leave the band."""
_SURE_DRIFT = STEEPEST / 4
"""A drift that is less surely known is what a few late messages make, not clocks."""


@dataclass(frozen=True, eq=False)
class Windows:
    """Holds what the tightest bounds of each window of time say: when, the offset, and how far
    at most it is from there."""

    at: Reals
    offset: Reals
    half: Reals


@dataclass(frozen=True)
class SymmetricLine:
    """Holds a straight line of least squares: its height and slope at a middle, and its band."""

    middle: float
    offset: float
    slope: float
    offset_off: float
    """How far the height at the middle may be off."""
    slope_off: float

    def at(self, at: Reals) -> Reals:
        """Returns the offset at each time, in nanoseconds."""
        return np.asarray(self.offset + self.slope * (at - self.middle), dtype=float)

    def band_at(self, at: Reals) -> Reals:
        """Returns how far the offset may be off at each time, if both ways are alike."""
        return np.hypot(self.offset_off, self.slope_off * (at - self.middle))

    @property
    def tells_drift(self) -> bool:
        """Whether its slope is no chance, and known to a part of what clocks drift at most."""
        return self.slope_off <= min(abs(self.slope), _SURE_DRIFT) and abs(self.slope) <= STEEPEST


def symmetric_line(sides: Sides, drift: float) -> SymmetricLine:
    """Returns the line half way between the tightest of lower and upper bounds.

    ``drift`` is about their slope. The line's own is 0 where they do not show a drift; it may
    then still be as steep as what they show, and as clocks get.
    """
    line = _least_squares(tightest(sides, drift), drift)
    if line.tells_drift:
        return line
    level = _least_squares(tightest(sides, 0.0), 0.0)
    unknown = min(abs(line.slope) + line.slope_off, STEEPEST)
    return replace(level, slope=0.0, slope_off=unknown)


def tightest(sides: Sides, drift: float) -> Windows:
    """Returns the tightest bounds of windows of time, after ``drift`` is taken off.

    >>> sides = (np.array([0.0, 1]), np.array([-5.0, -3])), (np.array([0.0, 1]), np.array([9.0, 7]))
    >>> found = tightest(sides, 0.0)
    >>> found.at.tolist(), found.offset.tolist(), found.half.tolist()
    ([1.0], [2.0], [5.0])
    """
    times = [at for at, _ in sides]
    low, high = (value - drift * at for at, value in sides)
    count = max(1, min(_WINDOWS, min(map(len, times)) // _FEWEST))
    # Windows hold as many bounds each: messages come in bursts, and none is left empty.
    edges = np.quantile(np.concatenate(times), np.linspace(0, 1, count + 1)[1:-1])
    of_low, of_high = (np.searchsorted(edges, at, side="right") for at in times)
    rows = []
    for number in range(count):
        mine = np.flatnonzero(of_low == number), np.flatnonzero(of_high == number)
        if len(mine[0]) and len(mine[1]):
            rows.append((mine[0][low[mine[0]].argmax()], mine[1][high[mine[1]].argmin()]))
    # The two sides' bounds may lie in times of their own.
    below, above = np.array(rows or [(low.argmax(), high.argmin())]).T
    return Windows(
        (times[0][below] + times[1][above]) / 2,
        (low[below] + high[above]) / 2,
        (high[above] - low[below]) / 2,
    )


def _least_squares(windows: Windows, drift: float) -> SymmetricLine:
    """Returns the line through windows from which ``drift`` was taken off.

    Two windows are always on a line, which says nothing of how far off they are; one or two
    therefore leave that open.
    """
    middle, offset = float(windows.at.mean()), float(windows.offset.mean())
    away = windows.at - middle
    spread = float(away @ away)
    freedom = len(away) - 2
    if freedom < 1 or spread <= 0:
        return SymmetricLine(middle, offset + drift * middle, drift, math.inf, math.inf)
    slope = float(away @ windows.offset) / spread
    residuals = windows.offset - offset - slope * away
    deviation = math.sqrt(float(residuals @ residuals) / freedom)
    factor = working_hotelling(freedom)
    return SymmetricLine(
        middle,
        offset + drift * middle,
        slope + drift,
        factor * deviation / math.sqrt(len(away)),
        factor * deviation / math.sqrt(spread),
    )


def working_hotelling(freedom: int) -> float:
    """Returns how many standard deviations a line's band is: the root of 2 F(2, ``freedom``).

    Fisher's F of two degrees of freedom has a closed form.

    >>> [round(working_hotelling(freedom), 2) for freedom in (1, 2, 14)]
    [49.99, 9.9, 3.24]
    """
    return math.sqrt(freedom * (_OUTSIDE ** (-2 / freedom) - 1))
