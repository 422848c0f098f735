"""Traces without files: of spans written out, and of simulated schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from serried import frameworks
from serried.action import Action, Span, Spans
from serried.frameworks import Sizes
from serried.pipeline import Costs, Schedule, planned_spans, simulate
from serried.trace.model.record import UNKNOWN_SCHEDULE, TracedJob
from serried.trace.model.trace import Host, Trace
from tests.trace.recorded_run import table


def compute(rank: int, action: str, start: int, end: int, step: int = 0, peer: int = -1) -> Span:
    return Span(rank, Action.parse(action), step, start, end, peer)


def trace_of(
    spans: Spans | Sequence[Span], *, pp: int, dp: int = 1, schedule: str = UNKNOWN_SCHEDULE
) -> Trace:
    """Returns a trace of ``pp`` stages and ``dp`` replicas on one host, in Megatron's order."""
    columns = spans if isinstance(spans, Spans) else table(spans)
    columns = columns.where(np.lexsort((columns.start_ns, columns.rank)))
    layout = frameworks.layout("megatron", Sizes(pp * dp, pp=pp, dp=dp))
    job = TracedJob(
        "megatron",
        pp * dp,
        layout.sizes,
        layout.order,
        schedule,
        num_microbatches=1 + int(columns.microbatch.max(initial=0)),
    )
    everyone = tuple(range(pp * dp))
    hosts = (Host("a", everyone, 0),)
    return Trace("run-a", job, columns, 0, hosts, everyone, (), (), (), layout)


def simulated(
    schedule: Schedule, costs: Costs | None = None, *, dp: int = 1, steps: int = 1
) -> Trace:
    """Returns a trace of ``steps`` simulated steps, the same on every replica."""
    one = planned_spans(simulate(schedule, costs or Costs(1, 1, 1)), unit_ns=1_000_000)
    length = int(one.end_ns.max()) + 1_000_000
    parts = [
        replace(
            one.shifted(step * length),
            rank=(one.rank * dp + replica).astype(np.int32),
            step=np.full_like(one.step, step),
        )
        for step in range(steps)
        for replica in range(dp)
    ]
    return trace_of(Spans.joined(parts), pp=schedule.num_ranks, dp=dp)
