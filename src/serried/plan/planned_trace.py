"""The planned step of all ranks as a trace, so that whatever shows a run shows a plan.

simulated step of one pipeline ─> spans of its ranks ─> the same for every rank at that place
                                  reductions and optimizer behind them
"""

from __future__ import annotations

import numpy as np

from serried.action import ActionKind, Spans
from serried.errors import InputError
from serried.limits import PLANNED_SPANS
from serried.mesh import Layout, Placement
from serried.mesh.layers import positions
from serried.pipeline.spans import planned_spans
from serried.plan.request import PlanRequest
from serried.plan.time.constants import Constants
from serried.plan.time.simulated import SimulatedStep, simulated_step
from serried.trace.model.laid_out import trace_of_layout
from serried.trace.model.trace import Trace

REDUCED = 0.7
"""The share of what follows the pipeline that is drawn as the reduction of gradients."""


def planned_trace(
    asked: PlanRequest, layout: Layout, placement: Placement, constants: Constants | None = None
) -> Trace:
    """Returns the trace of one planned step; its spans end with the step that is planned.

    Raises InputError for a schedule that cannot have the job's sizes, and where all ranks together
    have more spans than a trace of one step holds.
    """
    step = simulated_step(asked, constants)
    spans = Spans.joined(
        [planned_spans(step.schedule.simulation, unit_ns=1), _after(asked, step)]
    ).in_order()
    place = positions(layout)
    first = np.searchsorted(spans.rank, np.arange(asked.degrees.pp + 1))
    counts = np.diff(first)[place]
    total = int(counts.sum())
    if total > PLANNED_SPANS.most:
        raise InputError(
            "the planned step has {spans:,} spans on {ranks:,} ranks; at most {most:,} are "
            "written: plan fewer replicas or microbatches for its timeline",
            spans=total,
            ranks=layout.world_size,
            most=PLANNED_SPANS.most,
        )
    rows = np.concatenate([np.arange(first[each], first[each + 1]) for each in place.tolist()])
    every = spans.where(rows)
    ranks = np.repeat(np.arange(layout.world_size, dtype=spans.rank.dtype), counts)
    every = Spans(**{**every.columns(), "rank": ranks})
    machines = {
        f"node{number}": list(placement.ranks_on(number)) for number in range(placement.num_nodes)
    }
    name = f"plan of {asked.model.name}"
    return trace_of_layout(name, layout, machines, every, schedule=asked.schedule)


def _after(asked: PlanRequest, step: SimulatedStep) -> Spans:
    """Returns what follows the pipeline on each of its ranks: gradients are summed, then used."""
    pp = asked.degrees.pp
    begin = float(step.schedule.simulation.makespan)
    middle, end = begin + REDUCED * step.after_s * 1e9, begin + step.after_s * 1e9
    ranks = np.arange(pp, dtype=np.int32)
    kinds = (ActionKind.REDUCE_GRAD, ActionKind.OPTIMIZER)
    none = np.full(2 * pp, -1, dtype=np.int32)
    return Spans(
        rank=np.tile(ranks, 2),
        stage=np.concatenate([ranks, none[:pp]]),
        kind=np.repeat(np.array([int(each) for each in kinds], dtype=np.int32), pp),
        microbatch=none,
        step=np.zeros(2 * pp, dtype=np.int32),
        peer=none,
        start_ns=np.repeat(np.round([begin, middle]).astype(np.int64), pp),
        end_ns=np.repeat(np.round([middle, end]).astype(np.int64), pp),
    )
