"""Steps of a rank: which are whole, and which step each call and operation belongs to.

    ProfilerStep#3     ├────────────┤
    ProfilerStep#4                  ├────────────┤
    ProfilerStep#5                               ├──────…      the last: its kernels may be cut off
    launched before    └─────────── counted ─────┘

The profiler stops while the GPU still works on the last step, so what was launched in it is left
out where there is another. Without steps, or with one, all counts. Source: HolisticTraceAnalysis
0.5.0, hta/common/trace.py (``_filter_irrelevant_gpu_kernels``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from serried.trace.gpu.activity import GpuRank, Whole
from serried.trace.gpu.launches import launches

NO_STEP = -1


def counted(rank: GpuRank) -> GpuRank:
    """Returns ``rank`` with the calls made, and the operations launched, before its last step."""
    if len(np.unique(rank.steps.number)) < 2:
        return rank
    calls = rank.calls.where(rank.calls.start_ns < rank.steps.start_ns.max())
    launched = np.isin(rank.operations.correlation, calls.correlation[calls.correlation >= 0])
    # Without the calls of the steps before (a profile of GPUs alone) nothing tells them apart.
    if not launched.any():
        return rank
    return replace(rank, calls=calls, operations=rank.operations.where(launched))


def steps_counted(rank: GpuRank) -> list[int]:
    """Returns the steps of a rank that may not be cut off: all but the last of several."""
    found: list[int] = np.unique(rank.steps.number).tolist()
    return found[:-1] if len(found) > 1 else found


def steps_of_operations(rank: GpuRank) -> Whole:
    """Returns the step of each operation's launch; -1 where it is in none, or not recorded."""
    found = np.full(len(rank.operations), NO_STEP)
    pairs = launches(rank)
    found[pairs.operation] = steps_of_calls(rank)[pairs.call]
    return found


def steps_of_calls(rank: GpuRank) -> Whole:
    """Returns the step in which each call begins, of several that overlap the last; else -1."""
    found = np.full(len(rank.calls), NO_STEP)
    steps, starts = rank.steps, rank.calls.start_ns
    # Calls stand by start, so those of a step stand together.
    for number, start, end in zip(
        *(column.tolist() for column in (steps.number, steps.start_ns, steps.end_ns)), strict=True
    ):
        found[np.searchsorted(starts, start) : np.searchsorted(starts, end)] = number
    return found
