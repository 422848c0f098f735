"""How a column of figures spreads: its mean, its deviation and its quartiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Spread:
    """Holds what describes some figures, in their own unit."""

    count: int
    mean: float
    deviation: float
    """Standard deviation of a sample; 0 for one figure alone."""
    least: float
    quarter: float
    median: float
    three_quarters: float
    most: float


def spread_of(figures: NDArray[Any]) -> Spread:
    """Returns how figures, at least one, spread; quartiles lie between two by straight lines.

    >>> spread_of(np.array([1, 2, 3, 10]))
    Spread(count=4, mean=4.0, deviation=4.08248290463863, least=1.0, quarter=1.75, median=2.5, \
three_quarters=4.75, most=10.0)
    """
    values = figures.astype(np.float64)
    quartiles = np.quantile(values, [0, 0.25, 0.5, 0.75, 1]).tolist()
    deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return Spread(len(values), float(values.mean()), deviation, *quartiles)
