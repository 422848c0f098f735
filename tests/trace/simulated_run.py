"""A run that was simulated: 1F1B whose every action takes what a test says, as a Trace."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from serried import frameworks
from serried.action import Spans
from serried.frameworks import Sizes
from serried.pipeline import Costs, one_f_one_b, planned_spans, simulate
from serried.trace.model.record import TracedJob
from serried.trace.model.trace import Host, Trace

FORWARD, BACKWARD = 1_000_000, 2_000_000
Forward = Callable[[int, int, int, int], int]
"""How long a forward takes, by pipeline, step, stage and microbatch."""


def usual(pipeline: int, step: int, stage: int, microbatch: int) -> int:
    return FORWARD


def simulated_run(
    *,
    pp: int = 4,
    dp: int = 2,
    num_microbatches: int = 8,
    num_steps: int = 3,
    forward: Forward = usual,
) -> Trace:
    """Returns a run in Megatron's order; messages take no time, a step follows 1 ms after another.

    All pipelines begin a step together.
    """
    world = pp * dp
    layout = frameworks.layout("megatron", Sizes(world, pp=pp))
    schedule, parts, begin = one_f_one_b(pp, num_microbatches), [], 0
    for step in range(num_steps):
        ends = []
        for pipeline, ranks in enumerate(np.arange(world).reshape(pp, dp).T):
            times = [
                [forward(pipeline, step, stage, each) for each in range(num_microbatches)]
                for stage in range(pp)
            ]
            costs = Costs(forward=times, backward=BACKWARD)
            one = planned_spans(simulate(schedule, costs), unit_ns=1).shifted(begin)
            columns = {"rank": ranks[one.rank].astype(np.int32), "step": one.step + np.int32(step)}
            parts.append(dataclasses.replace(one, **columns))
            ends.append(int(one.end_ns.max()))
        begin = max(ends) + 1_000_000
    sizes = {"tp": 1, "cp": 1, "pp": pp, "dp": dp, "ep": 1, "edp": dp}
    job = TracedJob("megatron", world, sizes, layout.order, "1f1b", num_microbatches)
    everyone = tuple(range(world))
    return Trace(
        run="simulated",
        job=job,
        spans=Spans.joined(parts),
        base_ns=0,
        hosts=(Host("a", everyone, 0),),
        ranks=everyone,
        torn=(),
        missing=(),
        warnings=(),
        layout=layout,
    )


def row_of(trace: Trace, rank: int, action: str, step: int = 0) -> int:
    """Returns the row of an action on a rank in a step."""
    return next(
        row
        for row in np.flatnonzero((trace.spans.rank == rank) & (trace.spans.step == step)).tolist()
        if str(trace.spans[row].action) == action
    )
