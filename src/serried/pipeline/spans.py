"""Schedules and spans: a simulated schedule as a trace's rows, and costs fitted to a run's.

simulation  -- planned_spans -->  spans of step 0        a plan beside a run
            -- planned_messages -->  sends and receives  between its ranks
costs       <------ fit -------   a recorded run's spans  a plan timed as the run was
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from serried.action import ActionKind, Spans
from serried.errors import InputError, listed
from serried.pipeline.costs import Costs, Number
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


def planned_messages(simulation: Simulation, *, unit_ns: Number = 1_000_000) -> Spans:
    """Returns every message as the two spans of its send and its receive, each other's peers.

        rank 0   [ 0F2 ][ SEND_F2 ]             from the end of its action until it arrives
        rank 1   [1B0]     [RECV_F2][ 1F2 ]     from when the rank is free until it arrives

    A receive of what has arrived before takes no time.

    >>> from serried.pipeline.costs import Costs
    >>> from serried.pipeline.schedules.gpipe import gpipe
    >>> from serried.pipeline.simulate import simulate
    >>> found = planned_messages(simulate(gpipe(2, 1), Costs()))
    >>> [(str(span.action), span.rank, span.peer) for span in found]
    [('0SEND_F0', 0, 1), ('0RECV_B0', 0, 1), ('1RECV_F0', 1, 0), ('1SEND_B0', 1, 0)]
    """
    schedule = simulation.schedule
    to = np.flatnonzero(simulation.source >= 0)
    of = simulation.source[to]
    arrived = np.maximum(simulation.arrival[to], simulation.end[of])
    free = _free(simulation)[to]
    is_forward = schedule.kind[to] == ActionKind.F
    sends = np.where(is_forward, ActionKind.SEND_F, ActionKind.SEND_B)
    receives = np.where(is_forward, ActionKind.RECV_F, ActionKind.RECV_B)
    moved = np.full(len(to), round(float(simulation.costs.links.message_bytes)), np.int64)
    ends = (
        (of, to, sends, simulation.end[of], arrived),
        (to, of, receives, free, np.maximum(free, arrived)),
    )
    return Spans.joined(
        [
            replace(
                _spans(
                    schedule.rank[here],
                    schedule.stage[here],
                    kinds,
                    schedule.microbatch[here],
                    _nanoseconds(simulation, start, unit_ns),
                    _nanoseconds(simulation, end, unit_ns),
                ),
                peer=schedule.rank[there].astype(np.int32),
                size_bytes=moved,
            )
            for here, there, kinds, start, end in ends
        ]
    )


def _free(simulation: Simulation) -> Times:
    """Returns when each entry's rank has ended what it ran before; 0 where that is nothing."""
    schedule = simulation.schedule
    entries = np.arange(len(schedule.code))
    before = entries - 1
    # Both halves of a pair run at once: what ran before the second stands before the first.
    before -= schedule.joined[before]
    first = schedule.first[schedule.rank]
    free: Times = np.where(before >= first, simulation.end[before], 0)
    return free


def _tail(simulation: Simulation, unit_ns: Number) -> Spans:
    tail = simulation.tail
    rows: list[tuple[int, int, int, int, Any, Any]] = [
        (one.rank, one.stage, int(ActionKind.REDUCE_GRAD), -1, one.start, one.end)
        for one in tail.reductions
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
    # Whole numbers stay exact where a tick is a whole number of nanoseconds.
    if simulation.ticks.per_unit and isinstance(unit_ns, int) and unit_ns % per_unit == 0:
        return ticks * (unit_ns // per_unit)
    exact: Times = np.round(ticks.astype(np.float64) * (float(unit_ns) / per_unit))
    return exact


def fit(spans: Spans) -> Costs:
    """Returns each stage's median durations in nanoseconds, from the run's own actions.

    Where the run has whole backwards only, each half is taken as half of one. Messages are left
    at no time: a recorded wait holds the sender's delay as well.

    Raises InputError when a stage has no forward or no backward.
    """
    num_stages = int(spans.stage.max()) + 1 if len(spans) else 0
    medians = {
        kind: [_median(spans, kind, stage) for stage in range(num_stages)]
        for kind in (ActionKind.F, ActionKind.B, ActionKind.I, ActionKind.W)
    }
    forward = medians[ActionKind.F]
    backward: list[int | None] = []
    inputs: list[int | None] = []
    weights: list[int | None] = []
    for measured in zip(*(medians[kind] for kind in _BACKWARD), strict=True):
        whole, input_half, weight_half = _completed(*measured)
        backward.append(whole)
        inputs.append(input_half)
        weights.append(weight_half)
    missing = [s for s in range(num_stages) if forward[s] is None or backward[s] is None]
    if missing or not num_stages:
        raise InputError(
            "the run has no forward or no backward of stage {stages}, so their time is unknown; "
            "it takes a run of at least one whole step",
            stages=listed(missing or [0]),
        )
    times = [tuple(time or 0 for time in row) for row in (forward, inputs, weights, backward)]
    return Costs(times[0], times[1], times[2], times[3])


def _completed(
    whole: int | None, input_half: int | None, weight_half: int | None
) -> tuple[int | None, int | None, int | None]:
    """Returns a backward and its halves, what was not measured worked out from the others."""
    if whole is None and input_half is not None and weight_half is not None:
        whole = input_half + weight_half
    half = None if whole is None else whole // 2
    return (
        whole,
        half if input_half is None else input_half,
        half if weight_half is None else weight_half,
    )


_BACKWARD = (ActionKind.B, ActionKind.I, ActionKind.W)


def _median(spans: Spans, kind: ActionKind, stage: int) -> int | None:
    rows = (spans.kind == kind) & (spans.stage == stage)
    if not rows.any():
        return None
    return int(np.median(spans.end_ns[rows] - spans.start_ns[rows]))
