"""Planned memory beside measured memory, within what the documentation says."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from benchmarks.memory_accuracy import MeasuredMemory, covered, errors, measured

DATA = Path(__file__).parents[3] / "benchmarks" / "data"


@cache
def rows() -> tuple[MeasuredMemory, ...]:
    return tuple(measured(DATA))


def of(table: str, group: str = "") -> list[MeasuredMemory]:
    return [row for row in rows() if row.table == table and group in ("", row.group)]


def test_eight_b200_hold_what_is_planned_within_a_thousandth() -> None:
    found = errors(of("simumax b200"))
    assert len(found.each) == 22
    assert found.mean < 0.001
    assert found.most < 0.002


def test_bigscience_is_within_4_percent_and_nothing_fits_that_did_not() -> None:
    found = errors(of("bigscience"))
    assert len(found.each) == 64
    assert found.mean < 0.04
    assert found.fitting == 0


@pytest.mark.parametrize(
    ("what", "mean"), [("steady, last stage", 0.01), ("allocated, last stage", 0.05)]
)
def test_dense_megatron_without_tp_is_within_its_bounds(what: str, mean: float) -> None:
    found = errors(of(f"megatron tests, {what}", "dense, no tp"))
    assert len(found.each) > 90
    assert found.mean < mean


def test_intervals_hold_about_nine_of_ten() -> None:
    for table in ("megatron tests, allocated, last stage", "bigscience"):
        assert 0.85 <= covered(of(table)) <= 0.95
