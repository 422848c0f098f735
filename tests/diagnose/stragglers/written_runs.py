"""A simulated run written as the records that its ranks would have left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from serried.action import ActionKind
from serried.trace.model.record import RecordHeader
from serried.trace.model.record_writer import RecordWriter
from serried.trace.model.trace import Trace


@dataclass(frozen=True)
class Off:
    """Says how wrong a host's clock is: its wall clock in nanoseconds, and how much too fast."""

    ns: int = 0
    drift: float = 0.0


def written(trace: Trace, folder: Path, second: Off | None = None) -> Path:
    """Writes the spans of a trace rank by rank, in the order of their ends; returns ``folder``.

    With a ``second`` host, whose clock is off, the upper half of the ranks is on it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for rank in trace.ranks:
        is_second = second is not None and 2 * rank >= trace.job.world_size
        off = second if second is not None and is_second else Off()
        header = RecordHeader(trace.run, rank, trace.job, monotonic_ns=0, wall_ns=10**18 + off.ns)
        if second is not None:
            header = replace(header, host="ab"[is_second], boot="ab"[is_second])
        writer = RecordWriter(folder, header)
        own = trace.spans.where(trace.spans.rank == rank)
        for row in own.end_ns.argsort(kind="stable").tolist():
            writer.add(
                ActionKind(int(own.kind[row])),
                round(own.start_ns[row] * (1 + off.drift)),
                round(own.end_ns[row] * (1 + off.drift)),
                int(own.stage[row]),
                int(own.microbatch[row]),
                int(own.peer[row]),
                step=int(own.step[row]),
            )
        writer.close()
    return folder
