"""The traffic of a planned step as a matrix: over ranks, nodes, or runs of nodes."""

from __future__ import annotations

from typing import Any

from serried.plan.job_plan import job_plan
from serried.plan.traffic.flows import flows_of
from serried.plan.traffic.matrix import traffic_matrix
from serried.views.sentences import tell
from serried.views.web.plan.query import read_plan_request
from serried.views.web.wire.query import Query, Words


def matrix_answer(query: Query, words: Words, lang: str) -> dict[str, Any]:
    """Returns the ``serried.traffic-matrix/1`` document; raises InputError as a plan does."""
    made = job_plan(read_plan_request(query, words))
    flows = flows_of(made.traffic, query.layout, query.placement)
    found = traffic_matrix(flows, query.layout, query.placement)
    across = sum(flow.across_bytes for flow in flows)
    return {
        "schema": "serried.traffic-matrix/1",
        "verdict": tell(
            "{share} of what a step sends crosses nodes",
            lang,
            share=f"{across / found.total:.1%}" if found.total else "0%",
        ),
        "unit": found.unit,
        "width": found.width,
        "rows": len(found.sent),
        "sent": [round(each) for each in found.sent.ravel().tolist()],
        "most": round(float(found.sent.max(initial=0.0))),
        "total": round(found.total),
        "across": round(across),
    }
