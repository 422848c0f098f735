"""Ranks whose kernels a test writes down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from serried.trace.formats.gpu.columns import GrowingActivity
from serried.trace.formats.gpu.torch_profiler import rank_of
from serried.trace.gpu.activity import CallKind, CollectiveCall, GpuRank
from serried.trace.gpu.kind import kind_of

US = 1000
MEGA = 1_000_000


def asked(
    collective: str,
    ranks: Sequence[int],
    elements: int = MEGA,
    *,
    group: str = "0",
    purpose: str = "",
) -> CollectiveCall:
    """Returns what a kernel of a collective was asked, of so many floats."""
    return CollectiveCall(
        collective, elements, elements, "Float", group, purpose, tuple(ranks), len(ranks)
    )


@dataclass(frozen=True)
class Kernel:
    """Says one kernel; times are microseconds."""

    start: float
    end: float
    name: str = "gemm"
    stream: int = 7
    call: CollectiveCall | None = None
    launched: float | None = None


def all_reduce(start: float, end: float, call: CollectiveCall) -> Kernel:
    return Kernel(start, end, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", 20, call)


def rank_with(
    number: int, kernels: Sequence[Kernel], *, host: str = "", world_size: int | None = None
) -> GpuRank:
    """Returns a rank that ran ``kernels``."""
    columns = GrowingActivity("made")
    for at, each in enumerate(kernels):
        columns.operation(
            each.name,
            kind_of(each.name),
            round(each.start * US),
            round(each.end * US),
            stream=each.stream,
            correlation=at,
            exchange=each.call,
        )
        if each.launched is not None:
            start = round(each.launched * US)
            columns.call("cudaLaunchKernel", CallKind.DRIVER, start, start + 5 * US, "main", at)
    return rank_of(columns, number, Path("made"), host=host, world_size=world_size)
