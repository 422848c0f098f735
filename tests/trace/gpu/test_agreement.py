"""Figures of public profiles are those of HolisticTraceAnalysis 0.5.0."""

from __future__ import annotations

from typing import Any

import pytest

from serried.trace.gpu.activity import OperationKind
from serried.trace.gpu.analysis import GpuRankFigures, analyse_gpus
from serried.trace.gpu.spread import Spread
from tests.trace.gpu.samples import MEASURED, sample

NVIDIA = [name for name in MEASURED if name != "mi250.json.gz"]
US = 1000
CLOCK_US = 0.3
"""What a float keeps of 1.7e15 us; HolisticTraceAnalysis adds up such floats."""


@pytest.fixture(params=MEASURED)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def theirs(name: str) -> dict[str, Any]:
    return MEASURED[name]


@pytest.fixture
def ours(name: str) -> GpuRankFigures:
    return figures(name)


def figures(name: str) -> GpuRankFigures:
    (found,) = analyse_gpus(sample(name)).ranks
    return found


def test_temporal_breakdown(ours: GpuRankFigures, theirs: dict[str, Any]) -> None:
    told, time = theirs["temporal"], ours.time
    for key, ns in (
        ("kernel_time(us)", time.window_ns),
        ("idle_time(us)", time.idle_ns),
        ("compute_time(us)", time.computing_ns),
        ("non_compute_time(us)", time.not_computing_ns),
    ):
        assert ns / US == pytest.approx(told[key], abs=CLOCK_US)


def test_communication_and_its_overlap(ours: GpuRankFigures, theirs: dict[str, Any]) -> None:
    told = theirs["overlap"]["comp_comm_overlap_pctg"]
    assert (ours.time.overlap is None) == (told is None)
    if told is not None:
        assert 100 * (ours.time.overlap or 0) == pytest.approx(told, abs=0.005)


def test_kernels_by_kind(ours: GpuRankFigures, theirs: dict[str, Any]) -> None:
    mine = {frozenset(kind.name for kind in each.kinds): each.length_ns for each in ours.kinds}
    told = {frozenset(row["kernel_type"].split(" overlapping ")): row for row in theirs["kinds"]}
    assert mine.keys() == told.keys()
    for kinds, row in told.items():
        # Every piece of it is cut to whole microseconds there.
        pieces = ours.num_operations if "mi250" in ours.gpu or ours.gpu.startswith("AMD") else 0
        assert row["sum"] <= mine[kinds] / US + CLOCK_US
        assert mine[kinds] / US <= row["sum"] + CLOCK_US + pieces


def test_kernels_by_name(ours: GpuRankFigures, theirs: dict[str, Any]) -> None:
    mine = {each.name: each for each in ours.names}
    for row in theirs["kernels"]:
        kernel = mine[row["name"]]
        assert kernel.kind is OperationKind[row["kernel_type"]]
        assert kernel.total_ns / US == pytest.approx(row["sum (us)"])
        assert kernel.most_ns / US == pytest.approx(row["max (us)"])
        assert kernel.least_ns / US == pytest.approx(row["min (us)"])
        assert kernel.mean_ns / US == pytest.approx(row["mean (us)"])
        assert kernel.deviation_ns / US == pytest.approx(row["stddev"])


def test_idle_time_by_host_wait_kernel_wait_and_other(
    ours: GpuRankFigures, theirs: dict[str, Any]
) -> None:
    mine = {
        (each.stream, cause): ns / US
        for each in ours.streams
        for cause, ns in (
            ("host_wait", each.host_wait_ns),
            ("kernel_wait", each.kernel_wait_ns),
            ("other", each.other_ns),
        )
    }
    told = {(row["stream"], row["idle_category"]): row["idle_time"] for row in theirs["idle"]}
    assert told
    for key in mine:
        assert mine[key] == pytest.approx(told.get(key, 0), abs=CLOCK_US * ours.num_operations)


@pytest.mark.parametrize("name", NVIDIA)
def test_launches(name: str) -> None:
    # It knows CUDA's calls by name and none of HIP's, so it finds no launch on AMD's GPU.
    told, mine = MEASURED[name]["launches"], figures(name).launches
    assert mine.count == told["count"]
    assert mine.calls_ns / US == pytest.approx(told["calls_us"])
    assert mine.run_ns / US == pytest.approx(told["run_us"])
    assert mine.delays_ns / US == pytest.approx(told["delays_us"])
    assert mine.num_short == told["num_short"]
    assert mine.num_long_calls == told["num_long_calls"]
    assert mine.num_long_delays == told["num_long_delays"]


def test_launches_through_hip_are_found() -> None:
    assert figures("mi250.json.gz").launches.count == 16


def test_queues(ours: GpuRankFigures, theirs: dict[str, Any]) -> None:
    mine = {each.stream: each.length for each in ours.queues}
    assert mine.keys() == {row["stream"] for row in theirs["queues"]}
    for row in theirs["queues"]:
        length = mine[row["stream"]]
        # Of a launch and a begin in one microsecond either may come first there.
        assert length.mean == pytest.approx(row["queue_length_mean"], rel=0.02)
        assert (length.count, length.most) == (row["queue_length_count"], row["queue_length_max"])


@pytest.mark.parametrize("name", NVIDIA)
def test_bandwidth_of_copies(name: str) -> None:
    mine = {each.way: each.gb_per_s for each in figures(name).copies}
    told = MEASURED[name]["copies"]
    assert mine.keys() == {row["name"] for row in told}
    for row in told:
        _assert_alike(mine[row["name"]], row)


def _assert_alike(mine: Spread | None, row: dict[str, Any]) -> None:
    assert mine is not None
    for key, value in (
        ("count", mine.count),
        ("mean", mine.mean),
        ("min", mine.least),
        ("25%", mine.quarter),
        ("50%", mine.median),
        ("75%", mine.three_quarters),
        ("max", mine.most),
    ):
        assert value == pytest.approx(row[f"memory_bw_gbps_{key}"])


def test_the_step_that_may_be_cut_off_is_left_out() -> None:
    rank = figures("sampled_rank-0.json.gz")
    assert (rank.steps, rank.last_step) == ((551,), 552)
    assert rank.num_operations + rank.num_left_out == 1204
