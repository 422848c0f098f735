"""Launches: each operation beside the call that asked for it, and what holds the two apart.

    host      ├ cudaLaunchKernel ┤
              │    call          │   delay   │
    stream                       └───────────├── kernel ──┤
                                             │    runs    │

A kernel is *short* where it runs for less time than its launch takes: the host cannot keep the
GPU busy with such. A delay is the time in the queue. The launch of a CUDA graph begins many
operations by one call, so it is no launch of each: such tell when the host asked, and are left
out of figures and queues. Source of the definitions and thresholds: HolisticTraceAnalysis 0.5.0,
``get_cuda_kernel_launch_stats``, which knows four of CUDA's calls by name; here every call of a
driver that has one operation counts, so HIP's and ``cuLaunchKernel`` do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from serried.trace.gpu.activity import CallKind, GpuRank, Whole

LONG_CALL_NS = 50_000
"""A call of the driver that takes longer stands out."""
LONG_DELAY_NS = 100_000
"""An operation that begins later after its call stands out."""


@dataclass(frozen=True, eq=False)
class Launches:
    """Holds pairs of a call and an operation, as places in the rank's columns."""

    call: Whole
    operation: Whole

    is_graph: NDArray[np.bool_]

    def single(self) -> Self:
        """Returns those whose call launched one operation alone, and no graph."""
        times = np.bincount(self.call) if len(self.call) else self.call
        is_single = (times[self.call] == 1) & ~self.is_graph
        call, operation = self.call[is_single], self.operation[is_single]
        return replace(self, call=call, operation=operation, is_graph=self.is_graph[is_single])


@dataclass(frozen=True)
class LaunchFigures:
    """Holds what a rank's launches tell; times are ns."""

    count: int
    calls_ns: int
    run_ns: int
    delays_ns: int
    num_short: int
    num_long_calls: int
    num_long_delays: int


def launches(rank: GpuRank) -> Launches:
    """Returns each operation's launch; operations whose call was not recorded have none.

    Of several calls with one number, that of the driver counts, the first one.
    """
    calls, operations = rank.calls, rank.operations
    launching = np.flatnonzero((calls.kind == CallKind.DRIVER) & (calls.correlation >= 0))
    numbers, first = np.unique(calls.correlation[launching], return_index=True)
    if not len(numbers):
        none = np.zeros(0, np.int64)
        return Launches(none, none, np.zeros(0, bool))
    place = np.minimum(np.searchsorted(numbers, operations.correlation), len(numbers) - 1)
    found = np.flatnonzero(numbers[place] == operations.correlation)
    call = launching[first[place[found]]]
    graphs = [at for at, name in enumerate(rank.names) if "GraphLaunch" in name]
    return Launches(call, found, np.isin(calls.name[call], graphs))


def launch_figures(rank: GpuRank, pairs: Launches) -> LaunchFigures:
    """Returns what the launches of single operations tell together."""
    pairs = pairs.single()
    calls, operations = rank.calls, rank.operations
    call = calls.duration_ns[pairs.call]
    run = operations.duration_ns[pairs.operation]
    delay = np.maximum(operations.start_ns[pairs.operation] - calls.end_ns[pairs.call], 0)
    return LaunchFigures(
        len(call),
        int(call.sum()),
        int(run.sum()),
        int(delay.sum()),
        int(((call <= LONG_CALL_NS) & (run < call)).sum()),
        int((call > LONG_CALL_NS).sum()),
        int((delay > LONG_DELAY_NS).sum()),
    )
