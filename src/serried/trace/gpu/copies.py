"""The bandwidth of copies and fills, by the way they go.

    Memcpy HtoD   ├── 10 GB/s ──┤
                         ├── 12 GB/s ──┤
    together      10     22     12            the figures that the spread is of

Copies of one way that run at once add up, and every moment at which that sum changed counts
once. A copy of no length counts as 1 us. Source: HolisticTraceAnalysis 0.5.0,
``get_memory_bw_summary``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.trace.gpu.activity import GpuRank, OperationKind, Whole
from serried.trace.gpu.kind import copy_of
from serried.trace.gpu.spread import Spread, spread_of


@dataclass(frozen=True)
class CopyBandwidth:
    """Holds the copies of one way on one rank."""

    way: str
    """``Memcpy HtoD``, ``Memset`` …"""
    count: int
    total_ns: int
    size_bytes: int | None
    """None where the profiler does not say it."""
    gb_per_s: Spread | None


def copy_bandwidths(rank: GpuRank) -> list[CopyBandwidth]:
    """Returns the copies and fills of a rank, by the way they go."""
    operations = rank.operations.of_kind(OperationKind.MEMORY)
    ways = np.array([copy_of(name) for name in rank.names_of(operations.name)])
    found = []
    for way in sorted({*ways.tolist()}):
        some = operations.where(ways == way)
        length = np.where(some.duration_ns > 0, some.duration_ns, 1000)
        by_size = np.where(some.size_bytes >= 0, some.size_bytes / length, np.nan)
        rate = np.where(np.isnan(some.bandwidth), by_size, some.bandwidth)
        is_known = ~np.isnan(rate)
        sizes = some.size_bytes
        found.append(
            CopyBandwidth(
                way,
                len(some),
                int(some.duration_ns.sum()),
                int(sizes.sum()) if len(some) and (sizes >= 0).all() else None,
                _summed(some.start_ns[is_known], length[is_known], rate[is_known]),
            )
        )
    return found


def _summed(start: Whole, length: Whole, rate: NDArray[np.float64]) -> Spread | None:
    moments = np.concatenate((start, start + length))
    change = np.concatenate((rate, -rate))
    # A copy that begins as another ends was never beside it.
    order = np.lexsort((change, moments))
    # Sums of numbers taken away again may be off by a rounding, which is no bandwidth.
    together = change[order].cumsum()
    together = together[together > 1e-9]
    return spread_of(together) if len(together) else None
