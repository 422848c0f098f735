"""All that is measured of a GpuTrace: each rank's figures, from the operations that count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serried.trace.gpu.activity import GpuRank, GpuTrace
from serried.trace.gpu.breakdown import KindShare, TimeBreakdown, kind_shares, time_breakdown
from serried.trace.gpu.by_name import NamedOperations, by_name
from serried.trace.gpu.copies import CopyBandwidth, copy_bandwidths
from serried.trace.gpu.counted import counted
from serried.trace.gpu.launches import LaunchFigures, launch_figures, launches
from serried.trace.gpu.queue import StreamQueue, stream_queues
from serried.trace.gpu.stalls import StreamStalls, stream_stalls


@dataclass(frozen=True)
class GpuRankFigures:
    """Holds what is measured of one rank."""

    rank: int
    host: str
    gpu: str
    num_operations: int
    num_left_out: int
    """Operations of the last step, which the profiler may have cut off."""
    steps: tuple[int, ...]
    """The steps that count; none where none are marked."""
    last_step: int | None
    """The step that was left out; None where all count."""
    time: TimeBreakdown
    kinds: tuple[KindShare, ...]
    names: tuple[NamedOperations, ...]
    streams: tuple[StreamStalls, ...]
    launches: LaunchFigures
    queues: tuple[StreamQueue, ...]
    copies: tuple[CopyBandwidth, ...]

    @property
    def host_wait_share(self) -> float | None:
        """The share of its busiest stream's gaps in which the host came late."""
        busiest = self.streams[0]
        return busiest.host_wait_ns / busiest.idle_ns if busiest.idle_ns > 0 else None


@dataclass(frozen=True)
class GpuAnalysis:
    """Holds what is measured of the ranks of a job."""

    ranks: tuple[GpuRankFigures, ...]

    @property
    def idlest(self) -> GpuRankFigures:
        """The rank whose GPU is idle for the largest share of its window."""
        return max(self.ranks, key=lambda each: each.time.idle_share)


def analyse_gpus(trace: GpuTrace) -> GpuAnalysis:
    """Returns what is measured of ``trace``, whose ranks each have an operation at least."""
    return GpuAnalysis(tuple(rank_figures(rank) for rank in trace.ranks))


def rank_figures(whole: GpuRank) -> GpuRankFigures:
    """Returns what is measured of one rank."""
    rank = counted(whole)
    pairs = launches(rank)
    numbers = np.unique(rank.steps.number).tolist()
    return GpuRankFigures(
        rank=rank.rank,
        host=rank.host,
        gpu=rank.gpu,
        num_operations=len(rank.operations),
        num_left_out=len(whole.operations) - len(rank.operations),
        steps=tuple(numbers[:-1] if len(numbers) > 1 else numbers),
        last_step=numbers[-1] if len(numbers) > 1 else None,
        time=time_breakdown(rank.operations),
        kinds=tuple(kind_shares(rank.operations)),
        names=tuple(by_name(rank)),
        streams=tuple(stream_stalls(rank, pairs)),
        launches=launch_figures(rank, pairs),
        queues=tuple(stream_queues(rank, pairs)),
        copies=tuple(copy_bandwidths(rank)),
    )
