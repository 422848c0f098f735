"""Who makes the latest steps of a running job long, from the spans that were kept of each rank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from serried.action import Spans
from serried.diagnose.diagnosis import Cause
from serried.diagnose.steps.of_trace import steps_of_trace
from serried.diagnose.stragglers.slow import slow_spells
from serried.diagnose.stragglers.told import spell_causes
from serried.trace.model.record import RecordHeader, Records, spans_of_records
from serried.trace.model.trace import Host, Trace

LEAST_STEPS = 10
MOST_RANKS = 512
"""Ranks that are compared while a job runs; of more, serried diagnose tells it afterwards."""


def slow_in(ranks: Sequence[tuple[RecordHeader, Records]]) -> tuple[Cause, ...]:
    """Returns the ranks that hold the others up in the steps that all of ``ranks`` recorded."""
    kept = [(header, table) for header, table in ranks if len(table)]
    if not 2 <= len(kept) <= MOST_RANKS:
        return ()
    steps = common_steps(kept)
    if len(steps) < LEAST_STEPS:
        return ()
    job = steps_of_trace(kept_trace(kept), steps)
    if job is None:
        return ()
    found = spell_causes(job, slow_spells(job), None)
    return tuple(cause for cause in found if cause.ranks)


def common_steps(kept: Sequence[tuple[RecordHeader, Records]]) -> NDArray[np.int32]:
    """Returns the steps that all of ``kept`` recorded from begin to end; each holds records."""
    first = max(int(table["step"][table["step"] >= 0].min(initial=2**31 - 1)) for _, table in kept)
    last = min(int(table["step"].max()) for _, table in kept)
    # Of the first the begin was cut off, perhaps; the last still runs.
    steps = np.arange(first + 1, last, dtype=np.int32)
    for _, table in kept:
        steps = np.intersect1d(steps, table["step"])
    return steps


def kept_trace(kept: Sequence[tuple[RecordHeader, Records]]) -> Trace:
    """Returns what is kept of each rank as a trace, on the hosts' own wall clocks."""
    headers = [header for header, _ in kept]
    hosts: dict[tuple[str, str], list[RecordHeader]] = {}
    for header in headers:
        hosts.setdefault((header.host, header.boot), []).append(header)
    offset = {
        key: sorted(each.wall_ns - each.monotonic_ns for each in of)[(len(of) - 1) // 2]
        for key, of in hosts.items()
    }
    begin = min(
        int(table["start_ns"].min()) + offset[header.host, header.boot] for header, table in kept
    )
    spans = [
        spans_of_records(header.rank, table).shifted(offset[header.host, header.boot] - begin)
        for header, table in kept
    ]
    ranks = tuple(sorted(header.rank for header in headers))
    return Trace(
        run=headers[0].run,
        job=headers[0].job,
        spans=Spans.joined(spans),
        base_ns=begin,
        hosts=tuple(
            Host(key[0], tuple(sorted(each.rank for each in of)), offset[key])
            for key, of in hosts.items()
        ),
        ranks=ranks,
        torn=(),
        missing=(),
        warnings=(),
        layout=None,
    )
