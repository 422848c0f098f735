"""What was found of the clocks of several hosts: notes beside a diagnosis of their recordings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from serried.diagnose.steps.recording import Recording
from serried.finding import Sentence, said
from serried.trace.gpu.activity import GpuTrace
from serried.trace.gpu.clocks import aligned_gpus
from serried.trace.model.trace import Trace
from serried.units import duration_text

_WALL = "wall"


def clock_notes(recordings: Iterable[Recording]) -> Iterator[Sentence]:
    """Yields how the clocks of each recording's hosts were put onto one, where it has several."""
    for recording in recordings:
        if isinstance(recording, Trace):
            yield from _of_trace(recording)
        elif isinstance(recording, GpuTrace):
            yield from _of_profiles(recording)


def _of_trace(trace: Trace) -> Iterator[Sentence]:
    if len(trace.clocks) < 2:
        return
    tied = [each for each in trace.clocks if each.source != _WALL]
    if len(tied) < len(trace.clocks):
        yield _untied(len(trace.clocks))
        return
    within = [each.uncertainty_ns or 0.0 for each in tied]
    yield _aligned([each.offset_ns for each in tied], max(within))


def _of_profiles(trace: GpuTrace) -> Iterator[Sentence]:
    hosts = {rank.host for rank in trace.ranks if rank.host}
    if len(hosts) < 2:
        return
    _, found = aligned_gpus(trace)
    if not hosts <= {each.host for each in found.clocks}:
        yield _untied(len(hosts))
        return
    within = max(each.within_ns or 0 for each in found.clocks)
    yield _aligned([each.moved_ns for each in found.clocks], within)


def _untied(hosts: int) -> Sentence:
    return said(
        "nothing that was recorded ties the clocks of {hosts} hosts to one another, which may be "
        "off by any time: ranks were compared by times of their own clocks alone",
        hosts=hosts,
    )


def _aligned(offsets_ns: Sequence[float], within_ns: float) -> Sentence:
    """Says how far the clocks were apart, which were moved onto one by ``offsets_ns``."""
    return said(
        "the clocks of {hosts} hosts were up to {moved} apart and were put onto one, to {within}",
        hosts=len(offsets_ns),
        moved=duration_text(max(offsets_ns) - min(offsets_ns)),
        within=duration_text(within_ns),
    )
