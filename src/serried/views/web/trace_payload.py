"""A trace as a payload: its spans in tracks, one rank after another, and the job they come from.

A rank whose spans overlap gets several tracks, so that within a track each span ends before
the next one starts and both drawing and picking are a binary search:

    rank 3   track 0   |--F--|  |--F--|     |---B---|
             track 1      |SEND|     |RECV|
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serried import frameworks
from serried.errors import InputError
from serried.finding import Finding
from serried.frameworks import Sizes
from serried.mesh import Layout
from serried.span import COMPUTE, ActionKind, Spans
from serried.trace.merge import Trace
from serried.trace.record import Job
from serried.trace.statistics import Statistics, measure
from serried.views.colours import ACTIONS
from serried.views.sentences import say
from serried.views.web.layout_payload import pipelines, stages
from serried.views.web.payload import Column, pack

Lanes = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class NamedTrace:
    """Is a trace as the page offers it: with a name to choose it by."""

    name: str
    trace: Trace


def traces_answer(traces: Sequence[NamedTrace]) -> dict[str, Any]:
    """Returns what the page needs to offer the traces: names, jobs, and each job as a question."""
    return {
        "schema": "serried.traces/1",
        "traces": [
            {
                "name": each.name,
                "num_spans": len(each.trace.spans),
                "job": asdict(each.trace.job),
                "question": question_of(each.trace.job),
            }
            for each in traces
        ],
    }


def question_of(job: Job) -> dict[str, Any]:
    """Returns the words that ask for the job's own layout, all of its split dimensions in view.

    >>> job = Job("megatron", 8, {"tp": 2, "pp": 2, "dp": 2}, "", "1f1b", 4)
    >>> question_of(job)["dims"], question_of(job)["tp"]
    ('dp,tp,pp', '2')
    """
    split = [dim for dim in ("dp", "tp", "pp", "cp") if job.sizes.get(dim, 1) > 1]
    asked = {name: job.sizes.get(name, 1) for name in ("tp", "pp", "cp", "ep")}
    usual = _usual(job, **asked)
    own = {
        name: job.sizes[name]
        for name in ("etp", "zero1", "nettest")
        if name in job.sizes and not (usual and usual.sizes.get(name) == job.sizes[name])
    }
    return {name: str(size) for name, size in (asked | own).items()} | {
        "framework": job.framework,
        "world": str(job.world_size),
        "order": "" if usual and usual.order == job.order else job.order,
        "gpus_per_node": str(job.gpus_per_node),
        "set": [f"{key}={value}" for key, value in job.options.items()],
        "dims": ",".join(split or ["dp"]),
    }


def _usual(job: Job, *, tp: int, pp: int, cp: int, ep: int) -> Layout | None:
    """Returns the layout when nothing but these sizes is asked for; None where there is none."""
    try:
        sizes = Sizes(job.world_size, tp=tp, pp=pp, cp=cp, ep=ep, options=job.options)
        return frameworks.layout(job.framework, sizes)
    except InputError:
        # The trace's own warning says why its layout cannot be made.
        return None


def trace_payload(named: NamedTrace, lang: str) -> bytes:
    """Returns the payload of one trace, what is said of it in ``lang``."""
    trace = named.trace
    lane = lanes(trace.spans)
    order = np.lexsort((trace.spans.start_ns, lane, trace.spans.rank))
    spans, lane = trace.spans.where(order), lane[order]
    header = {
        "kind": "trace",
        "name": named.name,
        "job": asdict(trace.job),
        "actions": _actions(),
        "statistics": _statistics(measure(trace)),
        "warnings": [_said(finding, lang) for finding in trace.warnings],
        "names": list(trace.names),
    }
    columns = _span_columns(spans) | _track_columns(spans, lane, trace) | _step_columns(spans)
    return pack(header, columns)


def lanes(spans: Spans) -> Lanes:
    """Returns the track of each span within its rank: 0 unless it overlaps an earlier one.

    ``spans`` stand by rank and then by start.
    """
    lane = np.zeros(len(spans), dtype=np.int32)
    _, starts = np.unique(spans.rank, return_index=True)
    for first, last in zip(starts, [*starts[1:], len(spans)], strict=True):
        begin, end = spans.start_ns[first:last], spans.end_ns[first:last]
        if len(begin) > 1 and (begin[1:] < np.maximum.accumulate(end)[:-1]).any():
            lane[first:last] = _spread(begin.tolist(), end.tolist())
    return lane


def _spread(begin: Sequence[int], end: Sequence[int]) -> list[int]:
    """Returns the first lane that is free for each span, in order of start."""
    free_from: list[int] = []
    found = []
    for start, stop in zip(begin, end, strict=True):
        lane = next((i for i, free in enumerate(free_from) if free <= start), len(free_from))
        free_from[lane : lane + 1] = [stop]
        found.append(lane)
    return found


def _actions() -> list[dict[str, Any]]:
    """Returns every kind of action with its number, colour, and whether it computes."""
    return [
        {
            "number": int(kind),
            "name": kind.name,
            "colour": ACTIONS[kind],
            "computes": kind in COMPUTE,
        }
        for kind in ActionKind
    ]


def _statistics(measured: Statistics) -> dict[str, Any]:
    return {
        "bubble": measured.bubble,
        "ideal": None if measured.ideal is None else float(measured.ideal),
        "num_steps": len(measured.steps),
    }


def _said(finding: Finding, lang: str) -> str:
    sentences = [*finding.evidence, *([finding.cure] if finding.cure else [])]
    return "; ".join(say(sentence, lang) for sentence in sentences)


def _span_columns(spans: Spans) -> dict[str, Column]:
    small = {name: column for name, column in spans.columns().items() if not name.endswith("_ns")}
    # A span that its user named has no peer but the place of its name.
    is_named = spans.kind == ActionKind.SPAN
    return small | {
        "peer": np.where(is_named, -1, spans.peer).astype(np.int32),
        "name": np.where(is_named, spans.peer, -1).astype(np.int32),
        "start_ns": spans.start_ns.astype(np.float64),
        "end_ns": spans.end_ns.astype(np.float64),
    }


def _step_columns(spans: Spans) -> dict[str, Column]:
    """Returns each step's number and when its first span starts and its last one ends."""
    steps, row = np.unique(spans.step, return_inverse=True)
    start, end = np.full(len(steps), np.inf), np.zeros(len(steps))
    np.minimum.at(start, row, spans.start_ns)
    np.maximum.at(end, row, spans.end_ns)
    return {"step:number": steps, "step:start_ns": start, "step:end_ns": end}


def _track_columns(spans: Spans, lane: Lanes, trace: Trace) -> dict[str, Column]:
    """Returns a row per track: its rank, lane, stage, pipeline, node, and where its spans start."""
    changes = np.flatnonzero((np.diff(spans.rank) != 0) | (np.diff(lane) != 0)) + 1
    first = np.concatenate(([0], changes))[: len(spans)]
    rank = spans.rank[first]
    layout = trace.layout
    none = np.zeros(trace.job.world_size, dtype=np.int32)
    return {
        "track:rank": rank,
        "track:lane": lane[first],
        "track:stage": (stages(layout) if layout else none)[rank],
        "track:pipeline": (pipelines(layout) if layout else none)[rank],
        "track:node": (rank // trace.placement.ranks_per_node).astype(np.int32),
        "track:bounds": np.append(first, len(spans)).astype(np.int32),
    }
