"""A check's report as tables for the terminal: nodes and their links, times, and findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from serried.mesh import Layout
from serried.plan.busbw import BusbwRow
from serried.runtime.check.report import CheckReport, Link
from serried.units import bytes_text, duration_text, speed_text
from serried.views.layout.text import table
from serried.views.sentences import say, tell
from serried.views.table import Table


def headline(report: CheckReport, layout: Layout, lang: str) -> str:
    """Returns one line: what was checked, and on what."""
    nodes = len(report.nodes)
    return tell(
        "{framework} {version}: {ranks} ranks on one node, {groups} groups of {kinds} kinds, "
        "{backend}, {rounds} rounds"
        if nodes == 1
        else "{framework} {version}: {ranks} ranks on {nodes} nodes, {groups} groups of {kinds} "
        "kinds, {backend}, {rounds} rounds",
        lang,
        framework=layout.framework,
        version=layout.version,
        ranks=layout.world_size,
        nodes=nodes,
        groups=sum(report.num_groups.values()),
        kinds=len(report.num_groups),
        backend=report.backend,
        rounds=report.rounds,
    )


def times_table(report: CheckReport, lang: str) -> Table:
    """Returns a row per kind, shape of its groups, operation and size.

    ``alone`` is the time of the first group while all others waited, ``contention`` how many
    times longer it takes while all groups of its kind run.
    """
    rows = table(
        *(tell("kind", lang), tell("groups", lang), tell("operation", lang), tell("size", lang)),
        *(tell("time", lang), "algbw", "busbw", tell("alone", lang)),
        *(tell("contention", lang), tell("slowest", lang)),
    )
    for place, column in enumerate(rows.columns):
        column.no_wrap, column.is_key = True, place < 4
    before = ""
    for timed in report.timings:
        for row in timed.rows():
            shape = _shape(row, lang)
            is_new, before = f"{timed.kind} {shape}" != before, f"{timed.kind} {shape}"
            # Only group 0 was timed while all others waited, so these figures stand in
            # one row: that of the groups of group 0's shape.
            is_first = (row.ranks, row.nodes) == (timed.sizes[0], timed.nodes[0])
            rows.add_row(
                *((timed.kind, shape) if is_new else ("", "")),
                timed.operation,
                bytes_text(timed.size_bytes),
                duration_text(row.time_ns),
                speed_text(row.algbw_bytes_per_s),
                speed_text(row.busbw_bytes_per_s),
                duration_text(timed.alone_ns) if timed.alone_ns and is_first else "-",
                f"{timed.contention:.2f} x" if timed.contention and is_first else "-",
                str(timed.slowest) if len(timed.sizes) > 1 and is_first else "-",
            )
    return rows


def nodes_table(report: CheckReport, lang: str) -> Table:
    """Returns a row per node: who sits there, and how fast its messages are at the largest size."""
    rows = table(
        *(tell("node", lang), tell("host", lang), "rank"),
        *(tell("sends", lang), tell("receives", lang), tell("inside", lang)),
    )
    for node, seats in report.nodes.items():
        ranks = {seat.rank for seat in seats}
        across = [link for link in report.links if link.is_inter]
        inside = [link for link in report.links if not link.is_inter]
        # The two directions of a node are told apart: it may receive fast and yet send slowly.
        rows.add_row(
            str(node),
            seats[0].host,
            " ".join(str(rank) for rank in sorted(ranks)),
            _median_speed([link for link in across if link.source in ranks], report),
            _median_speed([link for link in across if link.target in ranks], report),
            _median_speed([link for link in inside if link.source in ranks], report),
        )
    return rows


def finding_lines(report: CheckReport, lang: str) -> list[str]:
    """Returns a line per finding with its cure below, or one line that all is well."""
    lines = []
    for finding in report.findings:
        lines += [f"{finding.kind}: {say(sentence, lang)}" for sentence in finding.evidence]
        lines += [f"  -> {say(finding.cure, lang)}"] if finding.cure else []
    if not lines:
        lines.append(_well(lang))
    if len(report.nodes) == 2:
        lines.append(tell("two nodes have one path: only its two directions are compared", lang))
    return lines


def _well(lang: str) -> str:
    return tell(
        "every group has the members of the layout, and nothing is slow beside its like", lang
    )


def same_line(same_as: Mapping[str, str], lang: str) -> str:
    """Returns which kinds were not timed as another has the same groups; "" where there is none."""
    pairs = ", ".join(f"{kind} = {first}" for kind, first in same_as.items())
    return tell("same groups: {pairs}", lang, pairs=pairs) if pairs else ""


def _shape(row: BusbwRow, lang: str) -> str:
    shape = f"{row.groups} x {row.ranks}"
    if row.nodes == 1:
        return shape
    return tell("{shape} on {nodes} nodes", lang, shape=shape, nodes=row.nodes)


def _median_speed(links: Sequence[Link], report: CheckReport) -> str:
    last = len(report.sizes_bytes) - 1
    speeds = [link.bandwidth(report.sizes_bytes[last], last) for link in links]
    return speed_text(float(np.median(speeds))) if speeds else "-"
