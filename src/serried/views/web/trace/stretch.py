"""Answers about spans of a trace: those that a search finds, and what a stretch of time holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from serried.action import Spans
from serried.trace.measure.stretch import measure_stretch
from serried.trace.model.trace import Trace
from serried.views.web.trace.answers import TraceAnswers
from serried.views.web.trace.payload import group_document
from serried.views.web.trace.questions import read_moment, read_moments, read_ranks, read_wish
from serried.views.web.trace.table import TraceTable
from serried.views.web.wire.query import Words, read_count


def found_answer(answers: TraceAnswers, table: TraceTable, words: Words) -> dict[str, Any]:
    """Returns how many spans a search finds and one of them, as ``serried.found/1``.

    ``place`` chooses it, counted from 0 by start; without it, the first from ``after`` on, in
    nanoseconds. Past the end the count begins anew. ``id`` is its place in ``table``.
    """
    spans = answers.trace.spans
    rows = answers.find(read_wish(words))
    if not len(rows):
        return {"schema": "serried.found/1", "count": 0, "place": -1, "id": -1, "span": None}
    place = read_count(words, "place")
    if place is None:
        place = int(np.searchsorted(spans.start_ns[rows], read_moment(words, "after")))
    place %= len(rows)
    return {
        "schema": "serried.found/1",
        "count": len(rows),
        "place": place,
        "ranks": len(np.unique(spans.rank[rows])),
        "id": int(table.ids(rows[place : place + 1])[0]),
        "span": _span(answers.trace, spans, int(rows[place])),
    }


def stretch_answer(answers: TraceAnswers, words: Words) -> dict[str, Any]:
    """Returns what ranks did between two moments, as ``serried.stretch/1``; times in nanoseconds.

    Raises InputError for moments and ranks that are none.
    """
    trace = answers.trace
    ranks = read_ranks(words, trace.job.world_size)
    found = measure_stretch(
        trace.spans, answers.windows, read_moments(words), ranks, answers.replica
    )
    return {
        "schema": "serried.stretch/1",
        "begin_ns": found.begin_ns,
        "end_ns": found.end_ns,
        "num_ranks": found.num_ranks,
        "num_spans": found.num_spans,
        "total_ns": found.total_ns,
        "compute_ns": found.compute_ns,
        "idle_ns": found.idle_ns,
        "kinds": [
            {"name": each.kind.name, "num_spans": each.num_spans, "time_ns": each.time_ns}
            for each in found.kinds
        ],
        "microbatches": found.microbatches,
        "longest": _span(trace, found.longest, 0) if len(found.longest) else None,
    }


def _span(trace: Trace, spans: Spans, row: int) -> dict[str, Any]:
    span = spans[row]
    size, group = int(spans.size_bytes[row]), int(spans.group[row])
    return {
        "rank": span.rank,
        "step": span.step,
        "kind": int(span.action.kind),
        "action": str(span.action),
        "stage": span.action.stage,
        "microbatch": span.action.microbatch,
        "start_ns": span.start_ns,
        "end_ns": span.end_ns,
        "bytes": size if size >= 0 else None,
        "group": group_document(trace.groups[group]) if group >= 0 else None,
    }
