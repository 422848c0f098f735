"""Finding: the spans of a trace that answer a wish, in the order in which they began."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind
from serried.trace.model.pairs import Rows
from serried.trace.model.trace import Trace


@dataclass(frozen=True)
class Wish:
    """Says which spans are looked for; None wishes nothing."""

    kinds: frozenset[ActionKind] | None = None
    rank: int | None = None
    node: int | None = None
    stage: int | None = None
    microbatch: int | None = None
    step: int | None = None
    name: str = ""
    """A part of what its user called a span, in any case of letters."""


def find(trace: Trace, wish: Wish) -> Rows:
    """Returns the rows of all spans that meet every part of ``wish``, by start and then by rank."""
    spans = trace.spans
    found = np.ones(len(spans), dtype=np.bool_)
    for column, wanted in (
        (spans.rank, wish.rank),
        (spans.stage, wish.stage),
        (spans.microbatch, wish.microbatch),
        (spans.step, wish.step),
    ):
        if wanted is not None:
            found &= column == wanted
    if wish.kinds is not None:
        found &= np.isin(spans.kind, sorted(wish.kinds))
    if wish.node is not None:
        found &= spans.rank // trace.placement.ranks_per_node == wish.node
    if wish.name:
        found &= _is_called(trace, wish.name)
    rows = np.flatnonzero(found)
    return rows[np.lexsort((spans.rank[rows], spans.start_ns[rows]))]


def _is_called(trace: Trace, text: str) -> NDArray[np.bool_]:
    """Tells of each span whether its user called it something with ``text`` in it."""
    wanted = [at for at, name in enumerate(trace.names) if text.casefold() in name.casefold()]
    called = (trace.spans.kind == ActionKind.SPAN) & np.isin(trace.spans.peer, wanted)
    return np.asarray(called, dtype=np.bool_)
