"""A recorded Trace as a Replay: its spans become operations with what they wait for.

    rank of stage 0   F0 ─ F1 ─ … ─ B0 ─ … ─ REDUCE_GRAD ─ OPTIMIZER     in recorded order
                       └ SEND_F0 ─┐ meet                    └ with all replicas
    rank of stage 1      RECV_F0 ─┴ F0 ─ B0 ─ …

Computations follow one another as they were recorded; a send follows what it sends, a receive
what came before it on its rank, and a computation its receive. All pipelines of the job ran
the same operations, so each is a lane (``replay``); steps that lack one are left out. Exchanges
lie within computations and spans of the user around them: they are no operations of their own,
and what a computation waited for them is not its time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from serried.action import EXCHANGES, ActionKind, Spans
from serried.mesh import Layout
from serried.trace.measure.moments import hidden_reductions, without_waits
from serried.trace.model.pairs import RECEIVES, SENDS, Rows, packed, pair_messages
from serried.trace.model.replay import Replay, SyncGroup
from serried.trace.model.trace import Trace

_MESSAGES = frozenset({*SENDS, *RECEIVES, ActionKind.REDUCE_GRAD, ActionKind.UNSHARD})
_WITHIN = [*EXCHANGES, ActionKind.IN_FLIGHT, ActionKind.SPAN]
_OVER_REPLICAS = frozenset({ActionKind.REDUCE_GRAD, ActionKind.UNSHARD})

Column = NDArray[np.int64]


def replay_of_trace(trace: Trace) -> Replay | None:
    """Returns the operations of ``trace``; None where they cannot be told or replayed.

    So it is where its pipelines did not do the same work, where a computation's span holds its
    wait, where no computation took time, and where operations wait for one another in a circle.
    """
    if trace.replay is not None:
        return trace.replay
    if trace.layout is None or trace.missing or trace.waits_inside:
        return None
    ranks = _pipelines(trace.layout)
    # Receives that met no send are left out: `_hand_over` then ties the computations themselves.
    is_within = np.isin(trace.spans.kind, [*_WITHIN, *_unsent(trace.spans)])
    is_within |= hidden_reductions(trace.spans)
    spans = without_waits(trace.spans).where(~is_within)
    if not len(spans):
        return None
    lanes = _in_lanes(spans, ranks)
    if not len(lanes.steps) or not len(lanes.first):
        return None
    replay = _replay(spans, lanes, trace.layout, ranks)
    takes_time = bool(replay.seconds[~replay.is_message].any())
    return replay if takes_time and replay.has_an_order else None


def _unsent(spans: Spans) -> list[ActionKind]:
    """Returns the receives of which no send was recorded, so that they tell of no peer."""
    met = set(spans.kind[pair_messages(spans).receives].tolist())
    return [kind for kind in RECEIVES if kind not in met]


def _replay(spans: Spans, lanes: _Lanes, layout: Layout, ranks: Column) -> Replay:
    after, meetings = _rules(spans, lanes)
    across = _across(layout, ranks)
    kinds = [ActionKind(int(kind)) for kind in spans.kind[lanes.first]]
    # A send and its receive meet in one pipeline, a reduction over its data parallel group.
    whole = tuple(
        SyncGroup(each, across if kinds[each[0]] in _OVER_REPLICAS else None) for each in meetings
    )
    return Replay(
        types=tuple(kind.name for kind in kinds),
        stages=lanes.place[lanes.first],
        is_message=np.array([kind in _MESSAGES for kind in kinds]),
        after=after,
        meetings=whole,
        seconds=_seconds(lanes, whole),
        steps=tuple(lanes.steps.tolist()),
        ranks=ranks,
    )


# ----------------------------------------------------------------------- lanes


@dataclass(frozen=True, eq=False)
class _Lanes:
    """Holds a trace's spans as a table of operations by steps and replicas."""

    starts: NDArray[np.float64]
    ends: NDArray[np.float64]
    steps: Column
    first: Rows
    """The span of each operation in the first step and replica."""
    place: Column
    """The place of every span's rank in its pipeline."""


def _pipelines(layout: Layout) -> Column:
    """Returns the ranks as (place in the pipeline, replica)."""
    if layout.sizes.get("pp", 1) == 1:
        return np.sort(layout.mesh.ranks.ravel()).astype(np.int64)[None, :]
    columns = np.array(layout.groups(layout.kind_of("pp")).lists())
    return np.ascontiguousarray(columns[np.argsort(columns[:, 0])].T)


def _in_lanes(spans: Spans, ranks: Column) -> _Lanes:
    num_replicas = ranks.shape[1]
    place = np.zeros(1 + int(ranks.max()), dtype=np.int64)
    replica = place.copy()
    place[ranks], replica[ranks] = np.indices(ranks.shape)
    place, replica = place[spans.rank], replica[spans.rank]
    steps, step = np.unique(spans.step, return_inverse=True)
    operation, count = _operations(spans, place)
    starts = np.full((count, len(steps), num_replicas), np.nan)
    ends = starts.copy()
    starts[operation, step, replica] = spans.start_ns / 1e9
    ends[operation, step, replica] = spans.end_ns / 1e9
    is_there = ~np.isnan(starts)
    # A step that lacks what at most half of the lanes have is not incomplete for it.
    usual = is_there.mean(axis=(1, 2)) > 0.5
    whole = is_there[usual].all(axis=(0, 2))
    row_of = np.full((count, len(steps), num_replicas), -1)
    row_of[operation, step, replica] = np.arange(len(spans))
    first = row_of[usual, np.argmax(whole), 0] if whole.any() else np.empty(0, dtype=np.int64)
    # Messages of no length, and sends, begin with the computation behind them and end before it.
    order = np.lexsort((spans.end_ns[first], spans.start_ns[first], place[first]))
    table = np.flatnonzero(usual)[order][:, None], np.flatnonzero(whole)[None, :]
    return _Lanes(starts[table], ends[table], steps[whole], first[order], place)


def _operations(spans: Spans, place: Column) -> tuple[Column, int]:
    """Numbers the operations: spans of equal place, action and turn in their step are one."""
    named = (place, spans.kind, spans.stage, spans.microbatch, spans.rank, spans.step)
    columns = np.array(named, dtype=np.int64)
    order = np.lexsort((spans.start_ns, *columns))
    ordered = columns[:, order]
    is_new = np.ones(len(spans), dtype=bool)
    is_new[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    at = np.arange(len(spans))
    turn = np.empty(len(spans), dtype=np.int64)
    turn[order] = at - np.maximum.accumulate(np.where(is_new, at, 0))
    kinds, operation = np.unique(packed([*columns[:4], turn]), return_inverse=True)
    return operation, len(kinds)


# ----------------------------------------------------------------------- what waits for what


def _rules(
    spans: Spans, lanes: _Lanes
) -> tuple[tuple[tuple[int, ...], ...], list[tuple[int, ...]]]:
    """Returns what each operation comes after, and which meet; numbers are those of the lanes."""
    after: list[list[int]] = [[] for _ in lanes.first]
    places = lanes.place[lanes.first]
    kinds = spans.kind[lanes.first]
    is_chained = ~np.isin(kinds, SENDS + RECEIVES)
    for place in np.unique(places):
        mine = np.flatnonzero(places == place)
        chain = mine[is_chained[mine]]
        # Messages hang beside this chain: each comes after what stood before it on its rank, and
        # only a receive holds up what stands behind it.
        for before, each in pairwise(chain):
            after[each].append(int(before))
        for each in mine[~is_chained[mine]]:
            at = int(np.searchsorted(chain, each))
            after[each] += [int(chain[at - 1])] if at else []
            if kinds[each] in RECEIVES and at < len(chain):
                after[chain[at]].append(int(each))
    one = spans.where(lanes.first)
    _hand_over(one, after)
    pairs = pair_messages(one)
    meetings = [(int(s), int(r)) for s, r in zip(pairs.sends, pairs.receives, strict=True)]
    shared = np.flatnonzero(np.isin(kinds, list(_OVER_REPLICAS)))
    return tuple(map(tuple, after)), [*meetings, *((int(each),) for each in shared)]


def _hand_over(spans: Spans, after: list[list[int]]) -> None:
    """Lets a computation follow its neighbour's where no receive was recorded between them."""
    forwards = {ActionKind.F: ActionKind.RECV_F}
    backwards = {ActionKind.B: ActionKind.RECV_B, ActionKind.I: ActionKind.RECV_B}
    keys = list(
        zip(spans.kind.tolist(), spans.stage.tolist(), spans.microbatch.tolist(), strict=True)
    )
    at = {key: place for place, key in enumerate(keys)}
    for receives, way in ((forwards, -1), (backwards, 1)):
        for place, (kind, stage, microbatch) in enumerate(keys):
            # A recorded receive stands between the two already.
            if kind not in receives or (receives[kind], stage, microbatch) in at:
                continue
            for before in receives:
                if (found := at.get((before, stage + way, microbatch))) is not None:
                    after[place].append(found)


def _across(layout: Layout, ranks: Column) -> tuple[int, ...]:
    """Returns for each replica the number of its data parallel group."""
    if "dp" not in layout.dims:
        return tuple(range(ranks.shape[1]))
    kind = layout.kind_of("dp", with_cp=True)
    # The groups of the first stage stand for those of all stages.
    of_rank = {rank: group[0] for group in layout.groups(kind).lists() for rank in group}
    return tuple(of_rank.get(int(rank), int(rank)) for rank in ranks[0])


def _seconds(lanes: _Lanes, meetings: tuple[SyncGroup, ...]) -> NDArray[np.float64]:
    """Returns each operation's own time: what came after the last start, where it meets others."""
    seconds = lanes.ends - lanes.starts
    for meeting in meetings:
        rows = list(meeting.operations)
        # Nothing moves before the last of them is there: what others waited is not their own.
        last = lanes.starts[rows].max(axis=0)
        for number in set(meeting.across or ()):
            mine = np.array(meeting.across) == number
            last[:, mine] = last[:, mine].max(axis=1, keepdims=True)
        seconds[rows] = np.maximum(lanes.ends[rows] - last, 0)
    return seconds
