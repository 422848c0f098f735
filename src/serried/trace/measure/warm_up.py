"""Warm-up: which leading steps of a run are in no mean.

windows   900 180 | 100 101 99 180        each over 1.25 times the median of all, 140.5, one
          warm-up |                       after another from the first on
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

WARM_UP = 1.25
"""How many times the median step a leading one takes that is taken for warming up."""
FEWEST_STEPS = 3
"""The fewest steps of which some can be said to be usual."""


def warm_up_of(lengths: NDArray[Any]) -> int:
    """Returns how many leading steps are in no mean, of the lengths of all.

    A job's first steps pay for memory, connections and compilation. By the median no more than
    half of the steps can be left out, and of fewer than three none is.

    >>> warm_up_of(np.array([900, 180, 100, 101, 99, 180])), warm_up_of(np.array([900, 100]))
    (2, 0)
    """
    if len(lengths) < FEWEST_STEPS:
        return 0
    return int(np.argmax(lengths <= WARM_UP * np.median(lengths)))
