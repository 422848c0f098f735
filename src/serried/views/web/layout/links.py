"""Links of the groups in view where no plan says what travels: who comes after whom in each group.

The form is that of ``plan/links.py``, without bytes: all links are drawn alike.
"""

from __future__ import annotations

import numpy as np

from serried.plan.traffic.flows import following
from serried.views.colours import family
from serried.views.web.wire.payload import Column, pack
from serried.views.web.wire.query import Query


def group_links_payload(query: Query) -> bytes:
    """Returns the links of the kinds in view: of a pipeline's a chain, of others a ring."""
    shown = query.shown()
    others = [each.kind for each in shown if not each.dim]
    flows = []
    columns: dict[str, Column] = {}
    ranks = np.arange(query.layout.world_size, dtype=np.int32)
    for number, each in enumerate(shown):
        groups = query.layout.groups(each.kind)
        is_chain = each.dim == "pp"
        after = following(groups, query.layout.world_size, is_ring=not is_chain)
        look = family(each.dim, place=others.index(each.kind) if each.kind in others else 0)
        flows.append(
            {
                "kind": each.label,
                "collectives": [],
                "ranks": int(max(groups.sizes, default=0)),
                "pattern": "chain" if is_chain else "ring",
                "link_bytes": 0,
                "link_bytes_per_s": 0,
                "within_bytes": 0,
                "across_bytes": 0,
                "ink": look.ink,
                "ink_on_dark": look.ink_on_dark,
            }
        )
        columns[f"hop:{number}"] = np.where(after >= 0, after - ranks, 0).astype(np.int32)
    return pack({"kind": "links", "step_s": None, "flows": flows, "left_out": []}, columns)
