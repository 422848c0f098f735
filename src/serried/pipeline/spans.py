"""Planned spans: a simulated schedule as the rows that traces are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from serried.action import ActionKind, Spans
from serried.pipeline.costs import Number
from serried.pipeline.longest_path import Times
from serried.pipeline.simulate import Simulation


def planned_spans(simulation: Simulation, *, unit_ns: Number = 1_000_000) -> Spans:
    """Returns every action as a span of step 0; ``unit_ns`` nanoseconds are one unit of time.

    The two halves of an overlapped pair are two spans of the same start and end. Reductions and
    the optimizer follow; waiting is what no span covers.

    >>> from serried.pipeline.costs import Costs
    >>> from serried.pipeline.schedules.gpipe import gpipe
    >>> from serried.pipeline.simulate import simulate
    >>> [str(span.action) for span in planned_spans(simulate(gpipe(1, 1), Costs()))]
    ['0F0', '0B0']
    """
    schedule = simulation.schedule
    actions = _spans(
        schedule.rank,
        schedule.stage,
        schedule.kind,
        schedule.microbatch,
        _nanoseconds(simulation, simulation.start, unit_ns),
        _nanoseconds(simulation, simulation.end, unit_ns),
    )
    return Spans.joined([actions, _tail(simulation, unit_ns)])


def _tail(simulation: Simulation, unit_ns: Number) -> Spans:
    tail = simulation.tail
    rows: list[tuple[int, int, int, int, Any, Any]] = [
        (each.rank, each.stage, int(ActionKind.REDUCE_GRAD), -1, each.start, each.end)
        for each in tail.reductions
    ]
    rows += [
        (rank, -1, int(ActionKind.OPTIMIZER), -1, start, end)
        for rank, (start, end) in enumerate(zip(tail.start, tail.end, strict=True))
        if end > start
    ]
    rank, stage, kind, microbatch, start, end = (
        np.array([row[column] for row in rows]) for column in range(6)
    )
    times = (_nanoseconds(simulation, column, unit_ns) for column in (start, end))
    return _spans(rank, stage, kind, microbatch, *times)


def _spans(
    rank: Times, stage: Times, kind: Times, microbatch: Times, start_ns: Times, end_ns: Times
) -> Spans:
    return Spans(
        rank.astype(np.int32),
        stage.astype(np.int32),
        kind.astype(np.int32),
        microbatch.astype(np.int32),
        np.zeros(len(rank), np.int32),
        np.full(len(rank), -1, np.int32),
        start_ns.astype(np.int64),
        end_ns.astype(np.int64),
    )


def _nanoseconds(simulation: Simulation, ticks: Times, unit_ns: Number) -> Times:
    per_unit = simulation.ticks.per_unit or 1
    if simulation.ticks.per_unit and isinstance(unit_ns, int) and unit_ns % per_unit == 0:
        return ticks * (unit_ns // per_unit)
    exact: Times = np.round(ticks.astype(np.float64) * (float(unit_ns) / per_unit))
    return exact
