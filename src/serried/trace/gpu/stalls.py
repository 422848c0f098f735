"""Why a stream stood idle: the host came late, a launch takes its time, or something else.

    host        ├ launch 1 ┤              ├ launch 2 ┤
    stream 7       ├─ kernel 1 ─┤............├─ kernel 2 ─┤..├─ kernel 3 ─┤
                                  host wait               kernel wait

*Host wait*: the call that launched the next operation began after the last one had ended. *Kernel
wait*: it was launched before, and the gap is below 30 us, about what one launch after another
takes. *Other*: it was launched before and yet began much later, as behind an event of another
stream. Source: HolisticTraceAnalysis 0.5.0, ``get_idle_time_breakdown``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serried.trace.gpu.activity import GpuRank
from serried.trace.gpu.launches import Launches

KERNEL_WAIT_NS = 30_000
"""Gaps below this are those between two kernels in a row."""


@dataclass(frozen=True)
class StreamStalls:
    """Holds how long one stream of a rank was idle between its operations, by cause, in ns."""

    device: int
    stream: int
    num_operations: int
    busy_ns: int
    host_wait_ns: int
    kernel_wait_ns: int
    other_ns: int

    @property
    def idle_ns(self) -> int:
        """How long it was idle in all."""
        return self.host_wait_ns + self.kernel_wait_ns + self.other_ns


def stream_stalls(rank: GpuRank, pairs: Launches) -> list[StreamStalls]:
    """Returns a rank's streams, each with its idle time by cause, the busiest first."""
    operations = rank.operations
    called = np.full(len(operations), np.iinfo(np.int64).min)
    called[pairs.operation] = rank.calls.start_ns[pairs.call]
    found = []
    streams = sorted({*zip(operations.device.tolist(), operations.stream.tolist(), strict=True)})
    for device, stream in streams:
        rows = np.flatnonzero((operations.device == device) & (operations.stream == stream))
        ended, began = operations.end_ns[rows[:-1]], operations.start_ns[rows[1:]]
        gap = began - ended
        is_host = called[rows[1:]] > ended
        is_kernel = ~is_host & (gap < KERNEL_WAIT_NS)
        stalls = StreamStalls(
            device,
            stream,
            len(rows),
            int(operations.duration_ns[rows].sum()),
            int(gap[is_host].sum()),
            int(gap[is_kernel].sum()),
            int(gap[~is_host & ~is_kernel].sum()),
        )
        found.append(stalls)
    return sorted(found, key=lambda each: -each.busy_ns)
