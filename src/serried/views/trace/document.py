"""A trace, what is measured of it, and what merging it counted, as documents for other programs.

Times are microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from serried.finding import Finding
from serried.trace.measure.analysis import Analysis
from serried.trace.measure.ranks.rank_figures import SHARES, Values
from serried.trace.measure.statistics import Statistics
from serried.trace.measure.step_table import StepTable
from serried.trace.measure.what_if import WhatIf
from serried.trace.merge.store import Merged
from serried.trace.model.trace import Trace
from serried.views.trace.clocks import clock_document
from serried.views.trace.gaps import gaps_document


def stats_document(
    trace: Trace, stats: Statistics, replayed: WhatIf | None = None
) -> dict[str, Any]:
    """Returns the ``serried.trace-stats/1`` document; times are microseconds."""
    return {
        "schema": "serried.trace-stats/1",
        "run": trace.run,
        "framework": trace.job.framework,
        "world_size": trace.job.world_size,
        "sizes": dict(trace.job.sizes),
        "schedule": trace.job.schedule,
        "num_microbatches": trace.job.num_microbatches,
        "compute": trace.job.compute,
        "num_spans": len(trace.spans),
        "hosts": [{"name": host.name, "ranks": list(host.ranks)} for host in trace.hosts],
        "missing": list(trace.missing),
        "torn": list(trace.torn),
        "steps": [
            {
                "step": step.step,
                "window_us": step.window_ns / 1e3,
                "busy_us": step.busy_ns / 1e3,
                "bubble": step.bubble,
            }
            for step in stats.steps
        ],
        "warm_up": [step.step for step in stats.steps[: stats.num_warm_up]],
        "left_out": list(stats.left_out),
        "bubble": {
            "definition": "makespan",
            "measured": stats.bubble,
            "ideal": None if stats.ideal is None else float(stats.ideal),
            **(asdict(stats.bubbles) if stats.bubbles else {}),
        },
        "ranks": [
            {
                "rank": rank.rank,
                "compute_us": rank.compute_ns / 1e3,
                "receive_wait_us": rank.receive_wait_ns / 1e3,
                "exchange_wait_us": rank.exchange_wait_ns / 1e3,
                "other_us": rank.other_ns / 1e3,
                "work_us": {name: ns / 1e3 for name, ns in rank.by_work_ns.items()},
                "idle_us": {cause: ns / 1e3 for cause, ns in rank.idle_ns.items()},
            }
            for rank in stats.ranks
        ],
        "messages": {
            "spans": stats.messages.spans,
            "expected_spans": stats.messages.expected_spans,
            "pairs": stats.messages.pairs,
            "lone_sends": stats.messages.lone_sends,
            "lone_receives": stats.messages.lone_receives,
        },
        "alignment": _alignment(trace, stats),
        "what_if": replayed and _what_if(replayed),
        "warnings": [finding_document(each) for each in trace.warnings],
    }


def _alignment(trace: Trace, stats: Statistics) -> dict[str, Any]:
    return {
        "hosts": stats.alignment.num_hosts,
        "uncertainty_us": stats.alignment.uncertainty_us,
        "causality_violations": stats.alignment.causality_violations,
        "checked": stats.alignment.checked,
        "clocks": [clock_document(clock) for clock in trace.clocks],
    }


def _what_if(replayed: WhatIf) -> dict[str, Any]:
    return {
        "steps": replayed.num_steps,
        "replayed_us": replayed.recorded * 1e6,
        "ideal_us": replayed.ideal * 1e6,
        "slowdown": replayed.slowdown,
        "slowest_ranks_share": replayed.slowest_share,
        "last_stage_share": replayed.last_stage_share,
        "slowdown_by_type": replayed.by_type,
        "without_rank": [{"rank": gain.rank, "shorter": gain.shorter} for gain in replayed.ranks],
    }


def finding_document(finding: Finding) -> dict[str, Any]:
    """Returns a finding as it stands among a document's warnings."""
    return {
        "kind": finding.kind,
        "ranks": list(finding.ranks),
        "evidence": [str(sentence) for sentence in finding.evidence],
        "cure": str(finding.cure) if finding.cure else None,
    }


def analysis_document(analysis: Analysis) -> dict[str, Any]:
    """Returns the parts that ``serried.trace-stats/1`` has beside its statistics."""
    return {
        "order": _order(analysis),
        "planned": analysis.planned and asdict(analysis.planned),
        "throughput": _throughput(analysis),
        "paces": [
            {
                "rank": pace.rank,
                "stages": list(pace.stages),
                "compute_us": pace.compute_ns / 1e3,
                "jitter": pace.jitter,
                "slower": pace.slower,
                "slower_steps": pace.slower_steps,
                "steps": pace.num_steps,
                "evidence": pace.evidence,
                "step_us": pace.step_ns / 1e3,
                "waits_us": pace.waits_ns / 1e3,
                "waited_for_us": None if pace.waited_for_ns is None else pace.waited_for_ns / 1e3,
                "waited_for_steps": pace.waited_for_steps,
                "longer_us": {name: ns / 1e3 for name, ns in pace.longer},
                "is_slow": pace.is_slow,
            }
            for pace in analysis.paces
        ],
        "critical_path": _path(analysis),
        "gaps": gaps_document(analysis.gaps),
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
                "rank": piece.rank,
                "kind": piece.kind,
                "action": piece.action,
                "start_us": piece.start_ns / 1e3,
                "end_us": piece.end_ns / 1e3,
            }
            for piece in path.pieces
        ],
    }


def figures_document(figures: Mapping[str, Values]) -> dict[str, list[float | None]]:
    """Returns the figures of all ranks, by name: shares, and microseconds as ``…_us``.

    None stands for a rank of which a figure is not known.

    >>> import numpy as np
    >>> figures_document({"busy": np.array([0.5, np.nan]), "compute": np.array([2000.0, np.nan])})
    {'busy': [0.5, None], 'compute_us': [2.0, None]}
    """
    in_units = {
        name if name in SHARES else f"{name}_us": values if name in SHARES else values / 1e3
        for name, values in figures.items()
    }
    return {
        name: [None if math.isnan(value) else value for value in values.tolist()]
        for name, values in in_units.items()
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


def merge_document(merged: Merged) -> dict[str, Any]:
    """Returns the ``serried.trace-merge/1`` document of a store that merging did not measure."""
    trace, aligned = merged.trace, merged.alignment
    return {
        "schema": "serried.trace-merge/1",
        "run": trace.run,
        "world_size": trace.job.world_size,
        "num_spans": merged.num_spans,
        "hosts": [{"name": host.name, "ranks": list(host.ranks)} for host in trace.hosts],
        "missing": list(trace.missing),
        "torn": list(trace.torn),
        "messages": asdict(merged.messages),
        "alignment": {
            "uncertainty_us": aligned.uncertainty_us,
            "causality_violations": aligned.causality_violations,
            "checked": aligned.checked,
        },
        "warnings": [str(warning) for warning in trace.warnings],
    }
