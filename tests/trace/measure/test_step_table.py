"""The step table adds up to the statistics, whatever it is grouped by."""

from __future__ import annotations

import pytest

from serried.errors import InputError
from serried.trace.measure.statistics import measure
from serried.trace.measure.step_table import COLUMNS, StepTable, step_table
from tests.trace.recorded_run import Run
from tests.trace.traced_run import compute, trace_of

RUN = Run(pp=4, dp=2, num_microbatches=8, num_steps=3)


@pytest.fixture(scope="module")
def whole() -> StepTable:
    return step_table(trace_of(RUN.spans(), pp=4, dp=2).spans)


def test_there_is_a_row_for_every_step_rank_and_stage(whole: StepTable) -> None:
    assert len(whole) == 3 * 8
    assert whole.keys[:2].tolist() == [[0, 0, 0], [0, 1, 0]]
    assert tuple(whole.columns) == COLUMNS


def test_ranks_spend_what_the_statistics_say(whole: StepTable) -> None:
    stats = measure(trace_of(RUN.spans(), pp=4, dp=2, schedule="1f1b"))
    ranks = whole.grouped(["rank"])
    assert ranks.columns["idle"].tolist() == [sum(r.idle_ns.values()) for r in stats.ranks]
    for name in ("forward", "backward", "send", "optimizer"):
        assert ranks.columns[name].tolist() == [r.by_work_ns[name] for r in stats.ranks]
    waits = [r.receive_wait_ns for r in stats.ranks]
    assert ranks.columns["receive_wait"].tolist() == pytest.approx(waits)


def test_stages_and_steps_are_means_over_their_ranks(whole: StepTable) -> None:
    ranks, stages, steps = (whole.grouped([axis]) for axis in ("rank", "stage", "step"))
    assert len(stages) == 4 and len(steps) == 3
    for name in COLUMNS:
        by_stage = ranks.columns[name].reshape(4, 2).mean(axis=1)
        assert stages.columns[name].tolist() == pytest.approx(by_stage.tolist())
        assert steps.columns[name][0] == pytest.approx(ranks.columns[name].mean())


def test_idle_time_of_a_rank_of_two_stages_goes_to_the_one_it_computes_next() -> None:
    spans = [compute(0, "0F0", 0, 10), compute(0, "1F0", 14, 20), compute(1, "0F1", 0, 30)]
    table = step_table(trace_of(spans, pp=1, dp=2).spans).grouped(["rank", "stage"])
    rows = zip(table.keys.tolist(), table.columns["idle"].tolist(), strict=True)
    assert list(rows) == [([0, 0], 0), ([0, 1], 4 + 10), ([1, 0], 0)]


def test_computations_that_intersect_leave_no_negative_gap() -> None:
    spans = [compute(0, "0F0", 0, 30), compute(0, "0F1", 5, 10), compute(0, "0F2", 40, 50)]
    assert step_table(trace_of(spans, pp=1).spans).columns["idle"].tolist() == [10]


def test_an_axis_that_is_none_is_named(whole: StepTable) -> None:
    with pytest.raises(InputError, match=r"--by node cannot be; rows are grouped by step, rank"):
        whole.grouped(["rank", "node"])


def test_what_a_forward_waited_inside_it_is_idle_and_no_forward() -> None:
    spans = [
        *(compute(0, "0F0", 0, 30), compute(0, "0ALL_GATHER0", 5, 15)),
        *(compute(0, "0B0", 30, 50), compute(1, "0F0", 0, 50)),
    ]
    table = step_table(trace_of(spans, pp=1, dp=2).spans).grouped(["rank"])
    assert table.columns["forward"].tolist() == [20, 50]
    assert table.columns["idle"].tolist() == [10, 0]
    assert table.columns["exchange"].tolist() == [10, 0]
