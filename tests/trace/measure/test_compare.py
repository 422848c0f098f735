"""Two traces compared: every action matched, every nanosecond of the difference accounted for."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from serried.action import ActionKind, Spans
from serried.errors import InputError
from serried.pipeline import Request, generate
from serried.trace.formats.reading import read_trace
from serried.trace.measure.compare import compare_traces, planned_trace
from serried.trace.merge.in_memory import merge
from serried.trace.model.trace import Trace
from tests.trace.recorded_run import Run

GOLDENS = Path(__file__).parents[2] / "goldens" / "traces"
RUN = Run(pp=4, dp=2, num_microbatches=8, num_steps=3)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return merge([RUN.write(tmp_path_factory.mktemp("run"))])


def test_a_run_compared_with_itself_differs_in_nothing(trace: Trace) -> None:
    same = compare_traces(trace, trace)
    assert (same.matched, same.only_first, same.only_second) == (8 * 16, 0, 0)
    assert same.more_ns == 0
    assert set(same.account.values()) == {0.0}
    assert (same.changes[0].more_ns, same.orders) == (0, ())


def test_a_longer_last_backward_is_found_and_accounted_for(trace: Trace) -> None:
    spans = trace.spans
    is_last = (spans.kind == ActionKind.B) & (spans.microbatch == 7) & (spans.rank == 0)
    longer = dataclasses.replace(spans, end_ns=spans.end_ns + 500_000 * is_last)
    found = compare_traces(dataclasses.replace(trace, spans=longer), trace)
    assert found.more_ns == 500_000
    assert found.changes[0].rank == 0
    assert found.changes[0].action == "0B7"
    assert found.changes[0].more_ns == 500_000
    # One rank in eight computes longer; the others are done sooner than the window ends.
    assert found.account["backward"] == pytest.approx(500_000 / 8)
    assert found.account["cool_down"] == pytest.approx(500_000 * 7 / 8)
    assert sum(found.account.values()) == pytest.approx(found.more_ns)


def test_another_order_is_named_where_it_begins(trace: Trace) -> None:
    spans = trace.spans
    forwards = (spans.kind == ActionKind.F) & (spans.rank == 2) & (spans.step == 0)
    second, third = (np.flatnonzero(forwards & (spans.microbatch == m)).item() for m in (1, 2))
    start, end = spans.start_ns.copy(), spans.end_ns.copy()
    for column in (start, end):
        column[[second, third]] = column[[third, second]]
    swapped = spans.where(np.lexsort((start, spans.rank)))
    swapped = Spans(
        **{
            **swapped.columns(),
            "start_ns": start[np.lexsort((start, spans.rank))],
            "end_ns": end[np.lexsort((start, spans.rank))],
        }
    )
    (order,) = compare_traces(dataclasses.replace(trace, spans=swapped), trace).orders
    assert dataclasses.astuple(order) == (2, 1, "1F2", "1F1")


def test_a_run_that_keeps_to_its_plan_differs_in_nothing(trace: Trace) -> None:
    found = compare_traces(trace, planned_trace(trace))
    assert found.matched == 8 * 16
    assert found.more_ns == pytest.approx(0, abs=1)
    assert found.orders == ()


def test_a_real_runs_order_is_its_schedules() -> None:
    run = read_trace([GOLDENS / "megatronapp"])
    found = compare_traces(run, planned_trace(run, generate("interleaved-1f1b", Request(4, 8, 4))))
    assert (found.matched, found.only_first, found.only_second) == (256, 0, 0)
    assert found.orders == ()
    assert found.more_ns > 0
    assert sum(found.account.values()) == pytest.approx(found.more_ns)


def test_a_job_in_pieces_is_planned_whole_and_in_its_own_place() -> None:
    run = read_trace([GOLDENS / "paddle" / "chunk"])
    found = compare_traces(run, planned_trace(run))
    assert (found.matched, found.only_first, found.only_second) == (16, 0, 0)
    assert found.orders == ()
    assert set(found.account.values()) == {0.0}
    backwards = [each for each in found.changes if each.action == "0B0"]
    assert [(each.first_ns, each.second_ns) for each in backwards] == [(20e6, 20e6)]


@pytest.mark.parametrize("seed", range(3))
def test_a_table_in_any_order_of_rows_keeps_to_its_plans_order(tmp_path: Path, seed: int) -> None:
    pyarrow, parquet = (pytest.importorskip(f"pyarrow{each}") for each in ("", ".parquet"))
    table = parquet.read_table(GOLDENS / "straggler_analysis" / "trace-ST.parquet")
    rows = np.random.default_rng(seed).permutation(table.num_rows)
    parquet.write_table(table.take(pyarrow.array(rows)), tmp_path / "job.parquet")
    run = read_trace([tmp_path / "job.parquet"])
    found = compare_traces(run, planned_trace(run))
    assert (found.matched, found.orders) == (64, ())


def test_another_schedules_order_is_not_the_runs() -> None:
    run = read_trace([GOLDENS / "megatronapp"])
    found = compare_traces(run, planned_trace(run, generate("looped-bfs", Request(4, 8, 4))))
    assert [order.rank for order in found.orders] == [0, 1, 2, 3]
    assert found.orders[0].place == 4


def test_runs_of_two_sizes_are_refused(trace: Trace, tmp_path: Path) -> None:
    other = merge([Run(pp=2, num_microbatches=8).write(tmp_path)])
    with pytest.raises(InputError, match="has 8 ranks and run-a has 2"):
        compare_traces(trace, other)


def test_a_run_without_a_complete_step_is_refused(trace: Trace) -> None:
    torn = dataclasses.replace(trace, spans=trace.spans.where(trace.spans.rank > 0))
    with pytest.raises(InputError, match="no step of run-a was finished"):
        compare_traces(torn, trace)


def test_a_schedule_of_other_stages_is_refused() -> None:
    run = read_trace([GOLDENS / "megatronapp"])
    with pytest.raises(InputError, match="the run has 16 stages and 1f1b has 4"):
        planned_trace(run, generate("1f1b", Request(4, 8)))


def test_the_plan_of_a_run_that_names_no_schedule_is_the_one_its_order_has() -> None:
    run = read_trace([GOLDENS / "megatronapp"])
    named = generate("interleaved-1f1b", Request(4, 8, 4))
    found, asked = planned_trace(run), planned_trace(run, named)
    assert found.job.schedule == "interleaved-1f1b"
    assert (found.spans.start_ns == asked.spans.start_ns).all()


def test_an_order_that_no_schedule_has_is_refused_with_the_nearest() -> None:
    run = read_trace([GOLDENS / "paddle" / "vpp"])
    with pytest.raises(InputError, match="its order is none that is known, nearest to interl"):
        planned_trace(run)


def test_a_run_without_a_whole_step_has_no_order_to_know_its_schedule_by(trace: Trace) -> None:
    job = dataclasses.replace(trace.job, schedule="unknown")
    spans = trace.spans.where(trace.spans.rank > 0)
    with pytest.raises(InputError, match="does not say which schedule ran; name it by --name"):
        planned_trace(dataclasses.replace(trace, job=job, spans=spans))


def test_runs_whose_ranks_do_nothing_alike_are_refused_with_both_layouts(tmp_path: Path) -> None:
    deep = merge([Run(pp=4, num_microbatches=2, num_steps=1).write(tmp_path / "deep")])
    spans = dataclasses.replace(deep.spans, stage=deep.spans.stage + 4)
    with pytest.raises(InputError, match=r"no rank of run-a \(pp 4\) does what it does in run-a"):
        compare_traces(deep, dataclasses.replace(deep, spans=spans))


def test_runs_of_different_length_are_compared_by_their_mean_steps(tmp_path: Path) -> None:
    short, long = (
        merge([Run(pp=2, num_microbatches=4, num_steps=steps).write(tmp_path / str(steps))])
        for steps in (1, 3)
    )
    found = compare_traces(short, long)
    assert (found.matched, found.only_first, found.only_second) == (2 * 8, 0, 0)
    assert found.more_ns == 0
