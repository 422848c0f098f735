"""Ticks: times as integers, exact for fractions, so that a simulation adds and compares fast.

1/3 and 1/4 of a unit  ->  4 and 3 ticks, 12 of them in a unit
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from serried.pipeline.costs import Number
from serried.pipeline.longest_path import Times

_LARGE = 1 << 36
"""A million numbers below this add up in 64 bits, and more than a million times over."""


@dataclass(frozen=True)
class Ticks:
    """Says how many ticks a unit of time has, and in what numbers they are counted."""

    per_unit: int | None
    """None where times are floats and stay so."""
    is_large: bool = False
    """Whether some time has more ticks than 64 bits could add up; then they are Python's own."""

    @classmethod
    def of(cls, numbers: Iterable[Number]) -> Ticks:
        """Finds the fewest ticks that make every number whole.

        >>> Ticks.of([1, Fraction(1, 3), Fraction(1, 4)])
        Ticks(per_unit=12, is_large=False)
        """
        exact = []
        for number in numbers:
            if isinstance(number, float) and not number.is_integer():
                return cls(None)
            exact.append(Fraction(number))
        per_unit = lcm(*{number.denominator for number in exact})
        return cls(per_unit, any(number * per_unit >= _LARGE for number in exact))

    def array(self, values: object) -> Times:
        """Returns numbers, nested as they are, as an array of ticks."""
        table = np.array(values, dtype=object)
        if self.per_unit is None:
            return table.astype(np.float64)
        whole = [int(number * self.per_unit) for number in table.ravel()]
        dtype = object if self.is_large else np.int64
        return np.array(whole, dtype).reshape(table.shape)

    def number(self, ticks: object) -> Number:
        """Returns a time in units: an integer where it is one, else a fraction, or a float.

        >>> Ticks(12).number(18), Ticks(12).number(24), Ticks(None).number(0.5)
        (Fraction(3, 2), 2, 0.5)
        """
        if self.per_unit is None:
            return float(ticks)  # type: ignore[arg-type]
        value = Fraction(int(ticks), self.per_unit)  # type: ignore[call-overload]
        return int(value) if value.denominator == 1 else value
