"""The planned step of all ranks as a trace, so that whatever shows a run shows a plan.

simulated step of one pipeline ─> spans of its ranks ─> the same for every rank at that place
                                  messages with ranks of its own pipeline as peers
                                  reductions and optimizer behind them
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind, Spans
from serried.errors import InputError
from serried.finding import Finding, said
from serried.limits import PLANNED_SPANS
from serried.mesh import Layout, Placement
from serried.mesh.layers import positions
from serried.pipeline.spans import planned_messages, planned_spans
from serried.plan.request import PlanRequest
from serried.plan.time.constants import Constants
from serried.plan.time.simulated import SimulatedStep, simulated_step
from serried.trace.model.laid_out import trace_of_layout
from serried.trace.model.record import PLANNED
from serried.trace.model.trace import Trace

Ranks = NDArray[np.int64]

REDUCED = 0.7
"""The share of what follows the pipeline that is drawn as the reduction of gradients."""


def planned_trace(
    asked: PlanRequest,
    layout: Layout,
    placement: Placement,
    constants: Constants | None = None,
    *,
    cut_above: int | None = None,
) -> Trace:
    """Returns the trace of one planned step; its spans end with the step that is planned.

    Where all ranks together have more than ``cut_above`` spans, it is that of one replica's ranks,
    or else of one pipeline's, and says so: what runs alike is shown once.

    Raises InputError for a schedule that cannot have the job's sizes, and where all ranks together
    have more spans than a trace of one step holds.
    """
    step = simulated_step(asked, constants)
    simulated = step.schedule.simulation
    one = Spans.joined(
        [
            planned_spans(simulated, unit_ns=1),
            planned_messages(simulated, unit_ns=1),
            _after(asked, step),
        ]
    )
    place = positions(layout)
    first = np.searchsorted(one.rank, np.arange(asked.degrees.pp + 1))
    counts = np.diff(first)[place]
    ranks, findings = _ranks(layout, counts, cut_above)
    total = int(counts[ranks].sum())
    if total > PLANNED_SPANS.most:
        raise InputError(
            "the planned step has {spans:,} spans on {ranks:,} ranks; at most {most:,} are "
            "written: plan fewer replicas or microbatches for its timeline",
            spans=total,
            ranks=len(ranks),
            most=PLANNED_SPANS.most,
        )
    machines = {
        f"node{number}": list(placement.ranks_on(number)) for number in range(placement.num_nodes)
    }
    return trace_of_layout(
        f"plan of {asked.model.name}",
        layout,
        machines,
        _of_ranks(one, first, layout, ranks),
        schedule=asked.schedule,
        compute=PLANNED,
        findings=findings,
    )


def _of_ranks(one: Spans, first: Ranks, layout: Layout, ranks: Ranks) -> Spans:
    """Returns one pipeline's spans for all these ranks, peers being ranks of their own pipeline."""
    place = positions(layout)[ranks]
    rows = np.concatenate([np.arange(first[each], first[each + 1]) for each in place.tolist()])
    of = np.repeat(np.arange(len(ranks)), np.diff(first)[place])
    every = one.where(rows)
    has_peer = every.peer >= 0
    every.peer[has_peer] = _pipelines(layout)[ranks[of[has_peer]], every.peer[has_peer]]
    return Spans(**{**every.columns(), "rank": ranks[of].astype(np.int32)})


def _pipelines(layout: Layout) -> Ranks:
    """Returns the ranks of each rank's own pipeline, by place; of one stage itself."""
    if layout.sizes.get("pp", 1) == 1:
        return np.arange(layout.world_size)[:, None]
    found = layout.groups(layout.kind_of("pp"))
    return np.array(found.lists())[found.index(layout.world_size)]


def _ranks(
    layout: Layout, counts: Ranks, cut_above: int | None
) -> tuple[Ranks, tuple[Finding, ...]]:
    """Returns all ranks; above so many spans those of one replica or pipeline, and says so."""
    every = np.arange(layout.world_size)
    if cut_above is None or counts.sum() <= cut_above:
        return every, ()
    replica = _replica(layout)
    if counts[replica].sum() <= cut_above:
        told = said("the ranks of one replica are drawn; all others run the same step")
        return replica, (Finding("planned", (told,)),)
    told = said("the ranks of one pipeline are drawn; all others run the same step")
    return np.sort(_pipelines(layout)[0]), (Finding("planned", (told,)),)


def _replica(layout: Layout) -> Ranks:
    """Returns the ranks that come first in their data group."""
    if "dp" not in layout.dims:
        return np.arange(layout.world_size)
    groups = layout.groups(layout.dims["dp"]).lists()
    return np.sort(np.array([each[0] for each in groups]))


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
