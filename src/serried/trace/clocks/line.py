"""Clock line: what turns one clock's times into another's, and how far it may be off.

offset     ╭──────o                     knots o; straight between, going on beyond the ends
     o─────╯       ╲
                    o────────o
     t of clock B ──────────────────>
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Times = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ClockLine:
    """Holds the offset of one clock to another, straight between knots, and how far it may be off.

    Times are of clock B, relative to ``base_at_ns``; offsets turn them into A's, and are
    relative to ``base_ns``, for sums of hours and nanoseconds are more than floats hold.
    """

    base_at_ns: int
    base_ns: int
    at: Reals
    offset: Reals
    bound: Reals
    """How far each offset may be off, whatever way messages took; infinite where not known."""
    symmetric: Reals
    """The same where the fastest message takes as long one way as the other."""
    jumps: tuple[tuple[int, float], ...] = ()
    """Where a clock was set: the time of clock B, and the step of the offset in nanoseconds."""
    drift: float = 0.0
    """How much faster clock A runs, per unit, a mean over time; a clock that is set does not run
    faster."""

    @classmethod
    def same(cls) -> ClockLine:
        """Returns the line of a clock to itself."""
        zero = np.zeros(1)
        return cls(0, 0, zero, zero, zero, zero)

    def offset_at(self, at_ns: Times) -> Reals:
        """Returns the offset at times of clock B, in nanoseconds."""
        return np.asarray(self.base_ns + self._inner(at_ns), dtype=float)

    def moved(self, at_ns: Times) -> Times:
        """Returns times of clock B as those of clock A.

        >>> line = replace(ClockLine.same(), base_ns=7)
        >>> line.moved(np.array([1, 2])).tolist()
        [8, 9]
        """
        rounded = np.rint(self._inner(at_ns)).astype(np.int64)
        return np.asarray(at_ns + self.base_ns + rounded, dtype=np.int64)

    def worst_between(self, first_ns: int, last_ns: int) -> tuple[float, float]:
        """Returns the largest bound and the largest symmetric bound between two times of B."""
        ends = np.array([first_ns, last_ns]) - self.base_at_ns
        inside = self.at[(self.at > ends[0]) & (self.at < ends[1])]
        places = np.concatenate([ends.astype(float), inside])
        return _largest(self.at, self.bound, places), _largest(self.at, self.symmetric, places)

    def reversed(self) -> ClockLine:
        """Returns the line that turns A's times into B's."""
        # Where a clock was set, its times may go back on the other's; knots have to ascend.
        there = np.maximum.accumulate(self.at + self.offset)
        at = [int(self.moved(np.array([when]))[0]) for when, _ in self.jumps]
        return replace(
            self,
            base_at_ns=self.base_at_ns + self.base_ns,
            base_ns=-self.base_ns,
            at=there,
            offset=self.at - there,
            jumps=tuple((when, -step) for when, (_, step) in zip(at, self.jumps, strict=True)),
            drift=-self.drift,
        )

    def then(self, further: ClockLine) -> ClockLine:
        """Returns the line through this one, from B to A, and then through ``further``."""
        back = further.at + further.base_at_ns
        places = [self.at + self.base_at_ns, self.reversed().moved(np.rint(back).astype(np.int64))]
        # Both lines are straight between all of these, the knots of either, so their sum is too.
        at_ns = np.unique(np.rint(np.concatenate(places)).astype(np.int64))
        there_ns = self.moved(at_ns)
        here, there = at_ns - self.base_at_ns, there_ns - further.base_at_ns
        jumps = [(int(self.reversed().moved(np.array([at]))[0]), by) for at, by in further.jumps]
        return ClockLine(
            self.base_at_ns,
            self.base_ns + further.base_ns,
            here.astype(float),
            self._inner(at_ns) + further._inner(there_ns),
            _along(self.at, self.bound, here) + _along(further.at, further.bound, there),
            np.hypot(
                _along(self.at, self.symmetric, here), _along(further.at, further.symmetric, there)
            ),
            tuple(sorted((*self.jumps, *jumps))),
            self.drift + further.drift,
        )

    def _inner(self, at_ns: Times) -> Reals:
        return _extended(self.at, self.offset, (at_ns - self.base_at_ns).astype(float))


def _extended(at: Reals, value: Reals, where: Reals) -> Reals:
    """Returns values at ``where``: straight between knots, and on beyond the first and last."""
    inside = np.interp(where, at, value)
    if len(at) < 2:
        return np.asarray(inside, dtype=float)
    steep = np.diff(value) / np.maximum(np.diff(at), 1.0)
    before = np.minimum(where - at[0], 0) * steep[0]
    after = np.maximum(where - at[-1], 0) * steep[-1]
    return np.asarray(inside + before + after, dtype=float)


def _along(at: Reals, value: Reals, where: Reals | Times) -> Reals:
    """Returns uncertainties at ``where``; beyond the ends they never shrink."""
    places = np.asarray(where, dtype=float)
    if not np.isfinite(value).all():
        return np.full(len(places), np.inf)
    return np.asarray(np.maximum(np.interp(places, at, value), _extended(at, value, places)))


def _largest(at: Reals, value: Reals, where: Reals) -> float:
    return float(_along(at, value, where).max())
