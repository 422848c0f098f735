"""Records what HolisticTraceAnalysis measures of its own samples, into a golden.

    pip install HolisticTraceAnalysis==0.5.0 "pandas<3"
    cd tests/goldens/traces/hta
    python ../../../oracle/holistic.py sampled_rank-?.json.gz mi250.json.gz alexnet.json.gz \
        simple_add.json.gz

The first two are also compared with one another.

Events that are no operation are taken out first: HolisticTraceAnalysis counts a stream's waits
(``cuda_sync``) and ranges drawn over a stream (``gpu_user_annotation``) as kernels.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

NO_OPERATION = ("cuda_sync", "gpu_user_annotation")
KERNELS = 12
PATHS = {
    "sampled_rank-0.json.gz": ("ProfilerStep#551", 0),
    "sampled_rank-1.json.gz": ("ProfilerStep#551", 0),
    "mi250.json.gz": ("ProfilerStep#1", 0),
    "alexnet.json.gz": ("measure|forward", 1),
    "simple_add.json.gz": ("measure|forward", 1),
}
"""The range whose critical path is taken, and which of those of its name."""
GOLDEN = Path(__file__).parents[1] / "goldens" / "traces" / "hta" / "hta_0.5.0.json"


def cleaned(path: Path, folder: Path) -> Path:
    """Writes a profile without what is no operation."""
    document = json.loads(gzip.decompress(path.read_bytes()))
    document["traceEvents"] = [
        event for event in document["traceEvents"] if event.get("cat") not in NO_OPERATION
    ]
    target = folder / path.name
    target.write_bytes(gzip.compress(json.dumps(document).encode()))
    return target


def rows(table: Any) -> list[dict[str, Any]]:
    """Returns a pandas table as plain rows."""
    if isinstance(table.columns[0], tuple):
        table.columns = ["_".join(each) for each in table.columns]
        table = table.reset_index()
    found: list[dict[str, Any]] = json.loads(table.to_json(orient="records", double_precision=10))
    return found


def launches(table: Any) -> dict[str, float]:
    """Returns what the table of launches adds up to."""
    call, run, delay = table.cpu_duration, table.gpu_duration, table.launch_delay
    figures = {
        "count": len(table),
        "calls_us": call.sum(),
        "run_us": run.sum(),
        "delays_us": delay.sum(),
        "num_short": ((call <= 50) & (run < call)).sum(),
        "num_long_calls": (call > 50).sum(),
        "num_long_delays": (delay > 100).sum(),
    }
    return {name: float(value) for name, value in figures.items()}


def whole(path: Path) -> Any:
    """Returns HolisticTraceAnalysis' analysis of a profile."""
    return importlib.import_module("hta.trace_analysis").TraceAnalysis(
        trace_files={0: str(path)}, trace_dir=""
    )


def measured(path: Path) -> dict[str, Any]:
    """Returns all that HolisticTraceAnalysis measures of one rank; None where it fails."""
    analysis = whole(path)
    hide = {"visualize": False}
    asked: dict[str, Callable[[], Any]] = {
        "temporal": lambda: rows(analysis.get_temporal_breakdown(**hide))[0],
        "overlap": lambda: rows(analysis.get_comm_comp_overlap(**hide))[0],
        "kinds": lambda: rows(kernels(analysis)[0]),
        "kernels": lambda: longest(rows(kernels(analysis)[1])),
        "idle": lambda: rows(analysis.get_idle_time_breakdown(**hide)[0]),
        "launches": lambda: launches(analysis.get_cuda_kernel_launch_stats(**hide)[0]),
        "queues": lambda: rows(analysis.get_queue_length_summary()),
        "copies": lambda: rows(analysis.get_memory_bw_summary()),
    }
    found: dict[str, Any] = {}
    for name, ask in asked.items():
        found[name] = None
        with contextlib.suppress(Exception):
            found[name] = ask()
    return found


def critical_path(analysis: Any, annotation: str, instance: int) -> dict[str, float]:
    """Returns the microseconds of a critical path, by what binds it."""
    graph, _ = analysis.critical_path_analysis(rank=0, annotation=annotation, instance_id=instance)
    table = graph.get_critical_path_breakdown()
    found: dict[str, float] = table.groupby("bound_by").duration.sum().to_dict()
    return found


def longest(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows of the kernels that run longest."""
    return sorted(found, key=lambda row: -row["sum (us)"])[:KERNELS]


def kernels(analysis: Any) -> Any:
    """Returns the tables of kernels by kind and by name, none of them put together."""
    every = {"num_kernels": 10**6, "duration_ratio": 1.0, "include_memory_kernels": True}
    return analysis.get_gpu_kernel_breakdown(visualize=False, **every)


def longest_apart(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows whose times differ most, and those that one profile alone has."""
    return sorted(found, key=lambda row: -abs(row["diff_duration"]))[: 5 * KERNELS]


def differences(first: Path, second: Path) -> list[dict[str, Any]]:
    """Returns each name's counts and times in the first step of two profiles."""
    module = importlib.import_module("hta.trace_diff")
    traces = importlib.import_module("hta.common.trace")
    labelled = [
        module.LabeledTrace(label=label, t=traces.Trace(trace_files={0: str(path)}, trace_dir=""))
        for label, path in (("first", first), ("second", second))
    ]
    return rows(module.TraceDiff.compare_traces(*labelled).reset_index())


if __name__ == "__main__":
    # Whole microseconds are what it rounds to otherwise.
    os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(each) for each in sys.argv[1:]]
        files = [cleaned(each, Path(folder)) for each in paths]
        golden = {
            "HolisticTraceAnalysis": "0.5.0",
            "files": {each.name: measured(each) for each in files},
            "paths": {each.name: critical_path(whole(each), *PATHS[each.name]) for each in paths},
            "difference": longest_apart(differences(*files[:2])),
        }
    text = json.dumps(golden, indent=1)
    GOLDEN.write_text(text + "\n")
