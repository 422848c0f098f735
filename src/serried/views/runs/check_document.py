"""A check's report as the ``serried.check/1`` document, with what a cluster map paints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from serried.collective.bus_factor import bus_factor
from serried.mesh import Layout
from serried.runtime.check.report import CheckReport, GroupTimes, Link
from serried.views.finding_document import told, told_in_each
from serried.views.runs.link_figures import figure_lists, link_figures

SLOW_NODE, SLOW_LINK = "slow-node", "slow-link"


def check_document(
    report: CheckReport, layout: Layout, lang: str, *, options: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Returns the document: groups, times, links, figures of ranks, findings and the map.

    ``options`` are the framework's settings that the layout was made with. Findings are told in
    ``lang`` and, for the workbench, in each of its languages.
    """
    links = [_link(link, report) for link in report.links]
    return {
        "schema": "serried.check/1",
        "framework": layout.framework,
        "version": layout.version,
        "world_size": layout.world_size,
        "sizes": dict(layout.sizes),
        "order": layout.order,
        "options": dict(options or {}),
        "backend": report.backend,
        "torch": report.torch_version,
        "rounds": report.rounds,
        "groups": {
            kind: {"groups": count, "same_as": report.same_as.get(kind)}
            for kind, count in report.num_groups.items()
        },
        "timings": [entry for each in report.timings for entry in _timing(each)],
        "links": links,
        "figures": figure_lists(link_figures(links, layout.world_size)),
        "map": cluster_map(report),
        "findings": [
            {
                "kind": finding.kind,
                "ranks": list(finding.ranks),
                "groups": list(finding.groups),
                **told(finding, lang),
                "in": told_in_each(finding),
            }
            for finding in report.findings
        ],
    }


def cluster_map(report: CheckReport) -> dict[str, Any]:
    """Returns nodes and the paths between them, each with its speed beside the median one.

    ``relative`` is 1 for a path as fast as the median path, 0.1 for one a tenth as fast.
    """
    node = {seat.rank: seat.node for seat in report.seats}
    last = len(report.sizes_bytes) - 1
    paths: dict[tuple[int, int], float] = {}
    for link in report.links:
        ends = node[link.source], node[link.target]
        speed = link.bandwidth(report.sizes_bytes[last], last)
        # Of several links from node to node the fastest stands for the path, so that one slow rank
        # does not make the path between two nodes look slow.
        paths[ends] = max(paths.get(ends, 0.0), speed)
    # A path is set beside its like: links inside a node are of another speed than the network.
    across = [speed for (a, b), speed in paths.items() if a != b]
    inside = [speed for (a, b), speed in paths.items() if a == b]
    return {
        "nodes": [
            {
                "node": number,
                "host": seats[0].host,
                "ranks": [seat.rank for seat in seats],
                "is_slow": _is_named(report, SLOW_NODE, {seat.rank for seat in seats}),
            }
            for number, seats in report.nodes.items()
        ],
        "paths": [
            {
                "from": a,
                "to": b,
                "bytes_per_s": round(speed),
                "relative": round(speed / float(np.median(inside if a == b else across)), 3),
            }
            for (a, b), speed in sorted(paths.items())
        ],
    }


def _is_named(report: CheckReport, kind: str, ranks: set[int]) -> bool:
    return any(each.kind == kind and set(each.ranks) == ranks for each in report.findings)


def _timing(timed: GroupTimes) -> list[dict[str, Any]]:
    entries = []
    for number, (ranks, nodes) in enumerate(zip(timed.sizes, timed.nodes, strict=True)):
        # A group of one rank sends nothing and has no bandwidth.
        if ranks < 2:
            continue
        time_ns = float(timed.median_ns[number])
        algbw = timed.size_bytes / time_ns * 1e9
        entries.append(
            {
                "kind": timed.kind,
                "group": number,
                "operation": timed.operation,
                "size_bytes": timed.size_bytes,
                "ranks": ranks,
                "nodes": nodes,
                "time_us": round(time_ns / 1e3, 1),
                "algbw_bytes_per_s": round(algbw),
                "busbw_bytes_per_s": round(algbw * bus_factor(timed.operation, ranks)),
                "rounds_us": [round(float(t) / 1e3, 1) for t in timed.times_ns[number]],
                "alone_us": round(timed.alone_ns / 1e3, 1)
                if timed.alone_ns and not number
                else None,
            }
        )
    return entries


def _link(link: Link, report: CheckReport) -> dict[str, Any]:
    medians = np.median(link.times_ns, axis=0)
    return {
        "from": link.source,
        "to": link.target,
        "is_inter": link.is_inter,
        "time_us": {
            str(size): round(float(time) / 1e3, 1)
            for size, time in zip(report.sizes_bytes, medians, strict=True)
        },
    }
