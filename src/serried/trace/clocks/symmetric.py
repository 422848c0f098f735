"""Even figure: how well an offset is known if messages take as long one way as the other.

    offset      ┬                          ┬      a weighted straight line through the centres
       ─ ─ ─ ─ ─o─ ─ ─ ─┬─ ─ ─ ─ ─ ─┬─ ─ ─ o      of windows of time (``clock_quick``); figure:
                ┴       o           o      ┴      how far the truth may be from it
                        ┴           ┴

1. *Variances* are those of the centres. Where blocks of time within windows, or windows beside the
   line, differ by more than those say, they are too small by that, and taken larger. Delays that
   grow or shrink all along the run may do so one way only, and then tilt the line by as much: that
   is added where messages are not answered at once, as pings are.
2. *Figure.* Student's t, two-sided 98 of 100, times the standard deviation. So much holds in 95 of
   100 though the deviation be found a sixth too small, and is at most five times the median error
   of a normal variable though it be found 1.4 times too large, to which side all widening errs.

That both ways are alike cannot be seen from inside, and the figure holds only if they are.

Sources: widening by residuals R. T. Birge, Physical Review 40, 1932; Student's quantile
M. Abramowitz and I. Stegun, 26.7.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from serried.trace.clocks.bounds import STEEPEST
from serried.trace.clocks.line import Reals
from serried.trace.clocks.quickest import Centres, Sides, centres_of

_NORMAL = 2.3263
"""Of a normal variable 98 of 100 are no further from its mean, in standard deviations."""
_TELLING = 6
"""Windows beyond the line's two from which on they alone tell that variances are too small."""
_SURE_DRIFT = STEEPEST / 4
"""A drift that is less surely known is what a few late messages make, not clocks."""
_LEAST_FREEDOM = 1.5
"""Below that Student's variable is not what a handful of bounds is."""


@dataclass(frozen=True)
class EvenLine:
    """Is a straight line through centres: its height and slope at a middle, and their variances."""

    middle: float
    offset: float
    slope: float
    offset_variance: float
    slope_variance: float
    deviations: float
    """How many standard deviations the figure is."""

    def at(self, at: Reals) -> Reals:
        """Returns the offset at each time, in nanoseconds."""
        return np.asarray(self.offset + self.slope * (at - self.middle), dtype=float)

    def figure_at(self, at: Reals) -> Reals:
        """Returns how far the offset may be off at each time, if both ways are alike."""
        variance = self.offset_variance + self.slope_variance * (at - self.middle) ** 2
        return np.asarray(self.deviations * np.sqrt(variance), dtype=float)

    @property
    def tells_drift(self) -> bool:
        """Whether its slope is no chance, and known to a part of what clocks drift at most."""
        off = self.deviations * math.sqrt(self.slope_variance)
        return off <= min(abs(self.slope), _SURE_DRIFT)

    def tilted(self, slope: float) -> EvenLine:
        """Returns the line of what had ``slope`` taken off."""
        return replace(self, offset=self.offset + slope * self.middle, slope=self.slope + slope)


def even_line(sides: Sides, drift: float, drift_off: float, *, in_turn: bool) -> EvenLine:
    """Returns the line half way between the quickest of lower and upper bounds.

    ``drift`` is about the slope of the bounds, and ``drift_off`` how far it may be from it, for
    what is too short to tell. ``in_turn`` says that every message is answered by one the other
    way at once, so that a trend of delays is one of both ways. Its slope is 0 where the bounds
    do not show a drift.
    """
    line = _line(centres_of(sides, drift), drift_off, in_turn).tilted(drift)
    # Which are the quickest is surer once the line's own drift is taken off.
    line = _line(centres_of(sides, line.slope), drift_off, in_turn).tilted(line.slope)
    if line.tells_drift and abs(line.slope) <= STEEPEST:
        return line
    # What is too short to show a drift has none fitted; it may be as steep as clocks get.
    even = _line(centres_of(sides, 0.0), drift_off, in_turn)
    unknown = min(line.slope_variance + line.slope**2, (STEEPEST / even.deviations) ** 2)
    return replace(even, slope=0.0, slope_variance=unknown)


def _line(centres: Centres, drift_off: float, in_turn: bool) -> EvenLine:
    """Returns the line through the centres, each by its weight."""
    at, value = centres.at, centres.value
    if not np.isfinite(centres.variance).all():
        # Too few bounds to tell how far off they are: only the strip itself limits the error.
        return EvenLine(float(at.mean()), float(value.mean()), 0.0, float("inf"), 0.0, 1.0)
    weights = centres.weights
    middle = float(np.average(at, weights=weights))
    offset = float(np.average(value, weights=weights))
    away = at - middle
    lever = float((weights * away**2).sum())
    certain, deviations = float(weights.sum()), _student(max(centres.freedom, _LEAST_FREEDOM))
    if lever <= 0:
        variance = _wider(centres, 0.0) / certain + centres.unlike
        return EvenLine(middle, offset, 0.0, variance, drift_off**2, deviations)
    slope, trend = (float((weights * away * each).sum() / lever) for each in (value, centres.delay))
    residuals = float((weights * (value - offset - slope * away) ** 2).sum())
    wider = _wider(centres, residuals)
    drifting = 0.0 if in_turn else max(0.0, trend**2 - wider / lever)
    variance = wider / certain + centres.unlike
    return EvenLine(middle, offset, slope, variance, wider / lever + drifting, deviations)


def _wider(centres: Centres, residuals: float) -> float:
    """Returns by how much variances are too small, as blocks and windows that differ tell."""
    windows = max(len(centres.at) - 2, 0)
    freedom = centres.blocks + windows
    together = (centres.between + residuals * (windows > 0)) / freedom if freedom else 1.0
    alone = residuals / windows if windows >= _TELLING else 1.0
    return max(1.0, together, alone)


def _student(freedom: float) -> float:
    """Returns within how many standard deviations Student's variable is in 98 of 100 draws.

    >>> [round(_student(each), 2) for each in (5, 10, 1e9)]
    [3.35, 2.76, 2.33]
    """
    z = _NORMAL
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, 1))
