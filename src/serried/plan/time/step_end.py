"""How the planned step of each rank ends: what replicas exchange, and the optimizer between.

    … B7 ┤ reduce_scatter of gradients ├ optimizer ├ all_gather of weights ┤      zero 1, 2
    … B7 ┤ all_reduce of gradients     ├ optimizer ┤                              zero 0

What is exchanged for each layer (zero 3, tensor, context and expert parallel ranks) lies within
the computations, whose times hold what of it nothing hides.
"""

from __future__ import annotations

from collections import defaultdict

from serried.action import ActionKind
from serried.mesh import Layout
from serried.plan.request import PlanRequest
from serried.plan.time.constants import Constants
from serried.plan.time.simulated import simulated_step
from serried.plan.traffic.flows import kind_of_transfer
from serried.plan.traffic.transfers import step_transfers
from serried.trace.formats.chakra.nodes import StepCollective, StepEnd

_KINDS = {
    "all_reduce": ActionKind.ALL_REDUCE,
    "reduce_scatter": ActionKind.REDUCE_SCATTER,
    "all_gather": ActionKind.ALL_GATHER,
}


def step_ends(
    asked: PlanRequest, layout: Layout, constants: Constants | None = None
) -> dict[int, StepEnd]:
    """Returns by rank how its step ends: collectives that run once in a step, and other work.

    Raises InputError for a schedule that cannot have the job's sizes.
    """
    work = round(simulated_step(asked, constants).own_after_s * 1e9)
    found: dict[bool, dict[int, list[StepCollective]]] = {
        is_gathered: defaultdict(list) for is_gathered in (False, True)
    }
    for each in step_transfers(asked):
        kind = kind_of_transfer(each, layout) if each.times == 1 else None
        if kind is None or each.collective not in _KINDS:
            continue
        made = found[each.collective == "all_gather"]
        for ranks in layout.groups(kind).lists():
            one = StepCollective(_KINDS[each.collective], tuple(ranks), round(each.size_bytes))
            for rank in ranks:
                made[rank].append(one)
    return {
        rank: StepEnd(tuple(found[False][rank]), tuple(found[True][rank]), work)
        for rank in range(layout.world_size)
    }
