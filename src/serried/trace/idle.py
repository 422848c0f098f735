"""Idle time of a recorded run by cause, every nanosecond of it under exactly one.

    rank   ......[F][F]..recv wait..[B][F]..[send]..[B]...........
           warm-up     │late│transfer│      send  other  cool-down
                            └ the sender began to send here

Within a step's window, first forward to last backward over all ranks, a rank computes or is
idle. Idle time before its first computation of the step is *warm-up*, after its last
*cool-down*. Between, what a receive waited before its sender began is *late peer*, the rest
of that wait *transfer* (where a log has no receives, what a computation waited until its input
was made is late peer); then *send*, *reduce* (gradients and parameters of data parallel
ranks), and what nothing recorded covers, *other*: Python, launches, the wait of a rank for its
turn. Where two cover the same moment, the one named first here counts. So the causes add up
to the window less the computation, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.span import COMPUTE, EXCHANGES, ActionKind, Spans
from serried.trace.pairs import RECEIVES, SENDS, computed_from, pair_messages
from serried.trace.whole_jobs import whole_hand_overs

Times = NDArray[np.int64]
Table = NDArray[np.int64]

CAUSES = ("warm_up", "late_peer", "transfer", "send", "reduce", "other", "cool_down")
"""Why a rank was idle, in the order of a step."""

_COMPUTE, _LATE, _TRANSFER, _SEND, _REDUCE, _OTHER = range(6)
_BETWEEN = {_LATE: "late_peer", _TRANSFER: "transfer", _SEND: "send", _REDUCE: "reduce"}
_REDUCES = (ActionKind.REDUCE_GRAD, ActionKind.UNSHARD, ActionKind.IN_FLIGHT)


@dataclass(frozen=True, eq=False)
class MeasuredIdle:
    """Holds idle nanoseconds by cause, each a table of steps by ranks, and communication."""

    by_cause: dict[str, Table]
    exposed_ns: Table
    """Communication while nothing was computed, and exchanges wherever they are."""
    overlapped_ns: Table
    """Communication hidden behind computation."""
    exchange_ns: Table
    """Exchanges inside computations, whose time they are a part of."""
    receiving_ns: Table
    """Receives while nothing was computed, whatever they waited for."""

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

    ``spans`` are those of the steps and ranks given, both ascending; ``windows`` holds the
    first and the last moment of each step.
    """
    pieces = _pieces(spans, steps, ranks, windows)
    row, column, length, active = pieces.step, pieces.rank, pieces.length_ns, pieces.active
    shape = (len(steps), len(ranks))

    def total(where: NDArray[np.bool_]) -> Table:
        table = np.zeros(shape, dtype=np.int64)
        np.add.at(table, (row[where], column[where]), length[where])
        return table

    kind = np.where(active.any(axis=1), np.argmax(active, axis=1), _OTHER)
    # A rank that computed nothing in a step is before its first computation all along.
    early, late = pieces.before_first, pieces.after_last & ~pieces.before_first
    is_idle = kind != _COMPUTE
    between = is_idle & ~early & ~late
    named = {cause: total(between & (kind == number)) for number, cause in _BETWEEN.items()}
    communicates = active[:, _TRANSFER : _REDUCE + 1].any(axis=1)
    exchanges = pieces.exchanges
    return MeasuredIdle(
        by_cause={
            "warm_up": total(is_idle & early),
            **named,
            "other": total(between & (kind == _OTHER)),
            "cool_down": total(is_idle & late),
        },
        exposed_ns=total(communicates & is_idle | exchanges),
        overlapped_ns=total(communicates & ~is_idle & ~exchanges),
        exchange_ns=total(exchanges & ~is_idle),
        receiving_ns=total(pieces.receiving & is_idle),
    )


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Holds the windows cut at every moment at which something begins or ends."""

    step: NDArray[np.int64]
    rank: NDArray[np.int64]
    length_ns: Times
    active: NDArray[np.bool_]
    """What goes on in each: compute, late peer, transfer, send, reduce."""
    exchanges: NDArray[np.bool_]
    receiving: NDArray[np.bool_]
    before_first: NDArray[np.bool_]
    after_last: NDArray[np.bool_]


def _pieces(
    spans: Spans,
    steps: NDArray[np.int32],
    ranks: NDArray[np.int64],
    windows: tuple[Times, Times],
) -> _Pieces:
    rank, begin, end, what = _intervals(spans)
    column = np.searchsorted(ranks, rank)
    # One more kind, the windows themselves, so that a cut falls at their edges on every rank.
    everyone = np.tile(np.arange(len(ranks)), len(steps))
    column = np.concatenate([column, everyone])
    begin = np.concatenate([begin, np.repeat(windows[0], len(ranks))])
    end = np.concatenate([end, np.repeat(windows[1], len(ranks))])
    what = np.concatenate([what, np.full(len(everyone), _WINDOW)])
    at = np.concatenate([begin, end])
    change = np.repeat([1, -1], len(begin))
    column, what = np.tile(column, 2), np.tile(what, 2)
    order = np.lexsort((at, column))
    counts = np.zeros((len(at), _WINDOW + 1), dtype=np.int32)
    counts[np.arange(len(at)), what[order]] = change[order]
    active = np.cumsum(counts, axis=0, dtype=np.int32)[:-1] > 0
    at, column = at[order], column[order]
    length = np.diff(at)
    kept = (length > 0) & (column[1:] == column[:-1]) & active[:, _WINDOW]
    place, rank_of = at[:-1][kept], column[:-1][kept]
    step = np.searchsorted(windows[0], place, "right") - 1
    first, last = _own_window(spans, steps, ranks)
    return _Pieces(
        step=step,
        rank=rank_of,
        length_ns=length[kept],
        active=active[kept, : _REDUCE + 1],
        exchanges=active[kept, _EXCHANGE],
        receiving=active[kept, _RECEIVING],
        before_first=place < first[step, rank_of],
        after_last=place >= last[step, rank_of],
    )


_EXCHANGE, _RECEIVING, _WINDOW = _REDUCE + 1, _REDUCE + 2, _REDUCE + 3


def _intervals(spans: Spans) -> tuple[NDArray[np.int64], Times, Times, NDArray[np.int64]]:
    """Returns rank, begin, end and kind of all that goes on; receives are cut at their send."""
    what = np.full(len(spans), -1, dtype=np.int64)
    for number, kinds in (
        (_COMPUTE, tuple(COMPUTE)),
        (_SEND, SENDS),
        (_REDUCE, _REDUCES),
        (_EXCHANGE, tuple(EXCHANGES)),
        (_TRANSFER, RECEIVES),
    ):
        what[np.isin(spans.kind, kinds)] = number
    begin, end = spans.start_ns.copy(), spans.end_ns.copy()
    pairs = pair_messages(spans)
    # From here on the message was on its way; before, the receiver waited for the sender.
    sent = np.clip(spans.start_ns[pairs.sends], begin[pairs.receives], end[pairs.receives])
    late_rank, late_begin = spans.rank[pairs.receives], begin[pairs.receives].copy()
    begin[pairs.receives] = sent
    lone = pairs.lone_receives
    what[lone] = _LATE  # a peer that never recorded its send
    known = what >= 0
    unseen_rank, unseen_begin, unseen_end = _unseen_waits(spans)
    late = len(sent) + len(unseen_rank)
    whole = spans.where(np.isin(spans.kind, RECEIVES))
    numbers = [what[known], np.full(late, _LATE), np.full(len(whole), _RECEIVING)]
    return (
        np.concatenate([spans.rank[known], late_rank, unseen_rank, whole.rank]).astype(np.int64),
        np.concatenate([begin[known], late_begin, unseen_begin, whole.start_ns]),
        np.concatenate([end[known], sent, unseen_end, whole.end_ns]),
        np.concatenate(numbers),
    )


def _unseen_waits(spans: Spans) -> tuple[NDArray[np.int32], Times, Times]:
    """Returns the waits that no receive tells of: a computation's, until its input was made."""
    before, after = whole_hand_overs(spans)
    computed = computed_from(spans, pair_messages(spans).receives)
    told = np.zeros(len(spans), dtype=bool)
    told[computed[computed >= 0]] = True
    before, after = before[~told[after]], after[~told[after]]
    made, begun = spans.end_ns[before], spans.start_ns[after]
    compute = np.flatnonzero(np.isin(spans.kind, list(COMPUTE)))
    order = compute[np.lexsort((spans.start_ns[compute], spans.rank[compute]))]
    free = np.zeros(len(spans), dtype=np.int64)
    free[order[1:]] = spans.end_ns[order[:-1]]
    free = free[after]
    waits = (spans.rank[before] != spans.rank[after]) & (made > free)
    until = np.minimum(made, begun)
    waits &= until > free
    return spans.rank[after][waits], free[waits], until[waits]


def _own_window(
    spans: Spans, steps: NDArray[np.int32], ranks: NDArray[np.int64]
) -> tuple[Table, Table]:
    """Returns the first start and the last end of each rank's computations in each step."""
    compute = spans.where(np.isin(spans.kind, list(COMPUTE)))
    cell = np.searchsorted(steps, compute.step), np.searchsorted(ranks, compute.rank)
    first = np.full((len(steps), len(ranks)), np.iinfo(np.int64).max)
    last = np.full((len(steps), len(ranks)), np.iinfo(np.int64).min)
    np.minimum.at(first, cell, compute.start_ns)
    np.maximum.at(last, cell, compute.end_ns)
    return first, last
