"""What the page may colour spans by: a class of colour for every span of a trace.

    ""            the kind of action, by its own colour
    microbatch    0 where there is none, else 1 to 8 in turn; step likewise
    lateness …    0 where nothing is known, else 1 to 7 by the edges of ``scale_edges``

The page knows the same rules (static/timeline/trace/colours.js) for the spans it holds itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind, Spans
from serried.errors import InputError, listed
from serried.views.colours import ACTIONS

Classes = NDArray[np.uint8]
Values = NDArray[np.float64]
Measured = Mapping[str, Callable[[], Values]]
"""What is measured of each row of a trace's spans, NaN where that is not known."""

TURNS = 8
SCALE_CLASSES = 8
_EDGES = np.array([-0.5, -0.1, -0.02, 0.02, 0.1, 0.5])
# The innermost edges, 0.02 of it, are then a microsecond.
_LEAST_NS = 50_000.0
_NAMES = ("", "microbatch", "step")


def action_colours(kinds: NDArray[np.int32]) -> list[str]:
    """Returns the colours of the kinds in use, each once; its place is the class.

    >>> action_colours(np.array([1, 2, 1], dtype=np.int32))
    ['#5093c2', '#d47d20']
    """
    used = np.flatnonzero(np.bincount(kinds))
    return list(dict.fromkeys(ACTIONS[ActionKind(int(kind))] for kind in used))


def num_classes(name: str, colours: list[str]) -> int:
    """Returns how many classes a way to colour has; ``colours`` are those of the actions."""
    if not name:
        return len(colours)
    return 1 + TURNS if name in _NAMES else SCALE_CLASSES


def classes_of(name: str, spans: Spans, colours: list[str], values: Values | None) -> Classes:
    """Returns the class of each span; ``values`` are those that a scale is made of."""
    if values is not None:
        edges = scale_edges(values)
        found = 1 + np.searchsorted(edges, values, "right")
        return np.where(np.isnan(values), 0, found).astype(np.uint8)
    if not name:
        place = np.zeros(max(ActionKind) + 1, dtype=np.uint8)
        for kind in ActionKind:
            # A kind that the trace lacks may have no colour here; its class is never looked up.
            place[kind] = colours.index(ACTIONS[kind]) if ACTIONS[kind] in colours else 0
        return place[spans.kind]
    column = spans.microbatch if name == "microbatch" else spans.step
    return np.where(column < 0, 0, 1 + column % TURNS).astype(np.uint8)


def scale_edges(values: Values) -> list[float]:
    """Returns the values from which the next class counts, alike below and above 0.

    They are shares of what only 1 in 100 is farther from 0 than, but less than a microsecond is
    no difference.

    >>> scale_edges(np.array([0.0, -1e5, 1e6, np.nan]))
    [-500000.0, -100000.0, -20000.0, 20000.0, 100000.0, 500000.0]
    >>> scale_edges(np.array([0.0]))
    [-25000.0, -5000.0, -1000.0, 1000.0, 5000.0, 25000.0]
    """
    known = np.abs(values[~np.isnan(values)])
    top = float(np.quantile(known, 0.99)) if len(known) else 0.0
    # Where 99 values in 100 are exactly 0, the largest of all sets the scale.
    if top <= 0:
        top = float(known.max(initial=0.0))
    return [float(each) for each in _EDGES * _round(max(top, _LEAST_NS))]


def _round(value: float) -> float:
    """Returns the nearest of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(min((1, 2, 5, 10), key=lambda each: abs(each - value / power)) * power)


def require_colour(name: str, measured: Measured) -> str:
    """Returns ``name``; raises InputError for what a trace cannot be coloured by."""
    if name in _NAMES or name in measured:
        return name
    raise InputError(
        "this trace cannot be coloured by '{name}'; it can by {names}",
        name=name[:40],
        names=listed([*_NAMES[1:], *measured]),
    )
