"""What is measured of a run beyond its bubble, as the parts of a document; microseconds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from serried.trace.measure.analysis import Analysis
from serried.trace.measure.step_table import StepTable


def analysis_document(analysis: Analysis) -> dict[str, Any]:
    """Returns the parts that ``serried.trace-stats/1`` has beside its statistics."""
    return {
        "order": _order(analysis),
        "planned": analysis.planned and asdict(analysis.planned),
        "throughput": _throughput(analysis),
        "paces": [
            {
                "rank": each.rank,
                "stages": list(each.stages),
                "compute_us": each.compute_ns / 1e3,
                "jitter": each.jitter,
                "slower": each.slower,
                "slower_steps": each.slower_steps,
                "steps": each.num_steps,
                "evidence": each.evidence,
                "step_us": each.step_ns / 1e3,
                "waits_us": each.waits_ns / 1e3,
                "waited_for_us": None if each.waited_for_ns is None else each.waited_for_ns / 1e3,
                "waited_for_steps": each.waited_for_steps,
                "longer_us": {name: ns / 1e3 for name, ns in each.longer},
                "is_slow": each.is_slow,
            }
            for each in analysis.paces
        ],
        "critical_path": _path(analysis),
    }


def _order(analysis: Analysis) -> dict[str, Any] | None:
    if analysis.order is None:
        return None
    found = analysis.recognition
    return {
        "schedule": analysis.schedule,
        "ranks": analysis.order.ranks.tolist(),
        "stages": analysis.order.num_stages,
        "microbatches": analysis.order.num_microbatches,
        "is_exact": found is not None and found.is_exact,
        "like": [asdict(each) for each in found.likenesses] if found else [],
    }


def _throughput(analysis: Analysis) -> dict[str, Any] | None:
    found = analysis.throughput
    if found is None:
        return None
    return {
        "period_us": found.period_ns / 1e3,
        "has_gaps": found.has_gaps,
        "jitter": found.jitter,
        "microbatches_per_step": found.microbatches_per_step,
        "microbatches_per_s": found.microbatches_per_s,
        "tokens_per_microbatch": found.tokens_per_microbatch,
        "tokens_per_s": found.tokens_per_s,
    }


def _path(analysis: Analysis) -> dict[str, Any] | None:
    path = analysis.path
    if path is None:
        return None
    return {
        "steps": list(path.steps),
        "by_kind": path.by_kind,
        "by_rank": [{"rank": rank, "share": share} for rank, share in path.by_rank.items()],
        "step": path.step,
        "pieces": [
            {
                "rank": each.rank,
                "kind": each.kind,
                "action": each.action,
                "start_us": each.start_ns / 1e3,
                "end_us": each.end_ns / 1e3,
            }
            for each in path.pieces
        ],
    }


def table_document(table: StepTable) -> list[dict[str, Any]]:
    """Returns a grouping of the step table, a row per group."""
    columns = {name: (column / 1e3).tolist() for name, column in table.columns.items()}
    return [
        {
            **dict(zip(table.by, key, strict=True)),
            **{f"{name}_us": column[row] for name, column in columns.items()},
        }
        for row, key in enumerate(table.keys.tolist())
    ]
