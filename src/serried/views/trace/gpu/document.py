"""What is measured of GPUs as a document for other programs; times are microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from serried.plan.traffic.reference import TrafficReference
from serried.trace.gpu.activity import GpuTrace
from serried.trace.gpu.analysis import GpuAnalysis, GpuRankFigures
from serried.trace.gpu.critical_path import GpuPath
from serried.trace.gpu.kind import short_name
from serried.views.trace.document import finding_document
from serried.views.trace.traffic import traffic_document


def gpu_document(
    trace: GpuTrace, found: GpuAnalysis, traffic: Sequence[TrafficReference]
) -> dict[str, Any]:
    """Returns the ``serried.gpu-stats/1`` document."""
    return {
        "schema": "serried.gpu-stats/1",
        "tool": trace.tool,
        "world_size": trace.world_size,
        "ranks": [_rank(each) for each in found.ranks],
        "traffic": traffic_document(traffic),
        "waits": [_us(each) for each in found.waits],
        "waited_for": found.waited_for and found.waited_for.rank,
        "alignment": {
            "clocks": [_us(each) for each in found.alignment.clocks],
            "checked": found.alignment.checked,
            "violations": found.alignment.violations,
        },
        "warnings": [finding_document(each) for each in trace.warnings],
    }


def _rank(rank: GpuRankFigures) -> dict[str, Any]:
    return {
        "rank": rank.rank,
        "host": rank.host,
        "gpu": rank.gpu,
        "steps": list(rank.steps),
        "left_out_step": rank.last_step,
        "num_operations": rank.num_operations,
        "num_left_out": rank.num_left_out,
        "time": {
            **_us(rank.time),
            "exposed_us": rank.time.exposed_ns / 1e3,
            "overlap": rank.time.overlap,
        },
        "kinds": [
            {"kinds": [kind.name.lower() for kind in each.kinds], "length_us": each.length_ns / 1e3}
            for each in rank.kinds
        ],
        "kernels": [
            {
                **_us(each),
                "short_name": short_name(each.name),
                "kind": each.kind.name.lower(),
                "mean_us": each.mean_ns / 1e3,
            }
            for each in rank.names
        ],
        "streams": [{**_us(each), "idle_us": each.idle_ns / 1e3} for each in rank.streams],
        "launches": _us(rank.launches),
        "queues": [asdict(each) for each in rank.queues],
        "copies": [_us(each) for each in rank.copies],
        "critical_path": rank.path and _path(rank.path),
    }


def _path(path: GpuPath) -> dict[str, Any]:
    return {
        "step": path.step,
        "length_us": path.length_ns / 1e3,
        "parts_us": {part.value: ns / 1e3 for part, ns in path.by_part.items()},
        "names": [{"name": name, "length_us": ns / 1e3} for name, ns in path.by_name if ns],
    }


def _us(value: Any) -> dict[str, Any]:
    """Returns a value's fields, those in nanoseconds in microseconds."""
    return {
        name.removesuffix("_ns") + "_us" if name.endswith("_ns") else name: (
            field / 1e3 if name.endswith("_ns") and field is not None else field
        )
        for name, field in asdict(value).items()
    }
