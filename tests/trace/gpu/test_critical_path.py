"""The critical path is that of HolisticTraceAnalysis, and of a run whose path is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from serried.limits import Limit
from serried.trace.formats.gpu.columns import GrowingActivity
from serried.trace.formats.gpu.torch_profiler import rank_of
from serried.trace.gpu import critical_path as module
from serried.trace.gpu.activity import CallKind, GpuRank, OperationKind, SyncKind
from serried.trace.gpu.critical_path import GpuPath, PathPart, critical_path
from tests.trace.gpu.made import US
from tests.trace.gpu.samples import GOLDEN, sample

RANGES = {
    "alexnet.json.gz": ("measure|forward", 1),
    "simple_add.json.gz": ("measure|forward", 1),
}
"""Ranges of profiles that mark no steps, and which of those of the name."""


def window(rank: GpuRank, words: str, place: int) -> tuple[int, int]:
    names = [at for at, name in enumerate(rank.names) if words in name]
    calls = rank.calls.of_kind(CallKind.RANGE)
    found = calls.where(np.isin(calls.name, names))
    return int(found.start_ns[place]), int(found.end_ns[place])


@pytest.mark.parametrize("name", GOLDEN["paths"])
def test_it_is_that_of_holistic_trace_analysis(name: str) -> None:
    (rank,) = sample(name).ranks
    path = critical_path(rank, window(rank, *RANGES[name]) if name in RANGES else None)
    assert path is not None
    mine = {
        "cpu_bound": (PathPart.HOST,),
        "gpu_compute_bound": (PathPart.COMPUTATION, PathPart.MEMORY),
        "gpu_communication_bound": (PathPart.COMMUNICATION,),
        "gpu_kernel_kernel_overhead": (PathPart.GAP,),
        "gpu_kernel_launch_overhead": (PathPart.LAUNCH,),
    }
    told = GOLDEN["paths"][name]
    for theirs, parts in mine.items():
        ours = sum(path.by_part.get(part, 0) for part in parts) / US
        assert ours == pytest.approx(told.get(theirs, 0), abs=0.01), theirs
    assert path.length_ns / US == pytest.approx(sum(told.values()), abs=0.01)


def two_streams(*, waits: bool) -> GpuPath:
    """Returns the path of a kernel, another on a second stream, and a host that waits for both.

    launch 1   0-5   kernel 1   10-60    on stream 7, its event recorded at 6
    launch 2  20-25  kernel 2   70-90    on stream 8, which waits for that event
    wait      30-95
    """
    columns = GrowingActivity("made")
    for at, name, start, end, number in (
        (0, "cudaLaunchKernel", 0, 5, 1),
        (0, "cudaEventRecord", 6, 7, 2),
        (0, "cudaStreamWaitEvent", 8, 9, 3),
        (0, "cudaLaunchKernel", 20, 25, 4),
        (0, "cudaDeviceSynchronize", 30, 95, 5),
    ):
        columns.call(name, CallKind.DRIVER, start * US, end * US, at, number)
    for name, start, end, stream, number in (("one", 10, 60, 7, 1), ("two", 70, 90, 8, 4)):
        kind = OperationKind.COMPUTATION
        columns.operation(name, kind, start * US, end * US, stream=stream, correlation=number)
    if waits:
        columns.sync(
            SyncKind.STREAM_WAIT, 9 * US, 9 * US, stream=8, correlation=3, on_stream=7, recorded=2
        )
    columns.sync(
        SyncKind.CONTEXT, 30 * US, 94 * US, stream=-1, correlation=5, on_stream=-1, recorded=-1
    )
    found = critical_path(rank_of(columns, 0, Path("made")))
    assert found is not None
    return found


def test_it_leads_over_an_event_to_the_kernel_of_another_stream() -> None:
    path = two_streams(waits=True)
    # Launch 1, kernel 1, and kernel 2 behind its event; the host waits for no time of its own.
    assert {part: ns // US for part, ns in path.by_part.items()} == {
        PathPart.COMPUTATION: 70,
        PathPart.LAUNCH: 10,
    }


def test_without_the_event_it_leads_over_the_launch() -> None:
    path = two_streams(waits=False)
    assert {part: ns // US for part, ns in path.by_part.items()} == {
        PathPart.LAUNCH: 50,
        PathPart.COMPUTATION: 20,
        PathPart.HOST: 7,
    }


def test_names_on_it_are_told_the_longest_first() -> None:
    assert [name for name, ns in two_streams(waits=True).by_name if ns] == ["one", "two"]


def test_a_window_in_which_nothing_begins_has_none() -> None:
    (rank,) = sample("mi250.json.gz").ranks
    assert critical_path(rank, (0, 1)) is None


def test_of_more_than_the_memory_is_for_none_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    (rank,) = sample("alexnet.json.gz").ranks
    monkeypatch.setattr(module, "PATH_EVENTS", Limit(100, "events", "a step"))
    assert critical_path(rank) is None
