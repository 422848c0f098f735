"""What merging counted, as a document that other programs read."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from serried.trace.merge.store import Merged


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
