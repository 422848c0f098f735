"""A collective as the page's player draws it: places, moves between them, what ranks hold, times.

    seconds, step_bytes, sent_bytes   of each step: how long it lasts, what the busiest rank sends
                                      in it, and what it has sent after it
    shape, bounds, source, …          the moves, and what is held (``execution.py``)

Both the time and the algorithm are those that ``serried collective`` prints.
"""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import Any

import numpy as np

from serried.collective.attention import SPLITS
from serried.collective.networks import DEFAULT
from serried.collective.registry import COLLECTIVES, ENTRIES
from serried.plan.collective_price import PricedCollective
from serried.views.collective.document import summary
from serried.views.explain.collectives import explained_collective
from serried.views.job.collective import MASKS
from serried.views.sentences import phrase
from serried.views.web.collective.execution import move_columns, sent_columns, work_columns
from serried.views.web.collective.places import Places
from serried.views.web.collective.planned import PlannedUse
from serried.views.web.collective.query import (
    collective_words,
    read_collective_query,
    read_use,
)
from serried.views.web.wire.payload import SCHEMA, pack
from serried.views.web.wire.query import Shown, Words, read_each, read_query, read_word

CHOICES = {"split": SPLITS, "mask": MASKS}
"""What some algorithms of attention may be asked for, the default first."""
_WORDS = {"split": "split", "causal": "mask"}
OFFERS = {
    name: {
        entry.name: [word for option, word in _WORDS.items() if option in entry.takes]
        for entry in ENTRIES
        if entry.collective == name
    }
    for name in COLLECTIVES
}
"""The algorithms of each collective, for the page to choose from, each with its ``CHOICES``."""


def collective_payload(words: Words, lang: str) -> bytes:
    """Returns the payload that answers a question; raises InputError where there is no answer."""
    use = read_use(words)
    priced = read_collective_query(words).priced()
    collective = priced.collective
    places = Places.of(collective.group)
    size_bytes = priced.asked.size_bytes
    columns = {
        "seconds": priced.step_s.astype(np.float64),
        **sent_columns(collective, size_bytes),
        **move_columns(collective, places),
        **work_columns(collective, places),
    }
    header = _header(priced, places, lang) | {
        "command": _command(words, priced, use),
        "size_bytes": size_bytes,
        "planned": use.document() if use else None,
    }
    return pack(header, columns)


def _command(words: Words, priced: PricedCollective, use: PlannedUse | None) -> str:
    """Returns the command line that prints the same steps, with the algorithm by its name."""
    kinds = read_each(words, "kind")[:1]
    if kinds:
        base = read_query(words).command([Shown("", kinds[0])])
        asked = ["--rank", read_word(words, "rank") or "0", "--collective", priced.collective.name]
    else:
        base, asked = "serried collective", [priced.collective.name]
        asked += ["--ranks", str(priced.collective.group.size)]
    size = read_word(words, "bytes") or str(priced.asked.size_bytes)
    told = ["--algorithm", priced.collective.algorithm, "--bytes", size]
    network = collective_words(words, use).preset.name
    if network != DEFAULT:
        told += ["--network", network]
    for word in CHOICES:
        if value := read_word(words, word):
            told += [f"--{word}", value]
    return f"{base} {shlex.join([*asked, *told])}"


def _header(priced: PricedCollective, places: Places, lang: str) -> dict[str, Any]:
    collective = priced.collective
    return {
        **summary(priced),
        "schema": SCHEMA,
        "kind": "collective",
        "about": phrase(priced.entry.about, lang),
        "formula": phrase(priced.entry.formula, lang),
        "explanation": asdict(explained_collective(collective.name, lang=lang)),
        "block_bytes": float(collective.block_bytes(priced.asked.size_bytes)),
        "owner": [] if places.is_grouped else collective.owner.tolist(),
        "is_grouped": places.is_grouped,
        "places": _places(places),
    }


def _places(places: Places) -> list[dict[str, int]]:
    """Returns each place: its rank, -1 for several or a switch, and how many it stands for."""
    counts = zip(places.num_ranks, places.first_node, places.num_nodes, strict=True)
    ranks = {} if places.is_grouped else dict(enumerate(places.group.ranks))
    return [
        {"rank": ranks.get(i, -1), "ranks": int(many), "node": int(node), "nodes": int(nodes)}
        for i, (many, node, nodes) in enumerate(counts)
    ]
