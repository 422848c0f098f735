"""A figure of every rank of a trace for the map: its values, what is usual, and who stands out."""

from __future__ import annotations

import numpy as np

from serried.errors import InputError, listed
from serried.trace.measure.ranks.rank_figures import SHARES
from serried.views.web.trace.answers import TraceAnswers
from serried.views.web.wire.payload import pack
from serried.views.web.wire.query import Words, read_word
from serried.views.web.wire.scale import summary_of

NONE = "-"
"""What stands for a figure where a trace has none, as a profile of one GPU."""


def heat_payload(answers: TraceAnswers, words: Words) -> bytes:
    """Returns ``figure`` of every rank as the column ``value``, NaN where it is not known.

    Without one it is the first, and nothing of a trace that has none. Raises InputError for a
    figure that the trace does not have.
    """
    figures = answers.figures
    name = read_word(words, "figure") or next(iter(figures), NONE)
    if name == NONE and not figures:
        figures = {NONE: np.zeros(answers.trace.job.world_size)}
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
        "figures": [each for each in figures if each != NONE],
        "unit": "share" if name in SHARES else "ns",
        "scale": "zero",
        **summary_of(values),
    }
    return pack(header, {"value": values})
