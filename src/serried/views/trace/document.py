"""A Trace and its statistics as a document that other programs read."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from serried.finding import Finding
from serried.trace.measure.statistics import Statistics
from serried.trace.measure.what_if import WhatIf
from serried.trace.model.trace import Trace
from serried.views.trace.clocks import clock_document


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
                "step": each.step,
                "window_us": each.window_ns / 1e3,
                "busy_us": each.busy_ns / 1e3,
                "bubble": each.bubble,
            }
            for each in stats.steps
        ],
        "left_out": list(stats.left_out),
        "bubble": {
            "definition": "makespan",
            "measured": stats.bubble,
            "ideal": None if stats.ideal is None else float(stats.ideal),
            **(asdict(stats.bubbles) if stats.bubbles else {}),
        },
        "ranks": [
            {
                "rank": each.rank,
                "compute_us": each.compute_ns / 1e3,
                "receive_wait_us": each.receive_wait_ns / 1e3,
                "exchange_wait_us": each.exchange_wait_ns / 1e3,
                "other_us": each.other_ns / 1e3,
                "work_us": {name: ns / 1e3 for name, ns in each.by_work_ns.items()},
                "idle_us": {cause: ns / 1e3 for cause, ns in each.idle_ns.items()},
            }
            for each in stats.ranks
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
