"""A collective as the page's player draws it: places, moves between them, what ranks hold, times.

    seconds, step_bytes, sent_bytes   of each step: how long it lasts, what the busiest rank sends
                                      in it, and what it has sent after it
    shape, bounds, source, …          the moves, and what is held (``execution.py``)

Both the time and the algorithm are those that ``serried collective`` prints.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from serried.collective.registry import COLLECTIVES, ENTRIES
from serried.plan.collective_price import PricedCollective
from serried.views.collective.document import summary
from serried.views.sentences import phrase
from serried.views.web.collective.execution import move_columns, sent_columns
from serried.views.web.collective.places import Places
from serried.views.web.collective.query import CollectiveQuery
from serried.views.web.wire.payload import SCHEMA, pack

OFFERS = {
    name: [entry.name for entry in ENTRIES if entry.collective == name] for name in COLLECTIVES
}


def drawn_payload(query: CollectiveQuery, lang: str) -> bytes:
    """Returns the payload that answers ``query``; raises InputError where there is no answer."""
    priced = query.asked.priced()
    collective = priced.collective
    places = Places.of(collective.group)
    size_bytes = priced.asked.size_bytes
    columns = {
        "seconds": priced.step_s.astype(np.float64),
        **sent_columns(collective, size_bytes),
        **move_columns(collective, places),
    }
    return pack(_header(priced, places, lang), columns)


def _header(priced: PricedCollective, places: Places, lang: str) -> dict[str, Any]:
    collective = priced.collective
    return {
        **summary(priced),
        "schema": SCHEMA,
        "kind": "collective",
        "about": phrase(priced.entry.about, lang),
        "formula": phrase(priced.entry.formula, lang),
        "block_bytes": float(collective.block_bytes(priced.asked.size_bytes)),
        "owner": [] if places.is_grouped else collective.owner.tolist(),
        "is_grouped": places.is_grouped,
        "places": _places(places),
        "offers": OFFERS,
    }


def _places(places: Places) -> list[dict[str, int]]:
    """Returns each place: its rank, -1 for several or a switch, and how many it stands for."""
    counts = zip(places.num_ranks, places.first_node, places.num_nodes, strict=True)
    ranks = {} if places.is_grouped else dict(enumerate(places.group.ranks))
    return [
        {"rank": ranks.get(i, -1), "ranks": int(many), "node": int(node), "nodes": int(nodes)}
        for i, (many, node, nodes) in enumerate(counts)
    ]
