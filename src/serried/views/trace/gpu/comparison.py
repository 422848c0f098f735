"""Two profiles of GPUs by name, for the terminal and as a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from serried.trace.gpu.difference import Frequency, GpuComparison, NameDifference
from serried.trace.gpu.kind import short_name
from serried.units import difference_text, duration_text
from serried.views.sentences import phrase, tell
from serried.views.table import Table
from serried.views.trace.text import figures_table
from serried.views.trace.words import cut

ON_GPU_SHOWN, ON_HOST_SHOWN = 12, 8
"""Rows that the terminal shows; JSON has them all."""


def gpu_comparison_lines(found: GpuComparison, *, lang: str = "en") -> list[str]:
    """Returns the verdict: how much more A takes, most in what, and how often names stand."""
    on_gpu = found.on_gpu()
    ours, theirs = (
        sum(getattr(row, side).total_ns for row in on_gpu) for side in ("first", "second")
    )
    worst = max(on_gpu, key=lambda row: abs(row.more_ns), default=None)
    per_step = bool(found.steps[0] and found.steps[1])
    lines = [
        tell(
            "a step of A keeps its GPU busy for {ours}, of B for {theirs}: {more} ({share:+.1%})"
            if per_step
            else "A keeps its GPU busy for {ours}, B for {theirs}: {more} ({share:+.1%})",
            lang,
            ours=duration_text(ours),
            theirs=duration_text(theirs),
            more=difference_text(ours - theirs),
            share=ours / theirs - 1 if theirs else 0.0,
        )
    ]
    if worst is not None and worst.more_ns:
        name = cut(short_name(worst.name))
        lines.append(
            tell("most in {name}: {more}", lang, name=name, more=difference_text(worst.more_ns))
        )
    counts = Counter(row.frequency for row in found.rows)
    lines.append(
        tell(
            "names: {alone:,} only in A, {other:,} only in B; {more:,} more often in A, "
            "{less:,} less often",
            lang,
            alone=counts[Frequency.ONLY_FIRST],
            other=counts[Frequency.ONLY_SECOND],
            more=counts[Frequency.MORE_OFTEN],
            less=counts[Frequency.LESS_OFTEN],
        )
    )
    return lines


def gpu_comparison_tables(found: GpuComparison, *, lang: str = "en") -> list[Table]:
    """Returns the names that differ most: those of kernels and copies, then those of calls."""
    return [
        _rows(tell("on the GPU", lang), found.on_gpu(), ON_GPU_SHOWN, lang),
        _rows(tell("calls of the host", lang), found.on_host(), ON_HOST_SHOWN, lang),
    ]


def _rows(first: str, rows: Sequence[NameDifference], shown: int, lang: str) -> Table:
    words = ("count, A", "count, B", "time, A", "time, B", "A - B")
    table = figures_table(first, *(phrase(word, lang) for word in words))
    for row in rows[:shown]:
        counts = f"{row.first.count:,.3g}", f"{row.second.count:,.3g}"
        times = duration_text(row.first.total_ns), duration_text(row.second.total_ns)
        table.add_row(cut(short_name(row.name), 44), *counts, *times, difference_text(row.more_ns))
    if len(rows) > shown:
        table.add_row(tell("{count:,} more", lang, count=len(rows) - shown))
    return table


def gpu_comparison_document(found: GpuComparison, first: str, second: str) -> dict[str, Any]:
    """Returns the ``serried.gpu-comparison/1`` document; times are microseconds, a mean step."""
    return {
        "schema": "serried.gpu-comparison/1",
        "first": {"name": first, "rank": found.ranks[0], "steps": list(found.steps[0])},
        "second": {"name": second, "rank": found.ranks[1], "steps": list(found.steps[1])},
        "rows": [
            {
                "name": row.name,
                "where": "gpu" if row.is_on_gpu else "host",
                "frequency": row.frequency.value,
                "first": {"count": row.first.count, "total_us": row.first.total_ns / 1e3},
                "second": {"count": row.second.count, "total_us": row.second.total_ns / 1e3},
                "more_us": row.more_ns / 1e3,
            }
            for row in found.rows
        ],
    }
