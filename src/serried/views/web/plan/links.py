"""The traffic of a planned step on the map: who sends to whom, and how much, by group kind.

flows            kind, pattern, bytes of one link in a step and a second, of all inside and between
hop:0, hop:1 …   of every rank, how far from its own number that is which it sends to; 0 for none
"""

from __future__ import annotations

from typing import Any

import numpy as np

from serried.plan.job_plan import job_plan
from serried.plan.traffic.flows import Flow, flows_of
from serried.views.colours import family
from serried.views.web.plan.query import read_plan_request
from serried.views.web.wire.payload import Column, pack
from serried.views.web.wire.query import Query, Words


def links_payload(query: Query, words: Words) -> bytes:
    """Returns the flows of the planned step; raises InputError as ``serried plan`` does."""
    made = job_plan(read_plan_request(query, words))
    flows = flows_of(made.traffic, query.layout, query.placement)
    others = [flow.kind for flow in flows if not flow.dim]
    cluster = made.asked.cluster
    header = {
        "kind": "links",
        "step_s": made.step_s,
        "node_bytes_per_s": cluster.gpu.link_bytes_per_s,
        "nic_bytes_per_s": cluster.nic_bytes_per_s,
        "flows": [_flow(flow, made.step_s, others) for flow in flows],
        "left_out": sorted({each.kind for each in made.traffic} - {flow.kind for flow in flows}),
    }
    ranks = np.arange(query.layout.world_size, dtype=np.int32)
    columns: dict[str, Column] = {
        f"hop:{number}": np.where(flow.next >= 0, flow.next - ranks, 0).astype(np.int32)
        for number, flow in enumerate(flows)
    }
    return pack(header, columns)


def _flow(flow: Flow, step_s: float, others: list[str]) -> dict[str, Any]:
    place = others.index(flow.kind) if flow.kind in others else 0
    look = family(flow.dim, place=place)
    return {
        "kind": flow.kind,
        "collectives": list(flow.collectives),
        "ranks": flow.ranks,
        "pattern": flow.pattern,
        "link_bytes": flow.link_bytes,
        "link_bytes_per_s": flow.link_bytes / step_s,
        "within_bytes": flow.within_bytes,
        "across_bytes": flow.across_bytes,
        "ink": look.ink,
        "ink_on_dark": look.ink_on_dark,
    }
