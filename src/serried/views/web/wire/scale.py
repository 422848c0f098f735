"""A figure of ranks as colours: what is usual, who stands out, and the scales that colours span."""

from __future__ import annotations

from typing import Any

import numpy as np

from serried.trace.measure.ranks.rank_figures import Values
from serried.views.colours import balance_colours, heat_colours

FARTHEST_SENT = 8
LEAST_SPREAD = 0.1
"""The share of the median that a scale around it spans at least, on either side."""


def summary_of(values: Values) -> dict[str, Any]:
    """Returns what is usual of a figure, the ranks farthest from the median, and its colours."""
    known = np.flatnonzero(~np.isnan(values))
    median = float(np.median(values[known]))
    least, most = float(values[known].min()), float(values[known].max())
    order = known[np.argsort(-np.abs(values[known] - median), kind="stable")]
    return {
        "colours": {
            "light": heat_colours(on_dark=False),
            "dark": heat_colours(on_dark=True),
        },
        "balance": {
            "light": balance_colours(on_dark=False),
            "dark": balance_colours(on_dark=True),
        },
        "scales": scales_of(least, median, most),
        "least": least,
        "median": median,
        "most": most,
        "num_ranks": len(known),
        "farthest": [
            {"rank": int(rank), "value": float(values[rank])}
            for rank in order[:FARTHEST_SENT]
            # Where all ranks are alike, nobody stands out.
            if values[rank] != median
        ],
    }


def scales_of(least: float, median: float, most: float) -> dict[str, dict[str, Any]]:
    """Returns the scales that a figure can be coloured on.

    ``zero`` begins at 0, or has it in its middle where values fall below; ``median`` has what is
    usual in its middle and spans at least a tenth of it on either side, so that figures which
    hardly differ hardly differ in colour.

    >>> scales_of(0.207, 0.21, 0.227)["zero"]
    {'low': 0.0, 'high': 0.227, 'is_balanced': False}
    >>> scales_of(-1.0, 0.5, 3.0)["zero"]
    {'low': -3.0, 'high': 3.0, 'is_balanced': True}
    """
    reach = max(abs(least), abs(most))
    zero = {"low": 0.0 if least >= 0 else -reach, "high": reach, "is_balanced": least < 0}
    spread = max(most - median, median - least, LEAST_SPREAD * abs(median))
    around = {"low": median - spread, "high": median + spread, "is_balanced": True}
    return {"zero": zero, "median": around}
