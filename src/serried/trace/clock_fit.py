"""Clock fit: one clock against another, from the moments at which messages crossed.

    clock A ──────s────────────r'─────>        A to B:  s + a <= r + b     o >= s - r     lower
                   \\          /                B to A:  s' <= r'           o <= r' - s'   upper
    clock B ────────r────────s'───────>        o(t) = what turns B's time into A's

Every message bounds the offset o from one side, for it was sent before it came; the bound is
off by the message's own delay. Of a clock that runs evenly, o(t) is a straight line:

      upper   ˅     ˅      ˅  ˅       ˅  ˅        every line below all upper and above all lower
            ─────────────────────────── hi(t)     bounds may be the truth; hi and lo are the
            - - - - - - - - - - - - - - line      highest and lowest of them at t, found exactly
            ─────────────────────────── lo(t)     on the convex hulls of the bounds
      lower   ˄    ˄   ˄      ˄    ˄     ˄

1. *The bound.* What is stated is how far hi or lo is from the line that is used: no more is
   needed than that the clocks ran evenly. For pings it is half the fastest way there and back.
2. *The even figure.* Where the fastest message takes equally long both ways, the truth is half
   way between the tightest bounds of either side. How far apart the tightest few are says how
   far the tightest may be from the fastest possible (delays above their smallest are taken as
   exponential near it: order statistics are then 1/(n lambda) apart). A weighted line through
   the middles of windows of time is the offset; 5.5 standard deviations are the even figure.
   Half the difference of two exponential remainders is a Laplace variable, of which 3.5 would
   cover 99.3 of 100 at one moment, but over 120 draws of real wires
   (``tests/runtime/test_clock_draws.py``) 3.5 held in 87 to 94 of 100, so 5.5 was chosen from
   them. That real messages pass several queues, whose sum is less often near its least, may be
   why; it was not tested.
3. *Clocks that do not run evenly.* Where no line fits all bounds, time is halved until lines
   do, and the pieces are joined.

No log can show a path that is always slower one way, so the even figure is never what is
stated, but it stands beside.

Sources: F. Cristian, "Probabilistic clock synchronization", 1989 (half the round trip);
K. Marzullo and S. Owicki 1983 (each side's own minimum); L. Zhang, Z. Liu and C. Xia, "Clock
synchronization algorithms for network measurements", INFOCOM 2002 (convex hulls).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from serried.trace.clock_line import ClockLine, Reals
from serried.trace.clock_strip import STEEPEST, Strip, strip_between

DEVIATIONS = 5.5
"""How many standard deviations the even figure is."""

_WINDOWS = 16
_FEWEST, _FEWEST_FOR_TWO = 20, 6
"""Bounds of either side that a window of time needs; two windows take fewer."""
_ORDER = 12
"""How many of the tightest bounds say how far apart they are."""
_KNOTS = 5
"""In how many places each piece says its uncertainty."""
_DEEPEST = 12
"""How often a time in which no line fits is halved."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """Holds what messages say of the offset: at ``at_ns`` of clock B it is beyond ``value_ns``."""

    at_ns: NDArray[np.int64]
    value_ns: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.at_ns)


def fit_clock(
    lower: Bounds, upper: Bounds, window: tuple[int, int] | None = None
) -> ClockLine | None:
    """Returns the line between the bounds; None where one side has none.

    ``window`` is the time for which it is wanted, where that is more than the bounds'. Bounds
    that contradict each other at one moment give a line of unknown uncertainty.
    """
    if not len(lower) or not len(upper):
        return None
    every = np.concatenate([lower.at_ns, upper.at_ns, np.array(window or (), dtype=np.int64)])
    base_at = int(np.median(np.concatenate([lower.at_ns, upper.at_ns])))
    base = int(np.median(np.concatenate([lower.value_ns, upper.value_ns])))
    sides = (_relative(lower, base_at, base), _relative(upper, base_at, base))
    first, last = float(every.min() - base_at), float(every.max() - base_at)
    pieces = _pieces(*sides)
    if not pieces:
        middle, unknown = np.zeros(1), np.full(1, np.inf)
        return ClockLine(base_at, base, middle, middle, unknown, unknown)
    return _line_of(_joined(pieces, first, last), base_at, base)


Side = tuple[Reals, Reals]
"""Times and values of one side's bounds."""


@dataclass(frozen=True)
class _Line:
    """Is a straight line through centres: its height and slope at a middle, and their variances."""

    middle: float
    offset: float
    slope: float
    offset_variance: float
    slope_variance: float

    def at(self, at: Reals) -> Reals:
        return np.asarray(self.offset + self.slope * (at - self.middle), dtype=float)

    def tilted(self, slope: float) -> _Line:
        """Returns the line of what had ``slope`` taken off."""
        return replace(self, offset=self.offset + slope * self.middle, slope=self.slope + slope)


@dataclass(frozen=True, eq=False)
class _Piece:
    """Is a time in which one line fits all bounds."""

    first: float
    last: float
    strip: Strip
    half: float
    """Half of what lies between the tightest bounds of one window: no even clock is known
    better, and of one that wanders the strip may seem narrower than it is."""
    line: _Line
    gap: float
    """The longest time in it, and on to its neighbours, without a bound."""

    def offset_at(self, at: Reals) -> Reals:
        return np.asarray(np.clip(self.line.at(at), *self.strip.range_at(at)), dtype=float)

    def bound_at(self, at: Reals, offset: Reals) -> Reals:
        low, high = self.strip.range_at(at)
        return np.maximum(np.maximum(high - offset, offset - low), self.half)

    def even_at(self, at: Reals) -> Reals:
        away = at - self.line.middle
        variance = self.line.offset_variance + self.line.slope_variance * away**2
        return np.asarray(DEVIATIONS * np.sqrt(variance), dtype=float)


def _relative(bounds: Bounds, base_at: int, base: int) -> Side:
    return (bounds.at_ns - base_at).astype(float), (bounds.value_ns - base).astype(float)


def _pieces(lower: Side, upper: Side, halvings: int = _DEEPEST) -> list[_Piece]:
    """Returns the times, in order, in which a line fits; those in which none does are left out."""
    both = np.sort(np.concatenate([lower[0], upper[0]]))
    strip = strip_between(lower, upper)
    if strip.fits:
        windows = _windows((lower, upper), strip.slope)
        line = _line(*windows[:3]).tilted(strip.slope)
        gap = float(np.diff(both).max(initial=0.0))
        half = max(float(windows[3].min()), -strip.width / 2)
        return [_Piece(both[0], both[-1], strip, half, line, gap)]
    if not halvings:
        return []
    # Halved by the number of bounds; either half needs some of both sides.
    cut = float(both[(len(both) - 1) // 2])
    found = []
    for is_early in (True, False):
        low, high = (_on_side(side, cut, is_early=is_early) for side in (lower, upper))
        if len(low[0]) and len(high[0]):
            found += _pieces(low, high, halvings - 1)
    return found


def _on_side(side: Side, cut: float, *, is_early: bool) -> Side:
    mine = (side[0] <= cut) == is_early
    return side[0][mine], side[1][mine]


def _joined(pieces: list[_Piece], first: float, last: float) -> list[_Piece]:
    """Returns the pieces stretched until they meet, half way, and fill the time."""
    edges = [(one.last + other.first) / 2 for one, other in pairwise(pieces)]
    places = pairwise([first, *edges, last])
    return [
        replace(each, first=a, last=b, gap=max(each.gap, 2 * (b - each.last), 2 * (each.first - a)))
        for each, (a, b) in zip(pieces, places, strict=True)
    ]


def _line_of(pieces: list[_Piece], base_at: int, base: int) -> ClockLine:
    """Returns the pieces as one line, which passes half way between two where they meet.

    Where a clock was set it steps, and is off by as much as the step near it.
    """
    knots = [_knots(piece, _wander(pieces, number)) for number, piece in enumerate(pieces)]
    jumps = []
    for left, right in pairwise(knots):
        step = float(right[1, 0] - left[1, -1])
        # Lines of a clock that wanders are off by up to all that lies between the bounds.
        if abs(step) > 2 * (left[2, -1] + right[2, 0]):
            jumps.append((base_at + round(float(left[0, -1])), step))
            right[0, 0] += 1.0
            left[2:, -1] = right[2:, 0] = abs(step) + np.maximum(left[2:, -1], right[2:, 0])
        else:
            left[1:, -1] = right[1:, 0] = _met(left[:, -1], right[:, 0])
            right[0, 0] += 1.0
    at, offset, bound, even = np.concatenate(knots, axis=1)
    return ClockLine(base_at, base, at, offset, bound, even, tuple(jumps))


def _wander(pieces: list[_Piece], number: int) -> float:
    """Returns how far a clock that wanders may have left a piece's line between its bounds.

    A curve that bends by s over a time h is at most s h / 8 from its chord; as the bend is
    itself a guess, twice that.
    """
    beside = pieces[max(number - 1, 0) : number + 2]
    bend = max(abs(each.line.slope - pieces[number].line.slope) for each in beside)
    return min(bend, STEEPEST) * pieces[number].gap / 4


def _knots(piece: _Piece, wander: float) -> Reals:
    """Returns time, offset, bound and even figure, in columns, of some places of a piece."""
    at = np.linspace(piece.first, max(piece.last, piece.first + 2 * _KNOTS), _KNOTS)
    offset = piece.offset_at(at)
    # A nanosecond is what a time stamp can tell.
    bound = np.maximum(piece.bound_at(at, offset) + wander, 1.0)
    return np.array([at, offset, bound, np.minimum(piece.even_at(at) + wander, bound)])


def _met(left: Reals, right: Reals) -> Reals:
    """Returns offset, bound and even figure half way between two pieces, of all that may be."""
    half = abs(float(right[1] - left[1])) / 2
    return np.array([(left[1] + right[1]) / 2, *(np.maximum(left[2:], right[2:]) + half)])


# ----------------------------------------------------------------------- the even figure


def _windows(sides: tuple[Side, Side], drift: float) -> tuple[Reals, Reals, Reals, Reals]:
    """Returns, for each window of time with bounds of both sides, its time, centre, variance.

    Last comes half of what lies between its tightest bounds; ``drift`` is taken off first.
    """
    times = [at for at, _ in sides]
    flat = [value - drift * at for at, value in sides]
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
        half = max((above + below) / 2, 0.0)
        rows.append(((at_below + at_above) / 2, (above - below) / 2, spacing**2 / 2, half))
    if not rows:  # the two sides' bounds lie in times of their own
        low, high = float(flat[0].max()), float(flat[1].min())
        rows = [(float(np.median(both)), (low + high) / 2, np.inf, max((high - low) / 2, 0.0))]
    at, centres, variances, halves = np.array(rows).T
    return at, centres, variances, halves


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


def _line(at: Reals, centres: Reals, variances: Reals) -> _Line:
    """Returns the line through the centres, each by its weight."""
    if not np.isfinite(variances).all():
        # Too few bounds to tell how far off they are: only the strip itself limits the error.
        return _Line(float(np.mean(at)), float(np.mean(centres)), 0.0, float("inf"), 0.0)
    weights = 1 / np.maximum(variances, 1.0)  # a nanosecond: what a time stamp can tell
    middle = float(np.average(at, weights=weights))
    offset = float(np.average(centres, weights=weights))
    spread = float((weights * (at - middle) ** 2).sum())
    certain = float(1 / weights.sum())
    if len(at) < 2 or spread <= 0:
        return _Line(middle, offset, 0.0, certain, 0.0)
    slope = float((weights * (at - middle) * (centres - offset)).sum() / spread)
    return _Line(middle, offset, slope, certain, 1 / spread)
