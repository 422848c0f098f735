"""Clock fit: one clock against another, from the moments at which messages crossed.

    clock A ──────s────────────r'─────>        A to B:  s + a <= r + b     o >= s - r     lower
                   \\          /                B to A:  s' <= r'           o <= r' - s'   upper
    clock B ────────r────────s'───────>        o(t) = what turns B's time into A's

Every message bounds the offset o from one side; the bound is off by the message's delay. The
tightest bounds of either side lie a smallest delay above and below the true line, and where
both ways have the same smallest delay, the truth is half way. So:

1. the drift is the slope of the widest strip between the lower and the upper bounds;
2. in each window of time the tightest bounds give a centre; how far apart the tightest few
   are says how far the tightest may be from the smallest delay (delays above their smallest
   are taken as exponential near it: order statistics are then 1/(n lambda) apart);
3. a weighted line through the centres is the offset and its drift, with its covariance.

The stated uncertainty is 3 standard deviations: half the difference of two exponential
remainders is a Laplace variable, which 2.2 would cover in 95.5 of 100 cases; the rest is for
the deviation's own error. It is never more than the strip itself allows. What no log can show is a
path that is always slower one way; half that difference comes on top.

Source of the strip: Zhang, Liu and Xia, "Clock synchronization algorithms for network
measurements", INFOCOM 2002 (convex hulls); of separate minima: Marzullo and Owicki 1983.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

DEVIATIONS = 3.0
"""How many standard deviations the stated uncertainty is."""

_WINDOWS = 16
_FEWEST, _FEWEST_FOR_TWO = 20, 6
"""Bounds of either side that a window of time needs; two windows take fewer."""
_ORDER = 12
"""How many of the tightest bounds say how far apart they are."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """Holds what messages say of the offset: at ``at_ns`` of clock B it is beyond ``value_ns``."""

    at_ns: NDArray[np.int64]
    value_ns: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.at_ns)


@dataclass(frozen=True)
class ClockLine:
    """Is the offset of one clock to another, a line in time, and how far it is to be trusted.

    ``offset_ns + drift * (t - at_ns)`` turns time t of clock B into A's; variances are of the
    offset at ``at_ns``, of the drift (per nanosecond), and none between them.
    """

    at_ns: int
    offset_ns: float
    drift: float
    offset_variance: float
    drift_variance: float
    bound_ns: float
    """Half the strip: no error is larger, wherever a message could travel in no time."""

    def offset_at(self, at_ns: NDArray[np.int64]) -> Reals:
        """Returns the offset at times of clock B, in nanoseconds."""
        return np.asarray(self.offset_ns + self.drift * (at_ns - self.at_ns), dtype=np.float64)

    def uncertainty_ns(self, at_ns: int) -> float:
        """Returns how far the offset at one time may be off, in nanoseconds."""
        away = float(at_ns - self.at_ns)
        deviation = float(np.sqrt(self.offset_variance + self.drift_variance * away * away))
        return min(DEVIATIONS * deviation, self.bound_ns)


def fit_clock(lower: Bounds, upper: Bounds) -> ClockLine | None:
    """Returns the line between the bounds; None where one side has none.

    Lower bounds above upper ones (a clock that jumped) give the line that crosses least.
    """
    if not len(lower) or not len(upper):
        return None
    centre = int(np.median(np.concatenate([lower.at_ns, upper.at_ns])))
    times = [(bounds.at_ns - centre).astype(float) for bounds in (lower, upper)]
    # Offsets between machines can be hours; what remains is small enough for floats.
    base = int(np.median(np.concatenate([lower.value_ns, upper.value_ns])))
    values = [(bounds.value_ns - base).astype(float) for bounds in (lower, upper)]
    drift = _drift(times, values)
    flat = [value - drift * at for at, value in zip(times, values, strict=True)]
    half = (float(flat[1].min()) - float(flat[0].max())) / 2
    at, centres, variances = _windows(times, flat)
    offset, slope, offset_variance, slope_variance, middle = _line(at, centres, variances)
    return ClockLine(
        at_ns=centre + round(middle),
        offset_ns=base + offset + drift * middle,
        drift=drift + slope,
        offset_variance=offset_variance,
        drift_variance=slope_variance,
        # Bounds that touch leave a time stamp's width; those that cross say nothing.
        bound_ns=max(half, 1.0) if half > -1.0 else float("inf"),
    )


def _drift(times: list[Reals], values: list[Reals]) -> float:
    """Returns the slope of the widest strip between lower and upper bounds.

    The width, min(upper - b t) - max(lower - b t), is concave in the slope b: its peak is found
    by thirds, first among the slopes that clocks have (1000 ppm), on the outermost bounds only.
    """
    span = max(float(np.ptp(np.concatenate(times))), 1.0)
    if span <= 1.0:
        return 0.0
    hulls = [_hull(times[0], -values[0]), _hull(times[1], values[1])]

    def width(slope: float) -> float:
        below = float((-hulls[0][1] - slope * hulls[0][0]).max())
        above = float((hulls[1][1] - slope * hulls[1][0]).min())
        return above - below

    low, high = -1e-3, 1e-3
    for _ in range(100):
        third = (high - low) / 3
        if width(low + third) < width(high - third):
            low += third
        else:
            high -= third
    best = (low + high) / 2
    # Bounds at one moment alone say nothing of drift.
    return best if width(best) > width(0.0) else 0.0


def _hull(at: Reals, value: Reals) -> tuple[Reals, Reals]:
    """Returns the lower convex hull of points: no other can be the tightest, whatever the slope."""
    order = np.lexsort((value, at))
    kept: list[tuple[float, float]] = []
    for x, y in zip(at[order].tolist(), value[order].tolist(), strict=True):
        while len(kept) > 1:
            (ax, ay), (bx, by) = kept[-2:]
            if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0:
                break
            kept.pop()
        kept.append((x, y))
    hull = np.array(kept)
    return hull[:, 0], hull[:, 1]


def _windows(times: list[Reals], flat: list[Reals]) -> tuple[Reals, Reals, Reals]:
    """Returns, for each window of time with bounds of both sides, its time, centre, variance."""
    both = np.concatenate(times)
    fewest = min(len(each) for each in times)
    # Two windows at least, for one alone says nothing of the drift.
    count = min(_WINDOWS, max(fewest // _FEWEST, 1 + (fewest >= _FEWEST_FOR_TWO)))
    edges = np.quantile(both, np.linspace(0, 1, count + 1))
    rows = []
    for first, last in pairwise(edges.tolist()):
        mine = [(at >= first) & (at <= last) for at in times]
        if not all(each.any() for each in mine):
            continue
        (below, at_below), (above, at_above) = (
            _tightest(sign * value[each], at[each])
            for sign, value, at, each in zip((-1, 1), flat, times, mine, strict=True)
        )
        spacing = (_spacing(-flat[0][mine[0]]) + _spacing(flat[1][mine[1]])) / 2
        rows.append(((at_below + at_above) / 2, (above - below) / 2, spacing**2 / 2))
    at, centres, variances = np.array(rows).T
    return at, centres, variances


def _tightest(values: Reals, at: Reals) -> tuple[float, float]:
    best = int(np.argmin(values))
    return float(values[best]), float(at[best])


def _spacing(values: Reals) -> float:
    """Returns how far the smallest of ``values`` is from the smallest possible, by expectation.

    Of n exponential values, the j-th smallest lies 1/lambda (1/(n-1) + … + 1/(n-j+1)) above the
    smallest, and the smallest 1/(n lambda) above the least possible.
    """
    n = len(values)
    if n < 2:
        return float("inf")
    j = min(_ORDER, n)
    tightest = np.partition(values, j - 1)[:j]
    steps = sum(1 / (n - i) for i in range(1, j))
    return float(tightest.max() - tightest.min()) / steps / n


def _line(at: Reals, centres: Reals, variances: Reals) -> tuple[float, float, float, float, float]:
    """Returns offset and slope at the weighted mean time, their variances, and that time."""
    if not np.isfinite(variances).all():
        # Too few bounds to tell how far off they are: only the strip itself limits the error.
        return float(np.mean(centres)), 0.0, float("inf"), 0.0, float(np.mean(at))
    weights = 1 / np.maximum(variances, 1.0)  # a nanosecond: what a time stamp can tell
    middle = float(np.average(at, weights=weights))
    offset = float(np.average(centres, weights=weights))
    spread = float((weights * (at - middle) ** 2).sum())
    if len(at) < 2 or spread <= 0:
        return offset, 0.0, float(1 / weights.sum()), 0.0, middle
    slope = float((weights * (at - middle) * (centres - offset)).sum() / spread)
    return offset, slope, float(1 / weights.sum()), 1 / spread, middle
