"""The traffic of a step on the map: who sends to whom, and how much, by group kind.

flows            kind, its groups, pattern, bytes of one link in a step and a second, of all inside
                 and between; without a plan each link carries 1, and no step is known
hop:0, hop:1 …   of every rank, how far from its own number that is which it sends to; 0 for none
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from serried.plan.job_plan import job_plan
from serried.plan.traffic.flows import Flow, even_flows, flows_of, kind_of_transfer
from serried.views.colours import family
from serried.views.web.plan.query import read_plan_request
from serried.views.web.wire.payload import Column, pack
from serried.views.web.wire.query import Query, Words


def links_payload(query: Query, words: Words) -> bytes:
    """Returns the flows of the planned step; raises InputError as ``serried plan`` does."""
    made = job_plan(read_plan_request(query, words))
    flows = flows_of(made.traffic, query.layout, query.placement)
    cluster = made.asked.cluster
    header = {
        "step_s": made.step_s,
        "node_bytes_per_s": cluster.gpu.link_bytes_per_s,
        "nic_bytes_per_s": cluster.nic_bytes_per_s,
        "left_out": sorted({each.kind for each in made.traffic} - {flow.kind for flow in flows}),
    }
    return _packed(header, flows, query)


def even_links_payload(query: Query) -> bytes:
    """Returns who sends to whom in the groups in view, for which no plan says how much."""
    kinds = [(each.dim, each.kind) for each in query.shown()]
    flows = even_flows(kinds, query.layout, query.placement)
    return _packed({"step_s": None, "left_out": []}, flows, query)


def _packed(told: dict[str, Any], flows: Sequence[Flow], query: Query) -> bytes:
    others = [flow.kind for flow in flows if not flow.dim]
    header = {
        "kind": "links",
        **told,
        "flows": [
            _flow(flow, told["step_s"], others)
            | {"groups": kind_of_transfer(flow, query.layout) or flow.kind}
            for flow in flows
        ],
    }
    ranks = np.arange(query.layout.world_size, dtype=np.int32)
    columns: dict[str, Column] = {
        f"hop:{number}": np.where(flow.next >= 0, flow.next - ranks, 0).astype(np.int32)
        for number, flow in enumerate(flows)
    }
    return pack(header, columns)


def _flow(flow: Flow, step_s: float | None, others: list[str]) -> dict[str, Any]:
    place = others.index(flow.kind) if flow.kind in others else 0
    look = family(flow.dim, place=place)
    return {
        "kind": flow.kind,
        "dim": flow.dim,
        "collectives": list(flow.collectives),
        "ranks": flow.ranks,
        "pattern": flow.pattern,
        "link_bytes": flow.link_bytes,
        "link_bytes_per_s": flow.link_bytes / step_s if step_s else None,
        "within_bytes": flow.within_bytes,
        "across_bytes": flow.across_bytes,
        "ink": look.ink,
        "ink_on_dark": look.ink_on_dark,
    }
