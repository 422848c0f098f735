"""Tracks: which slices stand beside, below and before one another, for every way to draw them.

    rank
    ├── compute     forward, backward
    ├── receive     receive forward wait, receive backward wait
    ├── send        send forward, send backward
    └── step        reduce gradients, optimizer

Slices of one thread must not overlap: where two do, the later gets a further lane. An arrow
leads from a send to what was computed from its message.
"""

from __future__ import annotations

import heapq
from itertools import count

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, Action, ActionKind, Spans
from serried.trace.model.pairs import computed_from, packed, pair_messages
from serried.trace.model.trace import Trace

THREADS = ("compute", "receive", "send", "step", "exchange", "named")

SLICES: dict[ActionKind, tuple[str, str]] = {
    ActionKind.F: ("forward", "compute"),
    ActionKind.B: ("backward", "compute"),
    ActionKind.I: ("backward for input", "compute"),
    ActionKind.W: ("backward for weight", "compute"),
    ActionKind.OVERLAP_F_B: ("forward and backward", "compute"),
    ActionKind.RECV_F: ("receive forward wait", "receive"),
    ActionKind.RECV_B: ("receive backward wait", "receive"),
    ActionKind.SEND_F: ("send forward", "send"),
    ActionKind.SEND_B: ("send backward", "send"),
    ActionKind.REDUCE_GRAD: ("reduce gradients", "step"),
    ActionKind.UNSHARD: ("gather parameters", "step"),
    ActionKind.RESHARD: ("release parameters", "step"),
    ActionKind.OPTIMIZER: ("optimizer", "step"),
    ActionKind.RING: ("ring wait", "exchange"),
    ActionKind.ALL_TO_ALL: ("all-to-all", "exchange"),
    ActionKind.ALL_GATHER: ("all-gather", "exchange"),
    ActionKind.REDUCE_SCATTER: ("reduce-scatter", "exchange"),
    ActionKind.ALL_REDUCE: ("all-reduce", "exchange"),
    ActionKind.BROADCAST: ("broadcast", "exchange"),
    ActionKind.IN_FLIGHT: ("in flight", "exchange"),
    ActionKind.SPAN: ("named by the user", "named"),
}
"""What a slice of each kind is called, and which thread it stands on."""

Column = NDArray[np.int64]


def threads_of(spans: Spans) -> Column:
    """Returns the place in THREADS of each span."""
    of_kind = np.zeros(max(SLICES) + 1, dtype=np.int64)
    for kind, (_, thread) in SLICES.items():
        of_kind[kind] = THREADS.index(thread)
    return np.asarray(of_kind[spans.kind], dtype=np.int64)


def actions_of(spans: Spans) -> tuple[Column, list[str]]:
    """Returns for each span the number of its action's text, and the texts.

    >>> numbers = np.array([1, 0, 1])
    >>> spans = Spans(*[numbers] * 2, 1 + numbers, *[numbers] * 3, *[np.arange(3)] * 2)
    >>> actions_of(spans)[1]
    ['0F0', '1B1']
    """
    names = [column.astype(np.int64) for column in (spans.kind, spans.stage, spans.microbatch)]
    _, first, of = np.unique(packed(names), return_index=True, return_inverse=True)
    # Rows are many and texts few: each is made once.
    texts = [
        str(Action(ActionKind(kind), stage, microbatch))
        for kind, stage, microbatch in zip(*(name[first].tolist() for name in names), strict=True)
    ]
    return of.astype(np.int64), texts


def lanes_of(spans: Spans) -> Column:
    """Returns 0 for each span, or a higher lane where it would overlap one on its thread."""
    lanes = np.zeros(len(spans), dtype=np.int64)
    track = spans.rank.astype(np.int64) * len(THREADS) + threads_of(spans)
    order = np.lexsort((spans.end_ns, spans.start_ns, track))
    # If any two spans of a track overlap, so do two that follow one another by start. Most
    # tracks have none, and are spared the loop in Python below.
    before, after = order[:-1], order[1:]
    overlaps = (track[before] == track[after]) & (spans.end_ns[before] > spans.start_ns[after])
    ordered = track[order]
    for crowded in np.unique(track[after[overlaps]]):
        rows = order[slice(*np.searchsorted(ordered, (crowded, crowded + 1)))]
        lanes[rows] = _spread(spans.start_ns[rows].tolist(), spans.end_ns[rows].tolist())
    return lanes


def _spread(starts: list[int], ends: list[int]) -> list[int]:
    """Returns the lowest free lane for each interval; ``starts`` ascend.

    >>> _spread([0, 5, 10], [10, 15, 12])
    [0, 1, 0]
    """
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    fresh = count()
    lanes = []
    for start, end in zip(starts, ends, strict=True):
        # Every lane that is free again goes back, so that the lowest of all is taken.
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else next(fresh)
        heapq.heappush(busy, (end, lane))
        lanes.append(lane)
    return lanes


def stages_of(trace: Trace) -> dict[int, list[int]]:
    """Returns the stages that each rank computed, several where it holds several."""
    own = np.isin(trace.spans.kind, list(COMPUTE)) & (trace.spans.stage >= 0)
    num_stages = 1 + int(trace.spans.stage.max(initial=0))
    held = np.unique(trace.spans.rank[own].astype(np.int64) * num_stages + trace.spans.stage[own])
    stages: dict[int, list[int]] = {}
    for each in held.tolist():
        stages.setdefault(each // num_stages, []).append(each % num_stages)
    return stages


def arrows(spans: Spans) -> tuple[Column, Column]:
    """Returns the rows of the sends and of the computations that arrows join.

    Left out are messages without a receive or a computation, and those whose computation
    began before the send: the clocks of two hosts can say so, the statistics count it.
    """
    pairs = pair_messages(spans)
    into = computed_from(spans, pairs.receives)
    is_drawn = (into >= 0) & (spans.start_ns[into] >= spans.start_ns[pairs.sends])
    return pairs.sends[is_drawn], into[is_drawn]
