"""What belongs to a span: the same microbatch on other ranks, and who handed it to whom.

rank 0   0F2 ──╮                 ╭──> 0B2      an arrow from where a result was made
rank 1         ╰──> 1F2   1B2 ──╯              to where it was used
"""

from __future__ import annotations

import re

import numpy as np

from serried.action import Spans
from serried.errors import InputError
from serried.trace.model.pairs import hand_overs, pair_messages
from serried.views.web.trace.questions import read_moment
from serried.views.web.trace.shown import ShownTrace
from serried.views.web.trace.table import Ids, span_columns
from serried.views.web.wire.payload import pack
from serried.views.web.wire.query import Words, read_word

_NAME = re.compile(r"([0-9]{1,9})\.([0-9]{1,18})(?:\.([0-9]{1,6}))?")
MOST_SPANS = 4096
"""A microbatch of more spans than this shows only those nearest in time."""


def links_payload(shown: ShownTrace, words: Words) -> bytes:
    """Returns a span's microbatch, in its step and on its pipeline's ranks, and its arrows.

    The span itself comes first. Raises InputError for a span that is not there.
    """
    span = _read_id(shown, words, "slice")
    ids = _microbatch(shown, span)
    spans = shown.table.spans(ids)
    arrows = _arrows(shown, spans)
    columns = {
        "id": ids.astype(np.int32),
        "arrow:from": ids[arrows[0]].astype(np.int32),
        "arrow:to": ids[arrows[1]].astype(np.int32),
        **span_columns(spans),
    }
    return pack({"kind": "links"}, columns)


def span_payload(shown: ShownTrace, words: Words) -> bytes:
    """Returns one span: ``by`` places along a rank from ``slice``, the one ``named`` in an address,
    or the one at a point.

    At a point of a ``track`` it is the longest of those within ``slack`` of ``time`` that meet
    one pixel, or else the nearest. Nothing comes where nothing is.
    """
    if name := read_word(words, "named"):
        ids = _named(shown, name)
    else:
        ids = _beside(shown, words) if read_word(words, "slice") else _at(shown, words)
    spans = shown.table.spans(ids)
    return pack({"kind": "span"}, {"id": ids.astype(np.int32), **span_columns(spans)})


def _microbatch(shown: ShownTrace, span: int) -> Ids:
    """Returns the span itself, then the others of its microbatch by id."""
    spans = shown.trace.spans
    (row,) = shown.table.rows(np.array([span])).tolist()
    microbatch, step = int(spans.microbatch[row]), int(spans.step[row])
    if microbatch < 0:
        return np.array([span])
    rows = np.flatnonzero((spans.microbatch == microbatch) & (spans.step == step))
    # Every pipeline numbers its microbatches from 0, so the number alone would find others' too.
    pipelines = shown.table.pipelines
    rows = rows[pipelines[spans.rank[rows]] == pipelines[spans.rank[row]]]
    if len(rows) > MOST_SPANS:
        away = np.abs(spans.start_ns[rows] - spans.start_ns[row])
        rows = np.sort(rows[np.argpartition(away, MOST_SPANS)[:MOST_SPANS]])
    ids = np.sort(shown.table.ids(rows))
    return np.concatenate([[span], ids[ids != span]])


def _arrows(shown: ShownTrace, spans: Spans) -> tuple[Ids, Ids]:
    """Returns the places of senders and receivers: computations, and messages recorded alone."""
    before, after = hand_overs(spans, shown.table.pipelines.astype(np.int64))
    pairs = pair_messages(spans)
    return np.concatenate([before, pairs.sends]), np.concatenate([after, pairs.receives])


def _beside(shown: ShownTrace, words: Words) -> Ids:
    """Returns the span that starts ``by`` places later on the same rank, itself at the ends."""
    span = _read_id(shown, words, "slice")
    by = read_word(words, "by")
    if by not in ("1", "0", "-1"):
        raise InputError("by={by} is no way to go; 1 is onwards, -1 back", by=by[:40])
    spans = shown.trace.spans
    (row,) = shown.table.rows(np.array([span])).tolist()
    other = row + int(by)
    # The trace's own rows stand by rank and then by start, so the next one is the next row.
    if not 0 <= other < len(spans) or spans.rank[other] != spans.rank[row]:
        other = row
    return shown.table.ids(np.array([other]))


def _named(shown: ShownTrace, name: str) -> Ids:
    """Returns the span that an address calls RANK.START or RANK.START.PLACE; none where none is.

    Its number would be another's once the run has grown. Of several of a rank that begin in the
    same nanosecond the place counts, on one track after another.
    """
    if not (found := _NAME.fullmatch(name)):
        raise InputError(
            "slice={name} names no span; a name is a rank and when the span begins in ns: 3.1200",
            name=name[:40],
        )
    table, (rank, start, place) = shown.table, (int(each or 0) for each in found.groups())
    alike: list[int] = []
    for track in range(*np.searchsorted(table.rank, [rank, rank + 1]).tolist()):
        first, last = int(table.bounds[track]), int(table.bounds[track + 1])
        low, high = np.searchsorted(table.start_ns[first:last], [start, start + 1])
        alike += range(first + int(low), first + int(high))
    return np.array(alike[place : place + 1], dtype=np.int64)


def _at(shown: ShownTrace, words: Words) -> Ids:
    table = shown.table
    track = _read_number(words, "track", table.num_tracks)
    time, slack = (read_moment(words, name) for name in ("time", "slack"))
    # The page's slack is 3 pixels (SLACK_PIXELS), so a sixth of it either way is one pixel.
    first, last = table.between(track, time - slack / 6, time + slack / 6 + 1)
    if first == last:
        return _nearest(shown, track, time, slack)
    longest = np.argmax(table.end_ns[first:last] - table.start_ns[first:last])
    return np.array([first + int(longest)])


def _nearest(shown: ShownTrace, track: int, time: float, slack: float) -> Ids:
    """Returns the span of a track nearest to ``time``; without a slack, however far it is."""
    table = shown.table
    low, high = int(table.bounds[track]), int(table.bounds[track + 1])
    first, _ = table.between(track, time, time)
    # Only two can be nearest: the first span that has not ended by then, and the one before it.
    near = [each for each in (first - 1, first) if low <= each < high]
    away = [max(0.0, table.start_ns[i] - time, time - table.end_ns[i]) for i in near]
    best = min(zip(away, near, strict=True))
    return np.array([best[1]] if not slack or best[0] <= slack else [], dtype=np.int64)


def _read_id(shown: ShownTrace, words: Words, name: str) -> int:
    return _read_number(words, name, len(shown.table))


def _read_number(words: Words, name: str, limit: int) -> int:
    text = read_word(words, name)
    if not (text.isascii() and text.isdecimal() and len(text) < 12 and int(text) < limit):
        raise InputError(
            "{name}={value} is not there; they are numbered from 0 to {last}",
            name=name,
            value=text[:40],
            last=limit - 1,
        )
    return int(text)
