"""A run that was simulated: 1F1B whose every action takes what a test says, as a Trace."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from serried import frameworks
from serried.action import Spans
from serried.frameworks import Sizes
from serried.pipeline import Costs, Links, one_f_one_b, planned_spans, simulate
from serried.pipeline.spans import planned_messages
from serried.trace.model.record import TracedJob
from serried.trace.model.trace import Host, Trace

FORWARD, BACKWARD = 1_000_000, 2_000_000
Forward = Callable[[int, int, int, int], int]
"""How long a forward takes, by pipeline, step, stage and microbatch."""
Transfer = Callable[[int, int, int, int], int]
"""How long a message takes, by pipeline, step, and the stages that send and receive it."""


def usual(pipeline: int, step: int, stage: int, microbatch: int) -> int:
    return FORWARD


def twice(pipeline: int, step: int, stage: int, microbatch: int) -> int:
    return BACKWARD


def simulated_run(
    *,
    pp: int = 4,
    dp: int = 2,
    num_microbatches: int = 8,
    num_steps: int = 3,
    forward: Forward = usual,
    backward: Forward = twice,
    transfer: Transfer | None = None,
) -> Trace:
    """Returns a run in Megatron's order, steps 1 ms apart that all pipelines begin together.

    Messages take no time and are not recorded, unless ``transfer`` says how long their senders,
    too, are busy with them.
    """
    world = pp * dp
    layout = frameworks.layout("megatron", Sizes(world, pp=pp))
    schedule, parts, begin = one_f_one_b(pp, num_microbatches), [], 0
    for step in range(num_steps):
        ends = []
        for pipeline, ranks in enumerate(np.arange(world).reshape(pp, dp).T):

            def times(took: Forward, at: tuple[int, int] = (pipeline, step)) -> list[list[int]]:
                stages = range(pp)
                return [[took(*at, stage, i) for i in range(num_microbatches)] for stage in stages]

            costs = Costs(forward=times(forward), backward=times(backward))
            if transfer is not None:
                latency = [[transfer(pipeline, step, a, b) for b in range(pp)] for a in range(pp)]
                costs = dataclasses.replace(costs, links=Links(latency, is_blocking=True))
            planned = simulate(schedule, costs)
            one = planned_spans(planned, unit_ns=1).shifted(begin)
            if transfer is not None:
                messages = planned_messages(planned, unit_ns=1).shifted(begin)
                one = Spans.joined([one, messages])
            columns = {
                "rank": ranks[one.rank].astype(np.int32),
                "step": one.step + np.int32(step),
                "peer": np.where(one.peer >= 0, ranks[one.peer], -1).astype(np.int32),
            }
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
