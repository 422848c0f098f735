"""Idle time of a recorded run by cause, every nanosecond of it under exactly one.

    rank   ......[F][F..exchange..]..recv wait..[B][F]..[send]..[B]...........
           warm-up                  │late│transfer│      send  other  cool-down
                                         └ the sender began to send here

Within a step's window, first forward to last backward over all ranks, a rank computes or is
idle. Waiting inside a computation, for a collective of whatever ranks, is idle time as well:
*exchange*. Idle time before the rank's first computation of the step is *warm-up*, after its last
*cool-down*. Between, what a receive waited before its sender began is *late peer*, the rest
of that wait *transfer* (where a log has no receives, what a computation waited until its input
was made is late peer); then *send*, *reduce* (gradients and parameters of data parallel
ranks), and what nothing recorded covers, *other*: Python, launches, the wait of a rank for its
turn. Where two cover the same moment, the one named first in ``moments`` counts.

A rank that computes for another step inside the window, for steps of ranks overlap, computes and
is not idle. So computing and the causes add up to the window, exactly, whatever overlaps.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, Spans
from serried.trace.measure.moments import COMPUTING, Between, Moments, State

Times = NDArray[np.int64]
Table = NDArray[np.int64]

CAUSES = (
    *("warm_up", "exchange", "late_peer", "transfer"),
    *("send", "reduce", "other", "cool_down"),
)
"""Why a rank was idle, in the order of a step."""

_BETWEEN = {
    "exchange": (State.EXCHANGE,),
    "late_peer": (State.LATE,),
    "transfer": (State.TRANSFER,),
    "send": (State.SEND,),
    "reduce": (State.REDUCE, State.FLIGHT),
    "other": (State.OPTIMIZER, State.DATA, State.OTHER),
}
_WORK = {
    "forward": (State.FORWARD,),
    "backward": (State.BACKWARD,),
    "weight": (State.WEIGHT,),
}


@dataclass(frozen=True, eq=False)
class MeasuredIdle:
    """Holds computing and idle nanoseconds, each a table of steps by ranks, and communication."""

    by_work: dict[str, Table]
    """Computing in the window: forward, backward and weight."""
    by_cause: dict[str, Table]
    exposed_ns: Table
    """Communication while nothing was computed, exchanges inside computations too."""
    overlapped_ns: Table
    """Communication hidden behind computation."""
    exchange_ns: Table
    """Waits for exchanges inside the spans of computations."""
    receiving_ns: Table
    """Receives while nothing was computed, whatever they waited for."""
    waiting_ns: Table
    """Exchanges outside the spans of computations and inside, while nothing was received."""
    own_busy_ns: Table
    """Computing from the rank's own first computation of the step to its last."""

    def of(self, steps: slice) -> MeasuredIdle:
        """Returns the rows of ``steps``."""
        by_name = {"by_work": self.by_work, "by_cause": self.by_cause}
        cut: dict[str, Any] = {
            name: {key: table[steps] for key, table in tables.items()}
            for name, tables in by_name.items()
        }
        whole = (each.name for each in fields(self) if each.name not in by_name)
        return MeasuredIdle(**cut, **{name: getattr(self, name)[steps] for name in whole})

    @property
    def busy_ns(self) -> Table:
        """All computing."""
        return np.asarray(sum(self.by_work.values()), dtype=np.int64)

    @property
    def total_ns(self) -> Table:
        """All idle time, the causes added up."""
        return np.asarray(sum(self.by_cause.values()), dtype=np.int64)


def measured_idle(
    spans: Spans,
    steps: NDArray[np.int32],
    ranks: NDArray[np.int64],
    windows: tuple[Times, Times],
) -> MeasuredIdle:
    """Returns the idle time of ``steps`` and ``ranks`` inside each step's window.

    ``steps`` and ``ranks`` ascend; ``spans`` are those of the ranks given, of other steps too
    where there are any; ``windows`` holds the first and the last moment of each step, and they may
    overlap.
    """
    first, last = (np.broadcast_to(edge[:, None], (len(steps), len(ranks))) for edge in windows)
    moments = Moments.of(spans, ranks, np.concatenate(windows))
    begins, ends = _own_window(spans, steps, ranks)
    # A rank that computed nothing in a step is before its first computation all along.
    begins = np.clip(begins, first, last)
    ends = np.clip(ends, begins, last)
    whole, own = moments.between(first, last), moments.between(begins, ends)
    early, late = moments.between(first, begins), moments.between(ends, last)

    def total(between: Between, *states: State) -> Table:
        return moments.time(moments.is_in(*states), between)

    is_idle = ~moments.is_in(*COMPUTING)
    waits = moments.is_in(State.EXCHANGE)
    return MeasuredIdle(
        by_work={name: total(whole, *states) for name, states in _WORK.items()},
        by_cause={
            "warm_up": moments.time(is_idle, early),
            **{cause: total(own, *states) for cause, states in _BETWEEN.items()},
            "cool_down": moments.time(is_idle, late),
        },
        exposed_ns=moments.time(moments.communicates & is_idle | waits, whole),
        overlapped_ns=moments.time(moments.communicates & ~is_idle, whole),
        exchange_ns=moments.time(waits & moments.computes, whole),
        receiving_ns=moments.time(moments.receives & is_idle & ~waits, whole),
        waiting_ns=moments.time(waits, whole),
        own_busy_ns=total(own, *COMPUTING),
    )


def _own_window(
    spans: Spans, steps: NDArray[np.int32], ranks: NDArray[np.int64]
) -> tuple[Table, Table]:
    """Returns the first start and the last end of each rank's computations in each step."""
    mine = np.isin(spans.kind, list(COMPUTE)) & np.isin(spans.step, steps)
    compute = spans.where(mine)
    cell = np.searchsorted(steps, compute.step), np.searchsorted(ranks, compute.rank)
    first = np.full((len(steps), len(ranks)), np.iinfo(np.int64).max)
    last = np.full((len(steps), len(ranks)), np.iinfo(np.int64).min)
    np.minimum.at(first, cell, compute.start_ns)
    np.maximum.at(last, cell, compute.end_ns)
    return first, last
