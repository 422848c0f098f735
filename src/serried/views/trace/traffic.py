"""What kinds of groups moved, for the terminal and as a document: beside a check and a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from serried.plan.traffic.reference import TrafficReference
from serried.units import bytes_text, duration_text
from serried.views.sentences import phrase, tell
from serried.views.table import Table
from serried.views.trace.text import figures_table
from serried.views.trace.words import cut

_GROUP_CELLS = 24


def traffic_table(
    found: Sequence[TrafficReference], *, shown: int, has_waits: bool = True, lang: str = "en"
) -> Table:
    """Returns a row for each operation of a kind, with a column for each reference there is."""
    words = ["times", "mean size", "transfer", "wait", "busbw"]
    references = [
        (word, values)
        for word, values in (
            ("check", [each.checked for each in found]),
            ("plan", [each.planned for each in found]),
        )
        if any(values)
    ]
    words += [word for word, _ in references]
    first = phrase("group", lang), phrase("operation", lang), tell("ranks", lang)
    table = figures_table(*first, *(phrase(word, lang) for word in words))
    for at, each in enumerate(found[:shown]):
        row = each.row
        size = "" if row.size_bytes is None else bytes_text(row.size_bytes // row.count)
        least = "" if row.is_whole else "≥ "
        table.add_row(
            cut(row.group, _GROUP_CELLS) or phrase("not recorded", lang),
            row.operation,
            str(row.num_ranks or ""),
            f"{row.count:,}",
            size,
            duration_text(row.transfer_ns / row.count),
            duration_text(row.wait_ns / row.count) if has_waits else "",
            _speed(row.busbw_bytes_per_s, least),
            *(_speed(values[at]) for _, values in references),
        )
    if len(found) > shown:
        table.add_row(tell("{count:,} more", lang, count=len(found) - shown))
    return table


def _speed(bytes_per_s: float | None, least: str = "") -> str:
    return "" if bytes_per_s is None else f"{least}{bytes_per_s / 1e9:.3g} GB/s"


def traffic_document(found: Sequence[TrafficReference]) -> list[dict[str, Any]]:
    """Returns the rows for other programs; times are microseconds."""
    return [
        {
            "group": each.row.group,
            "operation": each.row.operation,
            "num_ranks": each.row.num_ranks,
            "num_nodes": each.row.num_nodes,
            "count": each.row.count,
            "size_bytes": each.row.size_bytes,
            "transfer_us": each.row.transfer_ns / 1e3,
            "wait_us": each.row.wait_ns / 1e3,
            "is_whole": each.row.is_whole,
            "busbw_bytes_per_s": each.row.busbw_bytes_per_s,
            "checked_busbw_bytes_per_s": each.checked,
            "planned_busbw_bytes_per_s": each.planned,
        }
        for each in found
    ]
