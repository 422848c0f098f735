"""Planned steps beside measured ones: the shipped constants on the tables that stand in the repo.

Bounds are those that docs/accuracy.md prints, with a margin for what other constants may bring.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.accuracy import fitting, held_apart, llm_analysis, published
from benchmarks.accuracy.baselines import predicted
from benchmarks.accuracy.table import Errors, regrets
from serried.plan.calibration.rows import read_folder
from serried.plan.time.constants import shipped
from serried.plan.time.interval import intervals
from serried.plan.time.jobs import Jobs
from serried.plan.time.step import step_times

ROWS = list(read_folder(published.DATA).rows)
JOBS = Jobs.of(row.request for row in ROWS)
MEASURED = np.array([row.step_s for row in ROWS])
PREDICTED = step_times(JOBS).step
TABLES = np.array([row.table for row in ROWS])
IS_LORA = np.array([row.task == "lora" for row in ROWS])


def of(chosen: np.ndarray) -> Errors:
    return Errors.of(PREDICTED[chosen], MEASURED[chosen])


def test_all_steps_are_near_and_nearer_than_by_simple_ways() -> None:
    errors = of(~IS_LORA)
    assert errors.rows == 580
    assert errors.mean < 5.5
    assert errors.p90 < 12.5
    assert abs(errors.bias) < 2
    best = Errors.of(predicted("  and recompute, bubble", ROWS), MEASURED)
    assert errors.mean < best.mean / 2


@pytest.mark.parametrize(
    ("table", "most"),
    [
        ("dgxc_baselines", 4.0),
        ("megatron_bridge", 8.0),
        ("mlperf_pretrain", 9.0),
        ("bigscience_a100", 6.0),
        ("llm_foundry", 12.0),
        ("mlperf_lora", 10.0),
    ],
)
def test_each_table_is_within_its_goal(table: str, most: float) -> None:
    assert of(np.equal(TABLES, table)).mean <= most


@pytest.mark.parametrize(
    ("table", "most"),
    [
        (published.korthikanti, 3.5),
        (published.sc21, 8.0),
        (published.simumax, 5.62),
        (published.mtnlg, 3.0),
    ],
    ids=["korthikanti", "sc21", "simumax", "mtnlg"],
)
def test_papers_steps_are_within_their_goals(
    table: Callable[[], list[published.Published]], most: float
) -> None:
    told = table()
    steps = np.array([each.step_s for each in told])
    assert Errors.of(published.predicted(told), steps).mean <= most


def test_intervals_hold_about_as_often_as_they_say() -> None:
    low, high = intervals(JOBS, PREDICTED)
    inside = (low <= MEASURED) & (high >= MEASURED)
    assert 0.85 <= inside.mean() <= 0.95


def test_intervals_hold_on_rows_that_neither_constants_nor_widths_saw() -> None:
    shown = fitting.examples(ROWS, shipped())
    found = held_apart.held_apart(shown, shipped())
    shares = dict(held_apart.coverage(shown, found))
    assert list(shares) == ["configuration", "model", "GPU type", "table"]
    assert all(0.845 <= share <= 0.95 for share in shares.values()), shares
    made = held_apart.widths(shown, found)
    for kind, widths in shipped().residuals.items():
        assert widths == pytest.approx(made[kind], abs=0.01)


def test_choosing_by_the_plan_loses_little() -> None:
    lost = [each for _, _, each in regrets(ROWS, PREDICTED)]
    assert len(lost) > 20
    assert np.mean(lost) <= 2.0


def test_without_llm_analysis_its_column_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm_analysis, "find_spec", lambda name: None)
    assert llm_analysis.peer_steps(ROWS) is None
    assert "pip install" in llm_analysis.MISSING


def test_llm_analysis_is_asked_for_dense_rows_that_it_can_express() -> None:
    asked = [row for row in ROWS if llm_analysis.is_expressed(row)]
    assert len(asked) == 413
    assert all(row.request.model.experts is None and row.request.degrees.cp == 1 for row in asked)


def test_plans_are_nearer_than_llm_analysis_on_the_same_rows() -> None:
    peer = llm_analysis.peer_steps(ROWS)
    if peer is None:
        pytest.skip(llm_analysis.MISSING)
    theirs = Errors.of(peer.steps, MEASURED[peer.rows])
    assert Errors.of(PREDICTED[peer.rows], MEASURED[peer.rows]).mean < theirs.mean / 2
