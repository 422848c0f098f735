"""What ranks spent their steps on: computing, waiting for one another, gaps; by step and rank.

    rank 0   ..|before|[data][ F ][ B ..|waits|][gap][OPTIMIZER]|before|[data][ F ]…
               └ it was done with the step before               └ and with this one

A rank's step lasts from where it was done with the one before to where it is done with this one,
so that what it does between them, such as reading its data, is part of it. Of the first step that
was recorded nothing is known before its first span. The loading of data is told apart where it was
recorded, as spans named ``data``; else it lies before the first span.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, ActionKind, Spans
from serried.trace.measure.moments import WAITING, Between, Moments, State, computing_ns
from serried.trace.model.trace import Trace

DATA = "data"
"""What a span is called in which a rank loads its data."""

_PARTS = {
    "forward": (State.FORWARD,),
    "backward": (State.BACKWARD,),
    "weight": (State.WEIGHT,),
    "optimizer": (State.OPTIMIZER,),
    "data": (State.DATA,),
}
_GAPS = (State.OTHER, State.FLIGHT)

Table = NDArray[np.float64]
"""Nanoseconds: one row per step, one column per rank."""
Times = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Spent:
    """Holds what ranks spent the steps on; waits and parts are of ``period`` and add up to it."""

    period: Table
    """How long the step took, from the end of the one before."""
    waits: Table
    """For messages and collectives, wherever."""
    meets: Table
    """Those of them that were collectives and reductions."""
    inside: Table
    """Those that lay in computations."""
    hidden: Table
    """Reductions on their way behind computations."""
    computing: Table
    """Forward, backward and weight, each span without the waits inside it."""
    parts: dict[str, Table]
    """Forward, backward, weight, optimizer, data, ``before`` the first span, other ``gaps``."""

    def of(self, places: list[int]) -> Spent:
        """Returns the columns ``places``."""
        return Spent(
            period=self.period[:, places],
            waits=self.waits[:, places],
            meets=self.meets[:, places],
            inside=self.inside[:, places],
            hidden=self.hidden[:, places],
            computing=self.computing[:, places],
            parts={name: table[:, places] for name, table in self.parts.items()},
        )


def data_rows(trace: Trace) -> NDArray[np.bool_]:
    """Tells which of the trace's spans are the loading of data: those of that name."""
    if DATA not in trace.names:
        return np.zeros(len(trace.spans), dtype=np.bool_)
    is_named = trace.spans.kind == ActionKind.SPAN
    return np.asarray(is_named & (trace.spans.peer == trace.names.index(DATA)))


def time_spent(
    spans: Spans,
    steps: NDArray[np.int32],
    ranks: NDArray[np.int64],
    loads: NDArray[np.bool_] | None = None,
) -> Spent:
    """Returns what ``ranks`` spent ``steps`` on; ``spans`` are theirs, of other steps too.

    ``loads`` tells which spans are the loading of data.
    """
    begin, first, end = _periods(spans, steps, ranks, loads)
    edges = np.concatenate([begin.ravel(), end.ravel()])
    moments = Moments.of(spans, ranks, edges, loads=loads)
    whole = moments.between(begin, end)
    before, after = moments.between(begin, first), moments.between(first, end)

    def time(between: Between, *states: State) -> Table:
        return moments.time(moments.is_in(*states), between).astype(np.float64)

    parts = {name: time(whole, *states) for name, states in _PARTS.items()}
    return Spent(
        period=(end - begin).astype(np.float64),
        waits=time(whole, *WAITING),
        meets=time(whole, State.EXCHANGE, State.REDUCE),
        inside=moments.time(moments.is_in(State.EXCHANGE) & moments.computes, whole).astype(float),
        hidden=moments.time(moments.reduces & moments.computes, whole).astype(float),
        computing=_computing(spans, steps, ranks),
        parts={**parts, "before": time(before, *_GAPS), "gaps": time(after, *_GAPS)},
    )


def _computing(spans: Spans, steps: NDArray[np.int32], ranks: NDArray[np.int64]) -> Table:
    rows = np.isin(spans.kind, sorted(COMPUTE)) & np.isin(spans.step, steps)
    cell = np.searchsorted(steps, spans.step[rows]) * len(ranks)
    cell += np.searchsorted(ranks, spans.rank[rows])
    sums = np.bincount(cell, computing_ns(spans)[rows], minlength=len(steps) * len(ranks))
    return np.asarray(sums, dtype=np.float64).reshape(len(steps), len(ranks))


def _periods(
    spans: Spans,
    steps: NDArray[np.int32],
    ranks: NDArray[np.int64],
    loads: NDArray[np.bool_] | None,
) -> tuple[Times, Times, Times]:
    """Returns by step and rank when its time begins, when its first span does, and its last ends.

    A step's time begins when the rank was done with the one before, where that was recorded.
    """
    is_own = ~np.isin(spans.kind, [ActionKind.IN_FLIGHT, ActionKind.SPAN])
    own = spans.where(is_own if loads is None else is_own | loads)
    # The step before each one as well, for where it ended this one's time begins.
    every = np.union1d(steps, steps - 1)
    own = own.where(np.isin(own.step, every))
    cell = np.searchsorted(every, own.step), np.searchsorted(ranks, own.rank)
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    first, last = (np.full((len(every), len(ranks)), edge) for edge in (high, low))
    np.minimum.at(first, cell, own.start_ns)
    np.maximum.at(last, cell, own.end_ns)
    mine, before = np.searchsorted(every, steps), np.searchsorted(every, steps - 1)
    end, start = last[mine], first[mine]
    is_new = last[before] == low
    begin = np.where(is_new, start, last[before])
    # Steps may overlap: the one before may have ended after this one did.
    begin = np.minimum(begin, end)
    return begin, np.clip(start, begin, end), end
