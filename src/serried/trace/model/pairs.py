"""Pairs: which send met which receive, and which computation handed over to which.

    rank 0   3SEND_F2  peer 4  ──────>  rank 4   4RECV_F2  peer 0     boundary 3, forwards
    rank 0   3RECV_B2  peer 4  <──────  rank 4   4SEND_B2  peer 0     boundary 3, backwards

A boundary lies between two consecutive stages and has the number of the lower one. Sender,
receiver, step, boundary, direction and microbatch name a message; where a name comes twice,
the first send meets the first receive.

    rank 1   [1B0 piece 1][1B0 piece 2]
    rank 0                             [0B0 piece 1][0B0 piece 2]
                          the last piece ──> the first piece

A computation hands its result over to another, of the next stage or the one before. Some were
recorded in pieces, spans of one rank, step and action, such as Paddle's ``backward(chunk0)`` and
``backward(chunk1)``: one takes as long as its pieces together, what it made is there when its last
piece ended, and its taker's first piece is the one that waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind, Spans

Rows = NDArray[np.int64]
Codes = NDArray[np.int64]

SENDS = (ActionKind.SEND_F, ActionKind.SEND_B)
RECEIVES = (ActionKind.RECV_F, ActionKind.RECV_B)
_BACKWARDS = (ActionKind.SEND_B, ActionKind.RECV_B)
_RECEIVERS = (ActionKind.F, ActionKind.B, ActionKind.I)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Holds, message by message, the row of its send and of its receive, and those left alone."""

    sends: Rows
    receives: Rows
    lone_sends: Rows
    lone_receives: Rows

    def __len__(self) -> int:
        return len(self.sends)


def pair_messages(spans: Spans) -> Pairs:
    """Pairs sends with receives one to one; rows are those of ``spans``.

    >>> ranks = np.array([0, 1], dtype=np.int32)
    >>> kind = np.array([ActionKind.SEND_F, ActionKind.RECV_F], dtype=np.int32)
    >>> none, times = ranks * 0, np.array([5, 6])
    >>> spans = Spans(ranks, ranks, kind, none, none, ranks[::-1], times, times + 1)
    >>> pairs = pair_messages(spans)
    >>> pairs.sends.tolist(), pairs.receives.tolist()
    ([0], [1])
    """
    sends = np.flatnonzero(np.isin(spans.kind, SENDS))
    receives = np.flatnonzero(np.isin(spans.kind, RECEIVES))
    names = _message_names(spans, np.concatenate([sends, receives]), len(sends))
    of_send, of_receive = _matches(names, len(sends))
    return Pairs(
        sends=sends[of_send],
        receives=receives[of_receive],
        lone_sends=np.delete(sends, of_send),
        lone_receives=np.delete(receives, of_receive),
    )


def computed_from(spans: Spans, receives: Rows) -> Rows:
    """Returns the row of the F, B or I that each receive was for, -1 where there is none."""
    computes = np.flatnonzero(np.isin(spans.kind, _RECEIVERS))
    rows = np.concatenate([receives, computes])
    is_backwards = np.isin(spans.kind[rows], (ActionKind.RECV_B, ActionKind.B, ActionKind.I))
    names = [
        column.astype(np.int64)
        for column in (*_place(spans, rows), spans.stage[rows], spans.rank[rows], is_backwards)
    ]
    of_receive, of_compute = _matches(names, len(receives))
    found = np.full(len(receives), -1, dtype=np.int64)
    found[of_receive] = computes[of_compute]
    return found


def hand_overs(spans: Spans, pipeline: Codes | None = None) -> tuple[Rows, Rows]:
    """Returns the rows of computations and of those that their results go to, pair by pair.

    F of stage s goes to F of s + 1, the backward of s + 1 to that of s, of the same step and
    microbatch. ``pipeline`` gives each rank the number of its own; without it pipelines side by
    side are paired in the order of their ranks, which holds where none lacks a span.
    """
    backwards = np.isin(spans.kind, (ActionKind.B, ActionKind.I))
    forwards = spans.kind == ActionKind.F
    befores, afters = [], []
    for rows, way in ((np.flatnonzero(forwards), 1), (np.flatnonzero(backwards), -1)):
        mine = [column.astype(np.int64) for column in _place(spans, rows)]
        mine += [] if pipeline is None else [pipeline[spans.rank[rows]]]
        stage = spans.stage[rows].astype(np.int64)
        # Every row is named twice: by the stage that it hands over to, and by its own. A row of
        # the first half hands over to the one of the second half that has the same name.
        both = [np.concatenate([column, column]) for column in mine]
        names = [*both, np.concatenate([stage + way, stage])]
        left, right = _matches(names, len(rows))
        befores.append(rows[left])
        afters.append(rows[right])
    return np.concatenate(befores), np.concatenate(afters)


def whole_hand_overs(spans: Spans, pipeline: Codes | None = None) -> tuple[Rows, Rows]:
    """Returns the rows of hand-overs as ``hand_overs`` does, of pieces only the outer ones."""
    before, after = hand_overs(spans, pipeline)
    of, count = _computations(spans)
    if count == len(spans):
        return before, after
    # Of several rows written to one place the last stays: so the first piece is found by going
    # through the starts backwards, and the last one by going through the ends.
    first, last = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    rows = np.argsort(spans.start_ns, kind="stable")
    first[of[rows[::-1]]] = rows[::-1]
    rows = rows[np.argsort(spans.end_ns[rows], kind="stable")]
    last[of[rows]] = rows
    is_to_first = first[of[after]] == after
    return last[of[before[is_to_first]]], after[is_to_first]


def whole_computations(spans: Spans) -> Spans:
    """Returns ``spans`` with those in pieces as one: from the first one's start, as long as all.

    ``spans`` stand by rank and start, and so does what is returned.
    """
    of, count = _computations(spans)
    if count == len(spans):
        return spans
    _, first = np.unique(of, return_index=True)
    length = np.zeros(count, dtype=np.int64)
    np.add.at(length, of, spans.end_ns - spans.start_ns)
    first = np.sort(first)
    whole = spans.where(first)
    return replace(whole, end_ns=whole.start_ns + length[of[first]])


def _computations(spans: Spans) -> tuple[Rows, int]:
    """Returns for each span the number of what it is a piece of, and how many there are."""
    columns = (spans.rank, spans.step, spans.kind, spans.stage, spans.microbatch)
    names = packed([column.astype(np.int64) for column in columns])
    _, of = np.unique(names, return_inverse=True)
    return of, int(of.max(initial=-1)) + 1


def _matches(names: Sequence[Codes], num_left: int) -> tuple[Rows, Rows]:
    """Matches rows of equal ``names``: the first ``num_left`` rows with the others, in turn."""
    codes = packed(names)
    # Where a name comes more than once, its turn becomes a part of it: then none does.
    turns = [_turns(codes[:num_left]), _turns(codes[num_left:])]
    codes = packed([codes, np.concatenate(turns)])
    _, left, right = np.intersect1d(
        codes[:num_left], codes[num_left:], assume_unique=True, return_indices=True
    )
    return left, right


def _message_names(spans: Spans, rows: Rows, num_sends: int) -> list[Codes]:
    """Returns sender, receiver, boundary, direction, step and microbatch of messages.

    The first ``num_sends`` of ``rows`` are sends, the others receives.
    """
    is_send = np.arange(len(rows)) < num_sends
    is_backwards = np.isin(spans.kind[rows], _BACKWARDS)
    rank, peer, stage = spans.rank[rows], spans.peer[rows], spans.stage[rows]
    return [
        np.where(is_send, rank, peer).astype(np.int64),
        np.where(is_send, peer, rank).astype(np.int64),
        # SEND_F and RECV_B stand on the lower stage of their boundary, the others on the upper.
        (stage - (is_send == is_backwards)).astype(np.int64),
        is_backwards.astype(np.int64),
        *_place(spans, rows),
    ]


def _place(spans: Spans, rows: Rows) -> list[Codes]:
    """Returns step and microbatch of ``rows``."""
    return [spans.step[rows].astype(np.int64), spans.microbatch[rows].astype(np.int64)]


def _turns(names: Codes) -> Codes:
    """Returns for each name how many equal ones come before it.

    >>> _turns(np.array([7, 4, 7, 7])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(names, kind="stable")
    place = np.arange(len(names))
    is_first = np.diff(names[order], prepend=names[order[:1]] - 1) != 0
    turns = np.empty_like(place)
    turns[order] = place - np.maximum.accumulate(np.where(is_first, place, 0))
    return turns


def packed(columns: Sequence[Codes]) -> Codes:
    """Returns one number per row, equal where all ``columns`` are: a mixed-radix number.

    >>> packed([np.array([5, 5, 6]), np.array([1, 1, 1])]).tolist()
    [0, 0, 1]
    """
    code = np.zeros(len(columns[0]), dtype=np.int64)
    if not len(code):
        return code
    size = 1
    for column in columns:
        low, high = int(column.min()), int(column.max())
        # Before the product is more than 63 bits hold, the numbers so far are counted anew: there
        # are no more different ones than rows.
        if size * (high - low + 1) > 2**62:
            code = np.unique(code, return_inverse=True)[1]
            size = int(code.max()) + 1
        code = code * (high - low + 1) + (column - low)
        size *= high - low + 1
    return code
