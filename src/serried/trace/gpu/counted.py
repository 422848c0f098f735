"""The operations of a rank that figures are made of: those of whole steps.

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

from serried.trace.gpu.activity import GpuRank


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
