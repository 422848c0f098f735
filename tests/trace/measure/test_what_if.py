"""What-if answers: the published figures of a production job, and runs whose slow rank is known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.action import ActionKind, Spans
from serried.errors import InputError
from serried.trace.formats.reading import read_trace
from serried.trace.formats.straggler.table import read_straggler_table, replay_of
from serried.trace.measure.replay_spans import replay_of_trace
from serried.trace.measure.statistics import measure
from serried.trace.measure.what_if import what_if
from serried.trace.merge.in_memory import merge
from serried.trace.model.replay import Replay, SyncGroup
from serried.trace.model.trace import Trace
from tests.trace.recorded_run import OPTIMIZER_NS, Run

PRODUCTION = Path(__file__).parents[2] / "goldens" / "traces" / "straggler_analysis"
RUN = Run(pp=4, dp=2, num_microbatches=8, num_steps=3)
STEP_S = (RUN.window_ns + OPTIMIZER_NS) / 1e9


def recorded(folder: Path, run: Run = RUN) -> Trace:
    return merge([run.write(folder)])


def slowed(trace: Trace, rank: int, factor: int) -> Replay:
    """Returns the replay of ``trace`` with the forwards and backwards of ``rank`` longer."""
    replay = replay_of_trace(trace)
    assert replay is not None
    is_compute = np.isin(replay.types, ["F", "B"])
    mine = (replay.ranks == rank)[replay.stages] & is_compute[:, None]
    seconds = np.where(mine[:, None, :], factor * replay.seconds, replay.seconds)
    return replace(replay, seconds=seconds)


def test_a_production_jobs_slowdown_is_the_published_one() -> None:
    found = what_if(replay_of(read_straggler_table(PRODUCTION / "trace-ST.parquet")))
    published = json.loads((PRODUCTION / "ms-ST.json").read_text())
    assert found.slowdown == pytest.approx(1.1787021836556841, rel=1e-6)
    assert found.recorded == pytest.approx(published["tori"], rel=1e-6)
    assert found.ideal == pytest.approx(published["tideal"], rel=1e-6)
    assert found.last_stage_share == pytest.approx(published["Ms"], rel=1e-5)
    slowest = json.loads((PRODUCTION / "mw-ST.json").read_text())
    assert found.slowest_share == pytest.approx(slowest["Mw"], rel=1e-5)


def test_a_production_jobs_slowdown_by_type_is_the_published_one() -> None:
    found = what_if(replay_of(read_straggler_table(PRODUCTION / "trace-ST.parquet")))
    # data/result-ST.json of the source, blocking_decompose_by_optype
    for type_, published in {
        "forward-compute": 1.0874989663025318,
        "backward-compute": 1.074156472437866,
        "embedding-grads-all-reduce": 1.0095504024370303,
        "grads-reduce-scatter": 1.00266695254219,
        "optimizer-clip-main-grad": 1.0023506224771044,
        "params-all-gather": 1.0011307740825817,
    }.items():
        assert found.by_type[type_] == pytest.approx(published, rel=1e-6)


def test_a_production_jobs_spans_show_where_each_stage_was_busy() -> None:
    trace = read_trace([PRODUCTION / "trace-ST.parquet"])
    stats = measure(trace)
    assert len(stats.steps) == 32
    assert stats.messages.pairs == 1536
    assert (stats.messages.lone_sends, stats.messages.lone_receives) == (0, 0)
    spans = trace.spans
    step_ns = sum(
        int(spans.end_ns[spans.step == step].max() - spans.start_ns[spans.step == step].min())
        for step in np.unique(spans.step)
    )
    is_compute = np.isin(spans.kind, [ActionKind.F, ActionKind.B])
    idle = []
    for stage in range(4):
        mine = is_compute & (spans.stage == stage)
        busy_ns = int((spans.end_ns - spans.start_ns)[mine].sum()) / 2
        idle.append(round(1 - busy_ns / step_ns, 3))
    assert idle == [0.621, 0.62, 0.618, 0.38]  # the project's own check of the artifact


def test_a_recorded_run_replays_as_it_ran(tmp_path: Path) -> None:
    replay = replay_of_trace(recorded(tmp_path))
    assert replay is not None
    assert replay.steps == (0, 1, 2)
    # The recorder's sends take 5 us of their own, beside the computations, and nine are in a row.
    assert replay.step_seconds() == pytest.approx([STEP_S + 9 * 5e-6] * 3, rel=1e-6)
    assert what_if(replay).slowdown == pytest.approx(1, abs=2e-3)


def test_a_slow_rank_is_the_one_without_which_the_step_is_shorter(tmp_path: Path) -> None:
    found = what_if(slowed(recorded(tmp_path), rank=5, factor=2))
    assert found.ranks[0].rank == 5
    assert found.ranks[0].shorter > 0.25
    assert all(abs(gain.shorter) < 0.05 for gain in found.ranks[1:])
    assert found.slowest_share is not None and found.slowest_share > 0.8


def test_a_slow_last_stage_is_told_from_a_slow_rank(tmp_path: Path) -> None:
    trace = recorded(tmp_path)
    whole = slowed(replace(trace, replay=slowed(trace, 6, 2)), 7, 2)
    found = what_if(whole)
    assert found.last_stage_share is not None
    assert found.slowest_share is not None
    assert found.last_stage_share > 0.8 > 0.5 > found.slowest_share


@pytest.mark.parametrize(
    ("sample", "step_s"),
    [
        ("single", [0.155, 0.155]),
        ("sendrecv", [0.155]),  # its receives have no sends
        ("multi", [0.335, 0.335]),
    ],
)
def test_logs_without_messages_replay_by_the_order_of_their_actions(
    sample: str, step_s: list[float]
) -> None:
    replay = replay_of_trace(read_trace([PRODUCTION.parent / "paddle" / sample]))
    assert replay is not None
    assert replay.step_seconds() == pytest.approx(step_s)


def test_a_trace_that_lacks_ranks_is_not_replayed(tmp_path: Path) -> None:
    assert replay_of_trace(merge([RUN.write(tmp_path, only=range(7))])) is None


def test_a_step_that_lacks_an_operation_is_left_out(tmp_path: Path) -> None:
    trace = merge(
        [RUN.write(tmp_path, keep=lambda s: not (s.step == 1 and str(s.action) == "2F3"))]
    )
    replay = replay_of_trace(trace)
    assert replay is not None and replay.steps == (0, 2)


@given(st.data())
def test_no_operation_ends_a_step_sooner_by_taking_longer(data: st.DataObject) -> None:
    seconds = np.array(data.draw(st.lists(st.integers(0, 9), min_size=4, max_size=4)), dtype=float)
    replay = Replay(
        types=("F", "SEND_F", "RECV_F", "F"),
        stages=np.array([0, 0, 1, 1]),
        is_message=np.array([False, True, True, False]),
        after=((), (0,), (), (2,)),
        meetings=(SyncGroup((1, 2)),),
        seconds=seconds[:, None, None],
        steps=(0,),
        ranks=np.array([[0], [1]]),
    )
    (before,) = replay.step_seconds()
    assert before == max(seconds[0] + seconds[1], seconds[0] + seconds[2] + seconds[3])
    longer = data.draw(st.integers(0, 3))
    (after,) = replay.step_seconds(replay.seconds + np.eye(4)[longer][:, None, None])
    assert after >= before


def test_replicas_that_meet_wait_for_the_last() -> None:
    replay = Replay(
        types=("B", "REDUCE_GRAD"),
        stages=np.array([0, 0]),
        is_message=np.array([False, True]),
        after=((), (0,)),
        meetings=(SyncGroup((1,), across=(0, 0, 1)),),
        seconds=np.array([[[1.0, 5.0, 2.0]], [[1.0, 1.0, 1.0]]]),
        steps=(0,),
        ranks=np.array([[0, 1, 2]]),
    )
    assert replay.step_seconds().tolist() == [6.0]
    assert what_if(replay).ranks[0].rank == 1


def test_operations_that_wait_in_a_circle_are_refused() -> None:
    replay = Replay(
        types=("F", "F"),
        stages=np.array([0, 0]),
        is_message=np.array([False, False]),
        after=((1,), (0,)),
        meetings=(),
        seconds=np.ones((2, 1, 1)),
        steps=(0,),
        ranks=np.array([[0]]),
    )
    with pytest.raises(InputError, match="2 of the recorded operations wait for one another"):
        replay.step_seconds()


def test_a_file_that_is_not_such_a_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.parquet"
    path.write_bytes(b"PAR1 not really")
    with pytest.raises(InputError, match="is not a Parquet file that can be read"):
        read_trace([path])


def test_a_table_of_other_columns_names_those_it_lacks(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "other.parquet"
    parquet.write_table(pyarrow.table({"dp_rank": [0], "stage": [0]}), path)
    with pytest.raises(InputError, match="lacks the columns rank, step, optype"):
        read_trace([path])


def test_stages_of_messages_that_do_not_fit_their_computations_are_refused() -> None:
    table = dict(read_straggler_table(PRODUCTION / "trace-ST.parquet"))
    first = table["step"] == table["step"].min()
    is_third = (table["optype"] == "forward-recv") & (table["stage"] == 1) & (table["seq_id"] >= 2)
    kept = ~(first & is_third)
    with pytest.raises(InputError, match="stage 1 has 2 forward-recv for 4 computations"):
        replay_of({name: column[kept] for name, column in table.items()})


def test_exchanges_and_named_spans_are_no_operations_of_their_own(tmp_path: Path) -> None:
    trace = recorded(tmp_path)
    spans = trace.spans
    inner = spans.where(spans.kind == ActionKind.F)
    extra = [
        replace(inner, kind=np.full_like(inner.kind, kind))
        for kind in (ActionKind.IN_FLIGHT, ActionKind.SPAN)
    ]
    replay = replay_of_trace(replace(trace, spans=Spans.joined([spans, *extra])))
    assert replay is not None
    assert replay.step_seconds() == pytest.approx([STEP_S + 9 * 5e-6] * 3, rel=1e-6)


def test_what_a_computation_waited_for_an_exchange_is_not_its_time(tmp_path: Path) -> None:
    trace = recorded(tmp_path)
    spans = trace.spans
    longer = replace(spans, start_ns=2 * spans.start_ns, end_ns=2 * spans.end_ns)
    computed = longer.where(np.isin(longer.kind, [ActionKind.F, ActionKind.B]))
    middle = (computed.start_ns + computed.end_ns) // 2
    waits = replace(
        computed, kind=np.full_like(computed.kind, ActionKind.ALL_REDUCE), start_ns=middle
    )
    replay = replay_of_trace(replace(trace, spans=Spans.joined([longer, waits])))
    alone = replay_of_trace(trace)
    assert replay is not None and alone is not None
    computes = np.isin(np.array(replay.types), ["F", "B"])
    assert replay.types == alone.types
    assert replay.seconds[computes] == pytest.approx(alone.seconds[computes])


def test_spans_that_hold_their_wait_are_not_replayed(tmp_path: Path) -> None:
    assert replay_of_trace(replace(recorded(tmp_path), waits_inside=True)) is None


def test_a_run_whose_computations_took_no_time_is_not_replayed(tmp_path: Path) -> None:
    trace = recorded(tmp_path)
    still = replace(trace.spans, end_ns=trace.spans.start_ns)
    assert replay_of_trace(replace(trace, spans=still)) is None


def test_a_recording_whose_operations_wait_in_a_circle_is_not_replayed(tmp_path: Path) -> None:
    trace = recorded(tmp_path)
    spans = trace.spans
    # The last stage's rank does everything in the opposite order.
    backwards = np.where(spans.stage == 3, spans.end_ns.max() - spans.end_ns, spans.start_ns)
    length = spans.end_ns - spans.start_ns
    turned = Spans.joined([replace(spans, start_ns=backwards, end_ns=backwards + length)])
    assert replay_of_trace(replace(trace, spans=turned)) is None
