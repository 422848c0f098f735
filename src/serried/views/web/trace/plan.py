"""The plan of a trace for the page: one planned step as columns, and why a span was late."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from serried.trace.measure.find import find
from serried.trace.measure.lateness import why_late
from serried.views.web.trace.answers import TraceAnswers
from serried.views.web.trace.questions import read_moment, read_wish
from serried.views.web.wire.payload import Column, pack
from serried.views.web.wire.query import Words, read_count

CAUSES_SENT = 3


def plan_payload(answers: TraceAnswers) -> bytes:
    """Returns the plan as columns: ``planned:…`` of one step by place in the pipeline and start,
    ``place`` of every rank, and where each step begins.

    Raises InputError where the trace has no plan.
    """
    overlay = answers.overlay
    planned = overlay.planned.where(np.lexsort((overlay.planned.start_ns, overlay.planned.rank)))
    header = {"kind": "plan", "schedule": overlay.schedule}
    columns: dict[str, Column] = {
        "planned:place": planned.rank,
        "planned:kind": planned.kind,
        "planned:stage": planned.stage,
        "planned:microbatch": planned.microbatch,
        "planned:start_ns": planned.start_ns.astype(np.float64),
        "planned:end_ns": planned.end_ns.astype(np.float64),
        "place": overlay.place,
        "step:number": overlay.steps,
        "step:start_ns": overlay.starts_ns.astype(np.float64),
    }
    return pack(header, columns)


def late_answer(answers: TraceAnswers, words: Words) -> dict[str, Any]:
    """Returns how one span stands to its plan and why, as ``serried.late/1``.

    The words name its rank, when it began (``start``, in nanoseconds), and what else a search
    would. Raises InputError where the trace has no plan; ``late_ns`` is None for a span that the
    plan lacks.
    """
    overlay, spans = answers.overlay, answers.trace.spans
    rank = read_count(words, "rank") or 0
    first, last = np.searchsorted(spans.rank, [rank, rank + 1])
    mine = spans.where(np.arange(first, last))
    # Only this rank's spans are searched; rows count from its first span in the whole trace.
    rows = find(replace(answers.trace, spans=mine), read_wish(words))
    rows = rows[mine.start_ns[rows] == read_moment(words, "start")]
    late = why_late(spans, overlay, int(first + rows[0])) if len(rows) else None
    if late is None:
        return {"schema": "serried.late/1", "late_ns": None, "causes": []}
    return {"schema": "serried.late/1", **asdict(late)} | {
        "causes": [asdict(each) for each in late.causes if each.ns > 0][:CAUSES_SENT]
    }
