"""A priced collective as the ``serried.collective/1`` document.

    {"schema": "serried.collective/1", "name": "all-reduce", "algorithm": "ring",
     "ranks": [0, 1], "nodes": [0, 0], "bytes": 8, "num_blocks": 2, …
     "steps": [[{"from": 0, "to": 1, "block": 0, "count": 1, "bytes": 4, "reduce": true}, …], …],
     "step_times": [3e-06, …], "step_links": ["in node", …], "step_bytes": [8, …], "time": 6e-06}

Times are seconds and sizes bytes. ``from`` and ``to`` are ranks, or ``"switch N"`` for the switch
of node N. A move carries ``count`` blocks from ``block`` on, ``stride`` apart where that is not 1,
modulo ``num_blocks``. Attention has ``pairs`` too: how many pairs of blocks of queries and keys
each rank computes in each step, a diagonal one of a causal mask as a half.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from serried.collective.algorithm import Collective
from serried.collective.price import LinkClass, LinkCost
from serried.collective.step import CollectiveStep
from serried.errors import InputError
from serried.plan.collective_price import PricedCollective

SCHEMA = "serried.collective/1"
MOST_MOVES = 200_000
"""Moves that a document holds at most, about 20 MB of JSON."""
LINK_NAMES = {
    LinkClass.NONE: "none",
    LinkClass.IN_NODE: "in node",
    LinkClass.ACROSS: "across nodes",
}


def collective_document(
    priced: PricedCollective, steps: tuple[int, int] | None = None
) -> dict[str, Any]:
    """Returns the document, with all moves or those of ``steps``, from the first to the second.

    Raises InputError where these are more moves than a document holds.
    """
    first, end = steps_within(priced, steps)
    return {
        **summary(priced),
        "ranks": list(priced.collective.group.ranks),
        "nodes": list(priced.collective.group.nodes),
        "first_step": first,
        "steps": _moves(priced, first, end),
        "step_times": priced.step_s[first:end].tolist(),
        "step_links": [LINK_NAMES[LinkClass(each)] for each in priced.cost.link[first:end]],
        **_pairs(priced, first, end),
        "step_bytes": [round(each) for each in priced.cost.step_bytes[first:end].tolist()],
    }


def _pairs(priced: PricedCollective, first: int, end: int) -> dict[str, Any]:
    """Returns how many pairs of blocks each rank computes in each step, where any are."""
    collective = priced.collective
    if collective.attention is None:
        return {}
    size = collective.group.size
    works = (collective.steps[index].work for index in range(first, end))
    return {"pairs": [work.pairs(size).tolist() if work else [0.0] * size for work in works]}


def summary(priced: PricedCollective) -> dict[str, Any]:
    """Returns all of the document but what is as long as the ranks or the steps."""
    collective, network = priced.collective, priced.cost.network
    return {
        "schema": SCHEMA,
        "name": collective.name,
        "algorithm": collective.algorithm,
        "bytes": priced.asked.size_bytes,
        "num_ranks": collective.group.size,
        "num_nodes": collective.group.num_nodes,
        "num_blocks": collective.num_blocks,
        "num_buffers": collective.num_buffers,
        "num_steps": len(collective.steps),
        "chunks": priced.chunks,
        "root": priced.root_rank,
        "about": priced.entry.about,
        "formula": priced.entry.formula,
        "source": priced.entry.source,
        "time": priced.time_s,
        "launch_time": priced.launch_s,
        "algbw": priced.algbw,
        "busbw": priced.busbw,
        "bytes_sent_by_a_rank": round(priced.most_sent),
        "bottleneck": LINK_NAMES[priced.bottleneck],
        "network": {
            "name": network.name,
            "protocol": network.protocol,
            "nics_per_node": network.nics_per_node,
            "in_node": _link(network.in_node),
            "across_nodes": _link(network.across),
        },
        "measured": _measured(priced),
    }


def steps_within(priced: PricedCollective, steps: tuple[int, int] | None) -> tuple[int, int]:
    """Returns the first step and the one behind the last, of those asked for and there are."""
    number = len(priced.collective.steps)
    if steps is None:
        return 0, number
    first, end = steps
    if first >= end or first >= max(number, 1):
        raise InputError(
            "steps {first}:{end} are none; there are steps 0 to {last}, such as 0:{few}",
            first=first,
            end=end,
            last=max(number - 1, 0),
            few=min(number, 10),
        )
    return first, min(end, number)


def place_name(collective: Collective, position: int) -> int | str:
    """Returns the rank at a position, or the name of the switch there.

    >>> from serried.collective.placed_group import PlacedGroup
    >>> from serried.collective.registry import make
    >>> ring = make("all-reduce", "ring", PlacedGroup((4, 6), (0, 1)))
    >>> place_name(ring, 1), place_name(ring, 3)
    (6, 'switch 1')
    """
    group = collective.group
    if position < group.size:
        return group.ranks[position]
    node = position - group.size
    return f"switch {group.nodes[group.by_node[node][0]]}"


def _moves(priced: PricedCollective, first: int, end: int) -> list[list[dict[str, Any]]]:
    steps = priced.collective.steps
    number = 0
    for index in range(first, end):
        number += len(steps[index])
        if number > MOST_MOVES:
            raise InputError(
                "steps {first}:{end} have more than {most:,} moves, which is more than a document "
                "holds; ask for fewer, such as {first}:{few}",
                first=first,
                end=end,
                most=MOST_MOVES,
                few=first + max(1, min(index - first, 10)),
            )
    return [_of_step(priced, steps[index]) for index in range(first, end)]


def _of_step(priced: PricedCollective, step: CollectiveStep) -> list[dict[str, Any]]:
    collective, size = priced.collective, priced.asked.size_bytes
    columns = (step.source, step.target, step.first, step.count, step.reduces)
    return [
        {
            "from": place_name(collective, source),
            "to": place_name(collective, target),
            "block": block,
            "count": count,
            **({} if step.stride == 1 or count == 1 else {"stride": step.stride}),
            "bytes": carried(collective, block, count, step.stride, size),
            "reduce": reduces,
        }
        for source, target, block, count, reduces in zip(
            *(column.tolist() for column in columns), strict=True
        )
    ]


def carried(collective: Collective, block: int, count: int, stride: int, size_bytes: int) -> int:
    """Returns the bytes of ``count`` blocks from ``block`` on, exactly."""
    blocks = (block + np.arange(count) * stride) % collective.num_blocks
    return sum(collective.bytes_of(int(each), size_bytes) for each in blocks)


def _link(link: LinkCost) -> dict[str, Any]:
    return {
        "name": link.name,
        "latency": link.latency_s,
        "bytes_per_s": link.bytes_per_s,
        "peak_bytes_per_s": link.peak_bytes_per_s,
    }


def _measured(priced: PricedCollective) -> dict[str, Any] | None:
    if priced.asked.measured is None:
        return None
    rows = [
        {
            "operation": row.operation,
            "ranks": row.ranks,
            "nodes": row.nodes,
            "size_bytes": row.size_bytes,
            "time_ns": row.time_ns,
            "busbw_bytes_per_s": row.busbw_bytes_per_s,
        }
        for row in priced.measured_rows
    ]
    return {"source": priced.asked.measured.source, "rows": rows, "model_time": priced.cost.time_s}
