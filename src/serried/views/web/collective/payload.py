"""A collective as a payload: its price, its steps as columns, and what every rank holds.

    rank, node      of each position, shape (ranks,); positions from there on are nodes' switches
    step:…          of every step: seconds, seconds until its end, bytes that all send, and the link
                    it waits for (0 none, 1 in the node, 2 across nodes)
    move:bounds     moves bounds[k] .. bounds[k + 1] are those of step header.first + k
    move:…          source and target position, first block, count and bytes of each move, and
                    whether the receiver adds what comes
    held            contributions in each block of each position before step header.first and after
                    each step in view, shape (steps in view + 1, positions and switches, blocks)

``held`` is the steps executed on symbolic blocks; it is left out where it would be more than
``MOST_HELD`` values. A position that shows n contributions of n has the sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from serried.collective.blocks import execute
from serried.collective.networks import DEFAULT, PRESETS
from serried.collective.registry import COLLECTIVES, ENTRIES
from serried.collective.step import CollectiveStep
from serried.plan.collective_price import PricedCollective
from serried.views.collective.document import carried, summary
from serried.views.collective.text import verdict_lines
from serried.views.sentences import phrase
from serried.views.web.collective.query import CollectiveQuery
from serried.views.web.wire.payload import Column, pack

MOST_HELD = 1 << 21
"""Values of ``held`` that are sent at most, 2 to 4 MB."""
MOST_EXECUTED = 1 << 26
"""Values that are worked through at most to come to the steps in view."""
MOST_SENT_MOVES = 1 << 18
"""Moves that are sent at most; the steps in view end before there would be more."""


def collectives_answer(lang: str) -> dict[str, Any]:
    """Returns what there is to choose from: collectives, algorithms, networks."""
    return {
        "schema": "serried.collective-names/1",
        "collectives": [
            {
                "name": name,
                "algorithms": [
                    {
                        "name": each.name,
                        "about": phrase(each.about, lang),
                        "formula": phrase(each.formula, lang),
                        "source": each.source,
                    }
                    for each in ENTRIES
                    if each.collective == name
                ],
            }
            for name in COLLECTIVES
        ],
        "networks": [
            {
                "name": each.name,
                "about": phrase(each.about, lang),
                "gpus_per_node": each.gpus_per_node,
            }
            for each in PRESETS.values()
        ],
        "network": DEFAULT,
    }


def collective_payload(query: CollectiveQuery, lang: str) -> bytes:
    """Returns the payload that answers ``query``; raises InputError where there is no answer."""
    priced = query.asked.priced()
    first = min(query.first, len(priced.collective.steps))
    shown = _in_view(priced, first, min(query.end, len(priced.collective.steps)))
    end = first + len(shown)
    header = {
        "kind": "collective",
        **summary(priced),
        "about": phrase(priced.entry.about, lang),
        "formula": phrase(priced.entry.formula, lang),
        "verdict": verdict_lines(priced, lang=lang),
        "first": first,
        "end": end,
    }
    group = priced.collective.group
    columns: dict[str, Column] = {
        "rank": np.array(group.ranks, np.int32),
        "node": group.node_index.astype(np.int32),
        "step:seconds": priced.step_s.astype(np.float64),
        "step:until": priced.launch_s + priced.step_s.cumsum(),
        "step:bytes": priced.cost.step_bytes,
        "step:link": priced.cost.link,
        **_moves(priced, shown),
    }
    held = _held(priced, first, end)
    if held is not None:
        columns["held"] = held.reshape(-1)
    return pack(header, columns)


def _in_view(priced: PricedCollective, first: int, end: int) -> list[CollectiveStep]:
    """Returns the steps in view, as many as may be sent; one at least where there is any."""
    found: list[CollectiveStep] = []
    moves = 0
    for number in range(first, end):
        step = priced.collective.steps[number]
        moves += len(step)
        if found and moves > MOST_SENT_MOVES:
            break
        found.append(step)
    return found


def _moves(priced: PricedCollective, steps: list[CollectiveStep]) -> dict[str, Column]:
    bounds = np.cumsum([0, *map(len, steps)])

    def joined(name: str) -> NDArray[np.int32]:
        parts = [getattr(step, name) for step in steps]
        return np.concatenate(parts or [np.zeros(0)]).astype(np.int32)

    strides = [np.full(len(step), step.stride) for step in steps]
    return {
        "move:bounds": bounds.astype(np.int32),
        "move:source": joined("source"),
        "move:target": joined("target"),
        "move:first": joined("first"),
        "move:count": joined("count"),
        "move:stride": np.concatenate(strides or [np.zeros(0)]).astype(np.int32),
        "move:reduces": joined("reduces").astype(np.uint8),
        "move:bytes": _bytes(priced, steps),
    }


def _bytes(priced: PricedCollective, steps: list[CollectiveStep]) -> NDArray[np.float64]:
    """Returns the bytes of each move, exactly where blocks are few, else of blocks on average."""
    collective, size = priced.collective, priced.asked.size_bytes
    if sum(map(len, steps)) > MOST_SENT_MOVES >> 6:
        counts = np.concatenate([step.count for step in steps])
        return np.round(counts * float(collective.block_bytes(size)))
    return np.array(
        [
            carried(collective, first, count, step.stride, size)
            for step in steps
            for first, count in zip(step.first.tolist(), step.count.tolist(), strict=True)
        ],
        np.float64,
    )


def _held(priced: PricedCollective, first: int, end: int) -> NDArray[Any] | None:
    """Returns how many contributions each block of each position has, None where too many."""
    collective = priced.collective
    group = collective.group
    cells = (group.size + group.num_nodes) * collective.num_blocks
    words = -(-group.size // 64)
    if cells * (end - first + 1) > MOST_HELD or cells * words * (end + 1) > MOST_EXECUTED:
        return None
    found = []
    for number, masks in enumerate(execute(collective)):
        if number >= first:
            found.append(_BITS[masks.view(np.uint8)].sum(axis=-1))
        if number == end:
            break
    return np.array(found).astype(np.uint8 if group.size < 256 else np.uint16)


_BITS = np.array([number.bit_count() for number in range(256)], np.uint16)
"""How many bits of each byte are set."""
