"""A figure of every rank of a trace for the map: its values, what is usual, and who stands out."""

from __future__ import annotations

from typing import Any

import numpy as np

from serried.errors import InputError, listed
from serried.trace.measure.ranks.rank_figures import SHARES, Values
from serried.views.colours import balance_colours, heat_colours
from serried.views.web.trace.answers import TraceAnswers
from serried.views.web.wire.payload import pack
from serried.views.web.wire.query import Words, read_word

FARTHEST_SENT = 8
LEAST_SPREAD = 0.1
"""The share of the median that a scale around it spans at least, on either side."""


def heat_payload(answers: TraceAnswers, words: Words) -> bytes:
    """Returns ``figure`` of every rank as the column ``value``, NaN where it is not known.

    Raises InputError for a figure that the trace does not have.
    """
    figures = answers.figures
    name = read_word(words, "figure") or next(iter(figures), "")
    if name not in figures:
        raise InputError(
            "'{name}' is no figure of this trace; it has {figures}",
            name=name[:40],
            figures=listed(figures, limit=len(figures)) if figures else "-",
        )
    values = figures[name]
    header = {
        "kind": "heat",
        "figure": name,
        "figures": list(figures),
        "unit": "share" if name in SHARES else "ns",
        "scale": "zero",
        **summary_of(values),
    }
    return pack(header, {"value": values})


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
