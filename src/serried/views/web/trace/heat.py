"""A figure of every rank of a trace for the map: its values, what is usual, and who stands out."""

from __future__ import annotations

from typing import Any

import numpy as np

from serried.errors import InputError, listed
from serried.trace.measure.ranks.rank_figures import SHARES, Values
from serried.views.colours import heat_colours
from serried.views.web.trace.answers import TraceAnswers
from serried.views.web.wire.payload import pack
from serried.views.web.wire.query import Words, read_word

FARTHEST_SENT = 8


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
        **summary_of(values),
    }
    return pack(header, {"value": values})


def summary_of(values: Values) -> dict[str, Any]:
    """Returns what is usual of a figure, the ranks farthest from the median, and its colours."""
    known = np.flatnonzero(~np.isnan(values))
    median = float(np.median(values[known]))
    order = known[np.argsort(-np.abs(values[known] - median), kind="stable")]
    return {
        "colours": {
            "light": heat_colours(on_dark=False),
            "dark": heat_colours(on_dark=True),
        },
        "least": float(values[known].min()),
        "median": median,
        "most": float(values[known].max()),
        "num_ranks": len(known),
        "farthest": [
            {"rank": int(rank), "value": float(values[rank])}
            for rank in order[:FARTHEST_SENT]
            # Where all ranks are alike, nobody stands out.
            if values[rank] != median
        ],
    }
