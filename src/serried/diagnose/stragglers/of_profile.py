"""The straggler of profiles of GPUs: the rank that comes last to the collectives others spin in."""

from __future__ import annotations

from collections.abc import Iterator

from serried.diagnose.diagnosis import Cause, CauseClass
from serried.finding import said
from serried.trace.gpu.activity import GpuTrace
from serried.trace.gpu.analysis import analyse_gpus
from serried.units import duration_text


def profile_causes(trace: GpuTrace) -> Iterator[Cause]:
    """Yields the rank that others keep waiting for, as ``serried trace stats`` names it."""
    found = analyse_gpus(trace)
    slow = found.waited_for
    if slow is None:
        return
    mine = next(each for each in found.ranks if each.rank == slow.rank)
    window = max(each.time.window_ns for each in found.ranks)
    cost = slow.waited_for_ns / window
    yield Cause(
        CauseClass.STRAGGLER,
        "slow_gpu",
        (slow.rank,),
        said(
            "rank {rank} ({gpu} on {host}) holds the others up: they wait {cost:.1%} of the time "
            "for it in collectives",
            rank=slow.rank,
            gpu=mine.gpu,
            host=mine.host,
            cost=cost,
        ),
        confidence=0.75,
        chain=(
            said(
                "it came last to {count} of {total} collectives; the others waited {time} there",
                count=slow.was_last,
                total=slow.meetings,
                time=duration_text(slow.waited_for_ns),
            ),
        ),
        cures=(
            said(
                "compare its kernels with a neighbour's (serried trace stats): longer kernels are "
                "its GPU, longer gaps its CPU or its data"
            ),
        ),
        cost=cost,
    )
