"""All that is measured of a GpuTrace: each rank's figures, from the operations that count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serried.mesh import Layout
from serried.trace.gpu.activity import GpuRank, GpuTrace
from serried.trace.gpu.breakdown import KindShare, TimeBreakdown, kind_shares, time_breakdown
from serried.trace.gpu.by_name import NamedOperations, by_name
from serried.trace.gpu.clocks import GpuAlignment, aligned_gpus
from serried.trace.gpu.copies import CopyBandwidth, copy_bandwidths
from serried.trace.gpu.critical_path import GpuPath, critical_path
from serried.trace.gpu.launches import LaunchFigures, launch_figures, launches
from serried.trace.gpu.meetings import meetings
from serried.trace.gpu.queue import StreamQueue, stream_queues
from serried.trace.gpu.stalls import StreamStalls, stream_stalls
from serried.trace.gpu.steps import counted
from serried.trace.gpu.traffic import group_traffic
from serried.trace.gpu.waited_for import RankWaits, rank_waits, waited_for
from serried.trace.model.group_traffic import GroupTraffic


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
    path: GpuPath | None
    """The critical path of its first step; None of a step without calls, or of millions."""

    @property
    def host_wait_share(self) -> float | None:
        """The share of its busiest stream's gaps in which the host came late."""
        busiest = self.streams[0]
        return busiest.host_wait_ns / busiest.idle_ns if busiest.idle_ns > 0 else None


@dataclass(frozen=True)
class GpuAnalysis:
    """Holds what is measured of the ranks of a job."""

    ranks: tuple[GpuRankFigures, ...]
    traffic: tuple[GroupTraffic, ...]
    waits: tuple[RankWaits, ...]
    """By what others wait for a rank; empty where fewer than two have files."""
    alignment: GpuAlignment

    @property
    def waited_for(self) -> RankWaits | None:
        """The rank that the others keep waiting for, if there is one."""
        return waited_for(self.waits, max(each.time.window_ns for each in self.ranks))

    @property
    def idlest(self) -> GpuRankFigures:
        """The rank whose GPU is idle for the largest share of its window."""
        return max(self.ranks, key=lambda each: each.time.idle_share)


def analyse_gpus(trace: GpuTrace, layout: Layout | None = None) -> GpuAnalysis:
    """Returns what is measured of ``trace``, whose ranks each have an operation at least.

    ``layout`` says what its groups are called.
    """
    on_one_clock, alignment = aligned_gpus(trace)
    met = meetings([counted(rank) for rank in on_one_clock.ranks], trace.world_size)
    numbers = [rank.rank for rank in trace.ranks]
    hosts = {rank.rank: rank.host for rank in trace.ranks}
    return GpuAnalysis(
        ranks=tuple(rank_figures(rank) for rank in trace.ranks),
        traffic=tuple(group_traffic(met, trace.world_size, layout, hosts)),
        waits=tuple(rank_waits(met, numbers)) if len(numbers) > 1 else (),
        alignment=alignment,
    )


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
        path=critical_path(rank),
    )
