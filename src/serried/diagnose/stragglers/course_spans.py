"""The waits of a trace's ranks as columns: collectives with groups, receives with their sends.

rank 0   [ F ][SEND_F][..RECV_B..][ B |ALL_REDUCE|   ]     between two of its waits, sends too,
          own 4                    own 2          own 3    a rank does what is its own
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, EXCHANGES, ActionKind, Spans
from serried.mesh import Layout
from serried.trace.measure.compare import pipelines_of
from serried.trace.measure.moments import hidden_reductions
from serried.trace.model.pairs import RECEIVES, SENDS, packed, pair_messages, whole_hand_overs
from serried.trace.model.trace import Trace

_OVER_REPLICAS = (ActionKind.REDUCE_GRAD, ActionKind.UNSHARD)
_HANDED_ON = (
    (ActionKind.SEND_F, ActionKind.RECV_F, (ActionKind.F,)),
    (ActionKind.SEND_B, ActionKind.RECV_B, (ActionKind.B, ActionKind.I)),
)
_AXES = ("tp", "cp", "pp", "dp", "ep")

Column = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Waits:
    """Holds waits by rank, step and begin; times in nanoseconds."""

    rank: Column
    """The place in ``ranks``."""
    step: Column
    begin: Column
    end: Column
    own: Column
    """From the end of the rank's wait before to the begin of this one."""
    name: Column
    """Equal where a rank waits for the same in another step."""
    work: Column
    """Equal where ranks do the same: the kind of a wait, its stage and microbatch."""
    place: Column
    """The same without the microbatch."""
    meeting: Column
    """Equal for waits that may meet: their group and kind; -1 for all others."""
    size: Column
    """The number of ranks of that group."""
    sender: Column
    """The row of the send that a receive waits for, -1 where it is none or has none."""
    ranks: Column

    def __len__(self) -> int:
        return len(self.rank)


def waits_of(trace: Trace, steps: Column) -> Waits | None:
    """Returns the waits in ``steps``; None where ranks are not known to wait for one another."""
    spans, sends, receives = _with_hand_overs(trace)
    is_exchange = np.isin(spans.kind, sorted(EXCHANGES))
    is_exchange |= np.isin(spans.kind, _OVER_REPLICAS) & ~hidden_reductions(spans)
    is_receive = np.isin(spans.kind, RECEIVES)
    rows = np.flatnonzero(is_exchange | is_receive | np.isin(spans.kind, SENDS))
    rows = rows[np.lexsort((is_receive[rows], spans.start_ns[rows], spans.rank[rows]))]
    if not len(rows):
        return None
    groups, sizes = _groups(trace, spans, rows, is_exchange)
    if not (groups >= 0).any() and not len(receives):
        return None
    begin, end = spans.start_ns[rows], _ends(spans, rows)
    own = _own(spans, rows, begin, end)
    place_of = np.full(len(spans), -1, dtype=np.int64)
    place_of[rows] = np.arange(len(rows))
    sender = np.full(len(rows), -1, dtype=np.int64)
    sender[place_of[receives]] = place_of[sends]
    of = [each[rows].astype(np.int64) for each in (spans.kind, spans.stage, spans.microbatch)]
    ranks = np.unique(spans.rank[rows]).astype(np.int64)
    mine = np.flatnonzero(np.isin(spans.step[rows], steps))
    mine = mine[np.lexsort((mine, spans.step[rows][mine], spans.rank[rows][mine]))]
    now_at = np.full(len(rows) + 1, -1, dtype=np.int64)
    now_at[mine] = np.arange(len(mine))
    return Waits(
        rank=np.searchsorted(ranks, spans.rank[rows][mine]),
        step=spans.step[rows][mine].astype(np.int64),
        begin=begin[mine],
        end=end[mine],
        own=own[mine],
        name=packed([*of, spans.peer[rows].astype(np.int64), groups])[mine],
        work=packed(of)[mine],
        place=packed(of[:2])[mine],
        meeting=np.where(groups >= 0, packed([groups, of[0]]), -1)[mine],
        size=sizes[mine],
        sender=now_at[sender[mine]],
        ranks=ranks,
    )


def _own(spans: Spans, rows: Column, begin: Column, end: Column) -> Column:
    """Returns what ranks did before each of their waits ``rows``, since the end of one before."""
    before = np.empty(len(rows), dtype=np.int64)
    ranks = spans.rank[rows]
    edges = np.append(np.flatnonzero(np.diff(ranks, prepend=-1)), len(rows))
    for first, last in pairwise(edges.tolist()):
        began = spans.start_ns[np.searchsorted(spans.rank, ranks[first])]
        before[first] = began
        before[first + 1 : last] = np.maximum.accumulate(end[first : last - 1])
    return np.asarray(np.maximum(begin - before, 0))


def _ends(spans: Spans, rows: Column) -> Column:
    """Returns when each wait ends; of a send that lasts behind a computation, when that begins."""
    end = spans.end_ns[rows].copy()
    computes = np.flatnonzero(np.isin(spans.kind, sorted(COMPUTE)))
    high = int(spans.end_ns.max()) + 1
    at = spans.rank.astype(np.int64) * high + spans.start_ns
    next_ = np.searchsorted(at[computes], at[rows])
    known = next_ < len(computes)
    follows = computes[np.minimum(next_, len(computes) - 1)] if len(computes) else next_
    known &= np.isin(spans.kind[rows], SENDS)
    if len(computes):
        known &= spans.rank[follows] == spans.rank[rows]
        end[known] = np.minimum(end[known], spans.start_ns[follows[known]])
    return end


def _with_hand_overs(trace: Trace) -> tuple[Spans, Column, Column]:
    """Returns spans with messages, and the rows of sends and receives, pair by pair.

    Of a pipeline without recorded messages a computation is sent on when it ends, and its receiver
    waits from the end of what it did before.
    """
    spans = trace.spans
    made = list[Spans]()
    for send, receive, kinds in _HANDED_ON:
        if trace.has_pipeline and not np.isin(spans.kind, receive).any():
            made += _messages(trace, send, receive, kinds)
    if made:
        spans = Spans.joined([spans, *made])
        spans = spans.where(np.lexsort((spans.end_ns, spans.start_ns, spans.rank)))
    pairs = pair_messages(spans)
    return spans, pairs.sends, pairs.receives


def _messages(
    trace: Trace, send: ActionKind, receive: ActionKind, kinds: tuple[ActionKind, ...]
) -> list[Spans]:
    """Returns messages of no length between computations of ``kinds`` on different ranks."""
    spans = trace.spans
    pipeline = np.zeros(trace.job.world_size, dtype=np.int64)
    for number, ranks in enumerate(pipelines_of(trace)):
        pipeline[ranks] = number
    before, after = whole_hand_overs(spans, pipeline)
    is_one = np.isin(spans.kind[before], kinds) & (spans.rank[before] != spans.rank[after])
    before, after = before[is_one], after[is_one]
    # Of a backward in halves only the first is waited for, and only that hands on.
    done = _done_before(spans)
    starts = np.minimum(done[after], spans.start_ns[after])
    return [
        _like(spans, before, send, spans.rank[after], spans.end_ns[before], spans.end_ns[before]),
        _like(spans, after, receive, spans.rank[before], starts, spans.start_ns[after]),
    ]


def _done_before(spans: Spans) -> Column:
    """Returns for each span when its rank had ended all that it began before."""
    done = spans.start_ns.copy()
    own = np.flatnonzero(~np.isin(spans.kind, (ActionKind.SPAN, ActionKind.IN_FLIGHT)))
    ranks = spans.rank[own]
    edges = np.append(np.flatnonzero(np.diff(ranks, prepend=-1)), len(own))
    for first, last in pairwise(edges.tolist()):
        done[own[first + 1 : last]] = np.maximum.accumulate(spans.end_ns[own[first : last - 1]])
    return done


def _like(
    spans: Spans, rows: Column, kind: ActionKind, peers: Column, start: Column, end: Column
) -> Spans:
    of = spans.where(rows)
    none = np.full(len(rows), -1)
    return Spans(
        rank=of.rank,
        stage=of.stage,
        kind=np.full(len(rows), kind, dtype=of.kind.dtype),
        microbatch=of.microbatch,
        step=of.step,
        peer=peers.astype(of.peer.dtype),
        start_ns=start,
        end_ns=end,
        group=none.astype(of.group.dtype),
    )


def _groups(
    trace: Trace, spans: Spans, rows: Column, is_exchange: NDArray[np.bool_]
) -> tuple[Column, Column]:
    """Returns a number for the group of each wait, -1 where it is not known, and its size."""
    lists = [tuple(sorted(group.ranks)) for group in trace.groups]
    over_replicas = _replicas(trace.layout)
    wide = [axis for axis in _AXES if trace.job.sizes.get(axis, 1) > 1]
    everyone = tuple(trace.ranks) if len(wide) == 1 and not trace.has_pipeline else None
    numbers = dict[tuple[int, ...], int]()
    found = np.full(len(rows), -1, dtype=np.int64)
    sizes = np.zeros(len(rows), dtype=np.int64)
    for at in np.flatnonzero(is_exchange[rows]).tolist():
        row = rows[at]
        told = int(spans.group[row])
        members = lists[told] if told >= 0 else everyone
        if members is None and spans.kind[row] in _OVER_REPLICAS:
            members = over_replicas.get(int(spans.rank[row]))
        if members is not None and len(members) > 1:
            found[at] = numbers.setdefault(members, len(numbers))
            sizes[at] = len(members)
    return found, sizes


def _replicas(layout: Layout | None) -> dict[int, tuple[int, ...]]:
    """Returns the ranks that each rank reduces its gradients with."""
    if layout is None or "dp" not in layout.dims:
        return {}
    lists = layout.groups(layout.kind_of("dp", with_cp=True)).lists()
    return {rank: tuple(sorted(group)) for group in lists for rank in group}
