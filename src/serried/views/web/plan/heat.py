"""A figure of every rank of a planned step for the map: what it holds at most, what it sends."""

from __future__ import annotations

from typing import Any

import numpy as np

from serried.errors import InputError, listed
from serried.plan.job_plan import JobPlan, job_plan
from serried.plan.traffic.flows import flows_of
from serried.trace.measure.ranks.rank_figures import Values
from serried.views.web.plan.query import read_plan_request
from serried.views.web.wire.payload import pack
from serried.views.web.wire.query import Query, Words, read_word
from serried.views.web.wire.scale import summary_of
from serried.views.web.wire.stages import stages

FIGURES = ("memory", "memory_share", "sent", "sent_across")
"""Every figure, in the order in which it is offered:

memory, memory_share    bytes at the fullest moment of a step, and of what the card has
sent, sent_across       bytes sent to other ranks in a step, and of these to other nodes
"""


def plan_heat_payload(query: Query, words: Words) -> bytes:
    """Returns ``figure`` of every rank as the column ``value``, in the form of a trace's.

    Raises InputError as ``serried plan`` does, and for a figure that a plan does not have.
    """
    name = read_word(words, "figure") or FIGURES[0]
    if name not in FIGURES:
        raise InputError(
            "'{name}' is no figure of a plan; it has {figures}",
            name=name[:40],
            figures=listed(FIGURES),
        )
    values = _values(job_plan(read_plan_request(query, words)), query, name)
    header: dict[str, Any] = {
        "kind": "heat",
        "figure": name,
        "figures": list(FIGURES),
        "unit": "share" if name == "memory_share" else "bytes",
        "base": 1024 if name == "memory" else 1000,
        "scale": "zero",
        **summary_of(values),
    }
    return pack(header, {"value": values})


def _values(made: JobPlan, query: Query, name: str) -> Values:
    if name.startswith("sent"):
        return _sent(made, query, only_across=name == "sent_across")
    held = {each.pp_rank: each for each in made.memory.of_ranks}
    of_stage = [held[stage].total for stage in sorted(held)]
    values = np.array(of_stage, dtype=np.float64)[stages(query.layout)]
    return values / made.memory.fullest.card_bytes if name == "memory_share" else values


def _sent(made: JobPlan, query: Query, *, only_across: bool) -> Values:
    """Returns the bytes that each rank sends in a step over the links of its groups.

    Of what goes from each to each, the link to the next of the group stands for where all go.
    """
    ranks = np.arange(query.layout.world_size, dtype=np.int32)
    node = query.placement.nodes(ranks)
    sent = np.zeros(len(ranks))
    for flow in flows_of(made.traffic, query.layout, query.placement):
        counts = flow.next >= 0
        if only_across:
            counts &= node[flow.next] != node
        links = flow.ranks - 1 if flow.pattern == "all" else 1
        sent[counts] += links * flow.link_bytes
    return sent
