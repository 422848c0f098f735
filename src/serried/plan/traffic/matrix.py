"""Who sends how much to whom in a step, as a square matrix over ranks, nodes or runs of nodes.

        to  0     1     2     3
from 0    [ .    51.5  0.9   .   ]     tp 0 -> 1, dp 0 -> 2
     1    [ 51.5  .     .    0.9 ]

Rows send and columns receive. Where there are more ranks than a picture has room for, one row
stands for a node, or for as many neighbouring nodes as it takes; what stays inside is on the
diagonal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from serried.mesh import Groups, Layout, Placement
from serried.plan.traffic.flows import Flow, groups_of

Unit = Literal["rank", "node", "nodes"]
MOST_ROWS = 64
"""Rows that a picture shows apart."""


@dataclass(frozen=True, eq=False)
class TrafficMatrix:
    """Holds the bytes that one step sends from each place to each other."""

    unit: Unit
    """What a row stands for."""
    width: int
    """How many of these: ranks 1, nodes 1, or nodes of a run."""
    sent: NDArray[np.float64]
    """Bytes from a row to a column."""

    @property
    def total(self) -> float:
        """All that is sent in a step."""
        return float(self.sent.sum())


def traffic_matrix(
    flows: Sequence[Flow], layout: Layout, placement: Placement, most: int = MOST_ROWS
) -> TrafficMatrix:
    """Returns what flows send, over ranks where at most ``most`` are, else over nodes.

    >>> from serried.launch.request import LayoutRequest
    >>> from serried.plan.asked import plan_request
    >>> from serried.plan.traffic.flows import flows_of
    >>> from serried.plan.traffic.transfers import step_transfers
    >>> asked = LayoutRequest.of({"world_size": 16, "tp": 2, "pp": 4})
    >>> told = {"model": "llama3-8b", "cluster": "h100", "sequence": "8192", "global_batch": "64"}
    >>> made, nodes = asked.laid_out()
    >>> found = traffic_matrix(flows_of(step_transfers(plan_request(asked, told)), made, nodes),
    ...     made, nodes)
    >>> found.unit, found.sent.shape, bool(found.sent[0, 1] > found.sent[0, 2] > 0)
    ('rank', (16, 16), True)
    """
    ranks = np.arange(layout.world_size, dtype=np.int32)
    unit, width, place = _places(ranks, placement, most)
    rows = int(place.max()) + 1
    sent = np.zeros((rows, rows))
    for flow in flows:
        if flow.pattern == "all":
            _add_pairs(sent, groups_of(flow, layout), place, flow.link_bytes)
        else:
            sends = np.flatnonzero(flow.next >= 0)
            _add(sent, place[sends], place[flow.next[sends]], flow.link_bytes, flow.pattern)
    return TrafficMatrix(unit, width, sent)


def _places(
    ranks: NDArray[np.int32], placement: Placement, most: int
) -> tuple[Unit, int, NDArray[np.int64]]:
    """Returns what a row stands for, how many of them, and the row of each rank."""
    if len(ranks) <= most:
        return "rank", 1, ranks.astype(np.int64)
    nodes = placement.nodes(ranks).astype(np.int64)
    width = -(-placement.num_nodes // most)
    return ("node" if width == 1 else "nodes"), width, nodes // width


def _add(
    sent: NDArray[np.float64],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    link_bytes: float,
    pattern: str,
) -> None:
    """Adds what goes over links; those of a chain carry half of it each way."""
    ways = [(source, target, link_bytes)]
    if pattern == "chain":
        half = link_bytes / 2
        ways = [(source, target, half), (target, source, half)]
    for start, end, num_bytes in ways:
        links = np.bincount(start * len(sent) + end, minlength=sent.size)
        sent += links.reshape(sent.shape) * num_bytes


def _add_pairs(
    sent: NDArray[np.float64], groups: Groups, place: NDArray[np.int64], link_bytes: float
) -> None:
    """Adds what each rank of a group sends to each other one."""
    rows = len(sent)
    of = np.repeat(np.arange(len(groups)), groups.sizes)
    inside = groups.members < len(place)
    # How many ranks of each group stand at each place: pairs are products of these.
    held = np.bincount(
        of[inside] * rows + place[groups.members[inside]], minlength=len(groups) * rows
    ).reshape(len(groups), rows)
    counts = held.astype(np.float64)
    pairs = counts.T @ counts
    pairs[np.diag_indices(rows)] -= counts.sum(axis=0)
    sent += pairs * link_bytes
