"""Planned memory beside measured memory, within what the documentation says."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from benchmarks.accuracy import memory_apart
from benchmarks.accuracy.memory import errors, measured_memory, wrongly_fitting
from benchmarks.accuracy.memory_fits import refused, told_runs
from benchmarks.accuracy.memory_rows import MeasuredMemory
from serried.plan.calibration.rows import read_folder
from serried.plan.memory.job_memory import job_memory

DATA = Path(__file__).parents[3] / "benchmarks" / "data"


@cache
def rows() -> tuple[MeasuredMemory, ...]:
    return tuple(measured_memory(DATA))


def of(table: str, group: str = "") -> list[MeasuredMemory]:
    return [row for row in rows() if row.table == table and group in ("", row.group)]


def test_eight_b200_hold_what_is_planned_within_a_thousandth() -> None:
    found = errors(of("simumax_b200"))
    assert found.rows == 22
    assert found.mean < 0.05
    assert found.most < 0.11


def test_every_run_of_llm_foundry_is_said_to_fit_as_it_did() -> None:
    ran = [row for row in read_folder(DATA).rows if row.table == "llm_foundry"]
    assert len(ran) == 129
    assert [row.name for row in ran if not job_memory(row.request).fits] == []


def test_runs_that_say_what_they_recompute_fit_but_for_two_with_offloaded_layers() -> None:
    rows = told_runs(DATA)
    assert len(rows) > 300
    found = list(refused(rows))
    assert {each.row.request.offload for each in found} == {"activations"}
    assert len({each.row.configuration for each in found}) == 2
    assert max(each.lacks for each in found) < 0.17


def test_bigscience_is_within_4_percent_and_nothing_fits_that_did_not() -> None:
    found = errors(of("bigscience_a100"))
    assert found.rows == 64
    assert found.mean < 4
    assert wrongly_fitting(of("bigscience_a100")) == 0


@pytest.mark.parametrize(
    ("what", "mean"), [("steady, last stage", 2), ("allocated, last stage", 5)]
)
def test_tests_of_megatron_are_within_their_goals(what: str, mean: int) -> None:
    found = errors(of(f"megatron, {what}"))
    assert found.rows == 286
    assert found.mean < mean


def test_what_tests_hold_between_steps_follows_from_their_settings() -> None:
    assert errors(of("megatron, steady, last stage", "dense, tp")).median < 0.5
    assert errors(of("megatron, steady, last stage", "experts, tp")).p90 < 3


@pytest.mark.parametrize(
    ("what", "mean"), [("steady, last stage", 1), ("allocated, last stage", 2)]
)
def test_dense_megatron_without_tp_is_within_its_bounds(what: str, mean: int) -> None:
    found = errors(of(f"megatron, {what}", "dense, no tp"))
    assert found.rows > 90
    assert found.mean < mean


def test_intervals_hold_about_nine_of_ten() -> None:
    for table in ("megatron, allocated, last stage", "bigscience_a100"):
        peaks = memory_apart.peaks_of(of(table))
        assert peaks
        assert 0.85 <= peaks.covered <= 0.95


def test_intervals_hold_on_rows_whose_errors_did_not_make_them() -> None:
    peaks = memory_apart.peaks_of(rows())
    assert peaks
    shares = dict(memory_apart.coverage(peaks))
    assert list(shares) == ["model", "GPU type", "table"]
    assert all(0.85 <= share <= 0.95 for share in shares.values()), shares
