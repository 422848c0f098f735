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
2. *Symmetric delay.* If messages take as long one way as the other, the truth is half way
   between the quickest of either side, and known far better than the bound (``symmetric``).
   That line is the one used. It is drawn through pings alone where there are any: a ping waits
   for nobody, while a message may have waited for its receiver.
3. *Clocks that do not run evenly.* Where no line fits all bounds, time is halved until lines
   do, and the pieces are joined.

No log can show a path that is always slower one way, so what holds for symmetric delay is never
what is stated, but it stands beside.

Sources: F. Cristian, "Probabilistic clock synchronization", 1989 (half the round trip);
K. Marzullo and S. Owicki 1983 (each side's own minimum); L. Zhang, Z. Liu and C. Xia, "Clock
synchronization algorithms for network measurements", INFOCOM 2002 (convex hulls).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from serried.trace.clocks.line import ClockLine, Reals
from serried.trace.clocks.region import STEEPEST, FeasibleRegion, feasible_region
from serried.trace.clocks.symmetric import Side, Sides, SymmetricLine, symmetric_line, tightest

_KNOTS = 5
"""In how many places each piece says its uncertainty."""
_DEEPEST = 12
"""How often a time in which no line fits is halved."""
_MOST = 8_192
"""Messages of either side that say how sure the line is; more are found no surer in truth."""
_FEWEST_PINGS = 6
"""Pings that speak alone for how long messages take, over half of the time at least."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """Holds what messages say of the offset: at ``at_ns`` of clock B it is beyond ``value_ns``."""

    at_ns: NDArray[np.int64]
    value_ns: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.at_ns)


def fit_clock(
    lower: Bounds,
    upper: Bounds,
    window: tuple[int, int] | None = None,
    pings: tuple[Bounds, Bounds] | None = None,
) -> ClockLine | None:
    """Returns the line between the bounds; None where one side has none.

    ``window`` is the time for which it is wanted, where that is more than the bounds'. Bounds
    that contradict each other at one moment give a line of unknown uncertainty. ``pings`` are
    those bounds, lower and upper, that are of pings.
    """
    if not len(lower) or not len(upper):
        return None
    every = np.concatenate([lower.at_ns, upper.at_ns, np.array(window or (), dtype=np.int64)])
    # Wall times in nanoseconds are more than floats hold exactly: all is relative to a middle.
    base_at = int(np.median(np.concatenate([lower.at_ns, upper.at_ns])))
    base = int(np.median(np.concatenate([lower.value_ns, upper.value_ns])))
    sides = _relative((lower, upper), base_at, base)
    asked = _relative(pings, base_at, base) if pings else _NONE
    first, last = float(every.min() - base_at), float(every.max() - base_at)
    pieces = _pieces(sides, asked)
    if not pieces:
        middle, unknown = np.zeros(1), np.full(1, np.inf)
        return ClockLine(base_at, base, middle, middle, unknown, unknown)
    return _line_of(_joined(pieces, first, last), base_at, base)


_NONE: Sides = ((np.zeros(0), np.zeros(0)), (np.zeros(0), np.zeros(0)))


@dataclass(frozen=True, eq=False)
class _Piece:
    """Holds a time in which one line fits all bounds."""

    first: float
    last: float
    region: FeasibleRegion
    half: float
    """Half of what lies between the tightest bounds of one window: an offset that drifts evenly
    is known no better, and of one that wanders the region may seem narrower than it is."""
    line: SymmetricLine
    gap: float
    """The longest time in it, and on to its neighbours, without a bound."""

    def offset_at(self, at: Reals) -> Reals:
        return np.asarray(np.clip(self.line.at(at), *self.region.range_at(at)), dtype=float)

    def bound_at(self, at: Reals, offset: Reals) -> Reals:
        low, high = self.region.range_at(at)
        return np.maximum(np.maximum(high - offset, offset - low), self.half)


def _relative(bounds: tuple[Bounds, Bounds], base_at: int, base: int) -> Sides:
    lower, upper = (
        ((each.at_ns - base_at).astype(float), (each.value_ns - base).astype(float))
        for each in bounds
    )
    return lower, upper


def _pieces(sides: Sides, pings: Sides, halvings: int = _DEEPEST) -> list[_Piece]:
    """Returns the times, in order, in which a line fits; those in which none does are left out."""
    both = np.sort(np.concatenate([at for at, _ in sides]))
    region = feasible_region(*sides)
    if region.is_feasible:
        line = _symmetric_line(sides, pings, region.slope)
        # Bounds that cross by less than stamps can tell leave half of that crossing open.
        half = max(float(tightest(sides, region.slope).half.min()), 0.0, -region.width / 2)
        gap = float(np.diff(both).max(initial=0.0))
        return [_Piece(both[0], both[-1], region, half, line, gap)]
    if not halvings:
        return []
    # Halved by the number of bounds; either half needs some of both sides.
    cut = float(both[(len(both) - 1) // 2])
    found = []
    for is_early in (True, False):
        mine = _on_side(sides, cut, is_early=is_early)
        if all(len(at) for at, _ in mine):
            found += _pieces(mine, _on_side(pings, cut, is_early=is_early), halvings - 1)
    return found


def _symmetric_line(sides: Sides, pings: Sides, drift: float) -> SymmetricLine:
    """Returns the line of the pings, where they are enough and over half of the time; or of all."""
    enough = min(len(at) for at, _ in pings) >= _FEWEST_PINGS
    if enough and _length(pings) >= _length(sides) / 2:
        return symmetric_line(pings, drift)
    return symmetric_line((_some(sides[0]), _some(sides[1])), drift)


def _some(side: Side) -> Side:
    """Returns a side's bounds, or some of very many, of all times."""
    order = np.argsort(side[0], kind="stable")[:: -(-len(side[0]) // _MOST)]
    return side[0][order], side[1][order]


def _length(sides: Sides) -> float:
    return float(np.ptp(np.concatenate([at for at, _ in sides])))


def _on_side(sides: Sides, cut: float, *, is_early: bool) -> Sides:
    (low_at, low), (high_at, high) = sides
    below, above = (low_at <= cut) == is_early, (high_at <= cut) == is_early
    return (low_at[below], low[below]), (high_at[above], high[above])


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
    at, offset, bound, symmetric = np.concatenate(knots, axis=1)
    return ClockLine(base_at, base, at, offset, bound, symmetric, tuple(jumps), _drift(pieces))


def _drift(pieces: list[_Piece]) -> float:
    """Returns how steep the pieces are, a mean by their lengths, without the steps between them."""
    length = sum(each.last - each.first for each in pieces)
    ends = [each.offset_at(np.array([each.first, each.last])) for each in pieces]
    return float(sum(np.diff(each)[0] for each in ends)) / length if length > 0 else 0.0


def _wander(pieces: list[_Piece], number: int) -> float:
    """Returns how far a clock that wanders may have left a piece's line between its bounds.

    A curve that bends by s over a time h is at most s h / 8 from its chord; as the bend is
    itself a guess, twice that.
    """
    beside = pieces[max(number - 1, 0) : number + 2]
    bend = max(abs(each.line.slope - pieces[number].line.slope) for each in beside)
    return min(bend, STEEPEST) * pieces[number].gap / 4


def _knots(piece: _Piece, wander: float) -> Reals:
    """Returns time, offset, bound and symmetric bound, in columns, of some places of a piece."""
    at = np.linspace(piece.first, max(piece.last, piece.first + 2 * _KNOTS), _KNOTS)
    offset = piece.offset_at(at)
    # A nanosecond is what a time stamp can tell.
    bound = np.maximum(piece.bound_at(at, offset) + wander, 1.0)
    return np.array([at, offset, bound, np.minimum(piece.line.band_at(at) + wander, bound)])


def _met(left: Reals, right: Reals) -> Reals:
    """Returns offset, bound and symmetric bound half way between two pieces, of all that may be."""
    half = abs(float(right[1] - left[1])) / 2
    return np.array([(left[1] + right[1]) / 2, *(np.maximum(left[2:], right[2:]) + half)])
