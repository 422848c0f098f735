"""A recorded step stands beside a plan with its own times, its inputs known, nothing simulated."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from serried.action import ActionKind
from serried.errors import InputError
from serried.pipeline import bubble, idle
from serried.pipeline.in_flight import peaks
from serried.trace.measure.measured_step import measured_step
from serried.trace.model.trace import Trace
from tests.trace.simulated_run import BACKWARD, FORWARD, simulated_run

EXTRA = 500_000


def slow(pipeline: int, step: int, stage: int, microbatch: int) -> int:
    """The second stage takes longer over one forward of step 1."""
    return FORWARD + EXTRA * ((step, stage, microbatch) == (1, 1, 2))


@pytest.fixture(scope="module")
def trace() -> Trace:
    return simulated_run(forward=slow)


def test_a_step_as_planned_is_measured_as_the_plan(trace: Trace) -> None:
    simulation = measured_step(trace, 0).simulation
    assert simulation.schedule.texts(3)[:4] == ["3F0", "3B0", "3F1", "3B1"]
    assert simulation.makespan == Fraction((8 + 3) * (FORWARD + BACKWARD), 1_000_000)
    assert bubble(simulation).of_makespan == Fraction(3, 11)
    assert peaks(simulation.schedule).to_weight.tolist() == [4, 3, 2, 1]


def test_times_are_those_recorded_from_the_step_s_first_computation_on(trace: Trace) -> None:
    found = measured_step(trace, 1, pipeline=1)
    assert found.ranks.tolist() == [1, 3, 5, 7]
    simulation, spans = found.simulation, trace.spans
    mine = spans.where((spans.step == 1) & (spans.rank == 3))
    rows = slice(*simulation.schedule.first[1:3].tolist())
    begin = spans.start_ns[spans.step == 1].min()
    np.testing.assert_array_equal(simulation.start[rows], mine.start_ns - begin)
    np.testing.assert_array_equal(simulation.end[rows], mine.end_ns - begin)
    later = int(simulation.work[1] - simulation.work[0])
    assert later == EXTRA


def test_idle_time_and_work_fill_the_step(trace: Trace) -> None:
    simulation = measured_step(trace, 1).simulation
    total = idle(simulation).total() * 1_000_000
    assert total + simulation.work.sum() == 4 * simulation.rank_end.max()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("no rank", "some rank of the pipeline 0, 2, 4, 6 computed nothing in it"),
        ("beside", "rank 0 ran computations of step 0 beside one another"),
        ("two ranks", "stage 1 ran on two ranks of one pipeline in step 0"),
        ("no stage", "stage 1 computed nothing in step 0"),
    ],
)
def test_what_has_no_picture_is_refused(trace: Trace, change: str, sentence: str) -> None:
    spans = trace.spans
    if change == "no rank":
        spans = spans.where(spans.rank != 2)
    elif change == "beside":
        early = (spans.rank == 0) & (spans.kind == ActionKind.F) & (spans.microbatch == 1)
        spans = dataclasses.replace(spans, start_ns=spans.start_ns - early * np.int64(1000))
    elif change == "two ranks":
        stage = np.where(spans.rank == 4, 1, spans.stage).astype(np.int32)
        spans = dataclasses.replace(spans, stage=stage)
    else:
        stage = np.where(spans.rank == 2, 4, spans.stage).astype(np.int32)
        spans = dataclasses.replace(spans, stage=stage)
    with pytest.raises(InputError, match=sentence):
        measured_step(dataclasses.replace(trace, spans=spans), 0)
