"""A simulated run written as the records that its ranks would have left."""

from __future__ import annotations

from pathlib import Path

from serried.action import ActionKind
from serried.trace.model.record import RecordHeader
from serried.trace.model.record_writer import RecordWriter
from serried.trace.model.trace import Trace


def written(trace: Trace, folder: Path) -> Path:
    """Writes the spans of a trace rank by rank, in the order of their ends; returns ``folder``."""
    for rank in trace.ranks:
        writer = RecordWriter(
            folder, RecordHeader(trace.run, rank, trace.job, monotonic_ns=0, wall_ns=10**18)
        )
        own = trace.spans.where(trace.spans.rank == rank)
        for row in own.end_ns.argsort(kind="stable").tolist():
            writer.add(
                ActionKind(int(own.kind[row])),
                int(own.start_ns[row]),
                int(own.end_ns[row]),
                int(own.stage[row]),
                int(own.microbatch[row]),
                int(own.peer[row]),
                step=int(own.step[row]),
            )
        writer.close()
    return folder
