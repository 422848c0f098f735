"""The algorithms of a collective beside one another: a row for each size, and where they cross."""

from __future__ import annotations

from typing import Any

from serried.errors import listed
from serried.finding import said
from serried.plan.collective_crossing import AlgorithmsBySize
from serried.units import duration_text, memory_text
from serried.views.sentences import say, tell
from serried.views.table import Table

SCHEMA = "serried.collective-comparison/1"


def comparison_verdict(by_size: AlgorithmsBySize, *, lang: str = "en") -> str:
    """Returns which algorithm is the quickest up to which size, in one sentence."""
    group = by_size.asked.group
    parts = [
        said(
            "{algorithm} below {size}",
            algorithm=each.before,
            size=memory_text(each.size_bytes),
        )
        for each in by_size.crossings
    ]
    last = by_size.best(by_size.sizes[-1])
    parts.append(said("{algorithm} above", algorithm=last) if parts else
                 said("{algorithm} at every size", algorithm=last))  # fmt: skip
    return tell(
        "quickest {name} over {ranks:,} ranks on {nodes:,} nodes: {which}",
        lang,
        name=by_size.asked.name,
        ranks=group.size,
        nodes=group.num_nodes,
        which=say(listed(parts, limit=20), lang),
    )


def comparison_table(by_size: AlgorithmsBySize, *, lang: str = "en") -> Table:
    """Returns a row for each size: every algorithm's time, and the quickest."""
    table = Table()
    table.add_column(tell("bytes", lang), justify="right")
    for name in by_size.ways:
        table.add_column(name, justify="right")
    table.add_column(tell("quickest", lang))
    for size in by_size.sizes[::2]:
        times = [duration_text(by_size.time_s(name, size) * 1e9) for name in by_size.ways]
        table.add_row(memory_text(size), *times, by_size.best(size))
    return table


def crossing_lines(by_size: AlgorithmsBySize, *, lang: str = "en") -> list[str]:
    """Returns a line for each size from which on another algorithm is the quickest."""
    return [
        tell(
            "from {exact:,} bytes ({size}) on {after} is quicker than {before}",
            lang,
            exact=each.size_bytes,
            size=memory_text(each.size_bytes),
            after=each.after,
            before=each.before,
        )
        for each in by_size.crossings
    ]


def comparison_document(by_size: AlgorithmsBySize) -> dict[str, Any]:
    """Returns the ``serried.collective-comparison/1`` document; times are seconds."""
    group = by_size.asked.group
    return {
        "schema": SCHEMA,
        "name": by_size.asked.name,
        "ranks": list(group.ranks),
        "nodes": list(group.nodes),
        "sizes": by_size.sizes,
        "times": {
            name: [by_size.time_s(name, size) for size in by_size.sizes] for name in by_size.ways
        },
        "best": [by_size.best(size) for size in by_size.sizes],
        "crossings": [
            {"bytes": each.size_bytes, "before": each.before, "after": each.after}
            for each in by_size.crossings
        ],
    }
