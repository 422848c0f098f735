"""The critical path over all ranks: drawn steps whose path is known, piece by piece."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.action import Span
from serried.pipeline import Costs, Request, generate
from serried.trace.measure.path.recorded_path import RecordedPath, recorded_path
from tests.trace.recorded_run import FORWARD_NS, Run
from tests.trace.traced_run import compute, simulated, trace_of

times = st.integers(0, 50)


def path_of(spans: list[Span], pp: int, dp: int = 1) -> RecordedPath:
    trace = trace_of(spans, pp=pp, dp=dp)
    found = recorded_path(trace, trace.spans)
    assert found is not None
    return found


def drawn(path: RecordedPath) -> list[tuple[int, str, int, int]]:
    return [(p.rank, p.action or p.kind, p.start_ns, p.end_ns) for p in path.pieces]


def test_the_path_crosses_to_the_rank_that_was_waited_for() -> None:
    #        0    10   20   30   40   50   60
    # rank 0 [0F0][0F1]          [0B0][0B1]
    # rank 1      [1F0][1B0][1F1][1B1]
    spans = [
        compute(0, "0F0", 0, 10), compute(0, "0F1", 10, 20),
        compute(0, "0B0", 40, 50), compute(0, "0B1", 50, 60),
        compute(1, "1F0", 10, 20), compute(1, "1B0", 20, 30),
        compute(1, "1F1", 30, 40), compute(1, "1B1", 40, 50),
    ]  # fmt: skip
    path = path_of(spans, 2)
    assert drawn(path) == [
        (0, "0F0", 0, 10), (1, "1F0", 10, 20), (1, "1B0", 20, 30), (1, "1F1", 30, 40),
        (1, "1B1", 40, 50), (0, "0B1", 50, 60),
    ]  # fmt: skip
    assert path.by_rank == {0: pytest.approx(1 / 3), 1: pytest.approx(2 / 3)}
    assert path.by_kind["forward"] == path.by_kind["backward"] == pytest.approx(1 / 2)


def test_a_message_on_its_way_is_transfer_and_a_late_sender_its_own_path() -> None:
    # rank 0 [0F0]....[send        rank 1 waits from 0, the send begins at 14, 1F0 starts at 20
    spans = [
        compute(0, "0F0", 0, 10),
        compute(0, "0SEND_F0", 14, 20, peer=1),
        compute(1, "1RECV_F0", 0, 20, peer=0),
        compute(1, "1F0", 20, 30),
    ]
    assert drawn(path_of(spans, 2)) == [
        (0, "0F0", 0, 10), (0, "other", 10, 14), (1, "transfer", 14, 20), (1, "1F0", 20, 30),
    ]  # fmt: skip


def test_a_message_that_was_there_first_keeps_the_path_on_its_rank() -> None:
    spans = [
        compute(0, "0F0", 0, 10), compute(0, "0SEND_F0", 10, 11, peer=1),
        compute(0, "0F1", 10, 20), compute(0, "0SEND_F1", 20, 21, peer=1),
        compute(1, "1F0", 12, 40), compute(1, "1RECV_F1", 40, 42, peer=0),
        compute(1, "1F1", 42, 50),
    ]  # fmt: skip
    assert drawn(path_of(spans, 2))[-3:] == [
        (1, "1F0", 12, 40), (1, "transfer", 40, 42), (1, "1F1", 42, 50),
    ]  # fmt: skip


def test_a_reduction_follows_the_replica_that_came_last_to_it() -> None:
    spans = [
        compute(0, "0F0", 0, 10), compute(0, "0REDUCE_GRAD", 10, 60),
        compute(0, "OPTIMIZER", 60, 70),
        compute(1, "0F0", 0, 50), compute(1, "0REDUCE_GRAD", 50, 60),
        compute(1, "OPTIMIZER", 60, 69),
    ]  # fmt: skip
    assert drawn(path_of(spans, 1, dp=2)) == [
        (1, "0F0", 0, 50), (0, "0REDUCE_GRAD", 50, 60), (0, "OPTIMIZER", 60, 70),
    ]  # fmt: skip


def test_an_optimizer_that_waited_follows_the_rank_that_was_ready_last() -> None:
    spans = [
        compute(0, "0F0", 0, 10), compute(0, "OPTIMIZER", 40, 50),
        compute(1, "1F0", 10, 38), compute(1, "OPTIMIZER", 40, 49),
    ]  # fmt: skip
    assert drawn(path_of(spans, 2)) == [
        (0, "0F0", 0, 10), (1, "1F0", 10, 38), (0, "other", 38, 40), (0, "OPTIMIZER", 40, 50),
    ]  # fmt: skip


def test_a_wait_inside_a_computation_is_exchange_and_not_computing() -> None:
    # rank 0 [0F0.....|all-reduce|..][0B0....|tail]~norm~[OPTIMIZER]
    spans = [
        compute(0, "0F0", 0, 40), compute(0, "0ALL_REDUCE0", 10, 30),
        compute(0, "0ALL_GATHER0", 20, 25), compute(0, "0B0", 40, 90),
        compute(0, "0ALL_REDUCE0", 70, 90), compute(0, "0ALL_REDUCE0", 92, 98),
        compute(0, "OPTIMIZER", 100, 110),
    ]  # fmt: skip
    path = path_of(spans, 1)
    assert [(p.kind, p.action, p.end_ns - p.start_ns) for p in path.pieces] == [
        ("forward", "0F0", 10), ("exchange", "0F0", 20), ("forward", "0F0", 10),
        ("backward", "0B0", 30), ("exchange", "0B0", 20), ("other", None, 2),
        ("exchange", "0ALL_REDUCE0", 6), ("other", None, 2), ("optimizer", "OPTIMIZER", 10),
    ]  # fmt: skip
    assert path.by_kind["exchange"] == pytest.approx(46 / 110)
    assert sum(path.by_kind.values()) == pytest.approx(1)


def test_a_reduction_behind_a_backward_leaves_the_path_to_the_backward() -> None:
    spans = [
        compute(0, "0F0", 0, 10), compute(0, "0B0", 10, 60),
        compute(0, "0REDUCE_GRAD", 20, 30), compute(0, "0REDUCE_GRAD", 40, 60),
        compute(0, "0ALL_REDUCE0", 50, 60), compute(0, "OPTIMIZER", 60, 70),
    ]  # fmt: skip
    assert [(p.kind, p.start_ns, p.end_ns) for p in path_of(spans, 1).pieces] == [
        ("forward", 0, 10), ("backward", 10, 50), ("exchange", 50, 60), ("optimizer", 60, 70),
    ]  # fmt: skip


def test_a_wait_for_a_bucket_follows_the_rank_that_launched_it_last() -> None:
    # rank 0 [0F0][0B0.|launches..|waits......]     rank 1 [0F0 ............][0B0.|launches|waits]
    spans = [
        compute(0, "0F0", 0, 10), compute(0, "0B0", 10, 90),
        compute(0, "0REDUCE_GRAD", 20, 90), compute(0, "0ALL_REDUCE0", 30, 90),
        compute(0, "OPTIMIZER", 90, 100),
        compute(1, "0F0", 0, 60), compute(1, "0B0", 60, 90),
        compute(1, "0REDUCE_GRAD", 80, 90), compute(1, "0ALL_REDUCE0", 82, 90),
        compute(1, "OPTIMIZER", 90, 99),
    ]  # fmt: skip
    assert [(p.rank, p.kind, p.start_ns, p.end_ns) for p in path_of(spans, 1, dp=2).pieces] == [
        (1, "forward", 0, 60), (1, "backward", 60, 80), (0, "exchange", 80, 90),
        (0, "optimizer", 90, 100),
    ]  # fmt: skip


@given(computations=st.lists(st.integers(1, 9)), waits=st.lists(st.tuples(times, times)))
def test_no_moment_of_a_path_is_counted_as_computing_while_its_rank_waits(
    computations: list[int], waits: list[tuple[int, int]]
) -> None:
    ends = [sum(computations[: at + 1]) for at in range(len(computations))]
    spans = [
        compute(0, f"0{'FB'[at % 2]}{at // 2}", end - length, end)
        for at, (end, length) in enumerate(zip(ends, computations, strict=True))
    ]
    whole = [compute(0, "0F99", 0, 0), *spans, compute(0, "OPTIMIZER", 60, 61)]
    held = [compute(0, "0ALL_REDUCE0", start, start + length) for start, length in waits]
    path = path_of(whole + held, 1)
    waiting = {moment for span in held for moment in range(span.start_ns, span.end_ns)}
    for piece in path.pieces:
        moments = set(range(piece.start_ns, piece.end_ns))
        assert moments <= waiting if piece.kind == "exchange" else not moments & waiting
    assert sum(path.by_kind.values()) == pytest.approx(1)


@given(
    name=st.sampled_from(["gpipe", "1f1b", "zb-h1", "interleaved-1f1b", "zbv"]),
    p=st.integers(2, 4),
    rounds=st.integers(1, 3),
    slow=st.integers(1, 5),
)
def test_a_simulated_step_is_all_work_and_adds_up(
    name: str, p: int, rounds: int, slow: int
) -> None:
    schedule = generate(name, Request(p, p * rounds))
    last = schedule.placement.num_stages - 1
    each = (*[2] * last, 2 * slow)
    trace = simulated(schedule, Costs(each, each, each))
    path = recorded_path(trace, trace.spans)
    assert path is not None
    # Messages take no time, so something is at work at every moment of the longest chain.
    assert path.by_kind["transfer"] == path.by_kind["other"] == 0
    assert sum(path.by_kind.values()) == pytest.approx(1)
    assert sum(path.by_rank.values()) == pytest.approx(1)
    assert all(
        before.end_ns == after.start_ns
        for before, after in zip(path.pieces, path.pieces[1:], strict=False)
    )


def test_the_step_shown_is_the_one_of_median_length() -> None:
    spans = [
        compute(0, "0F0", 100 * step, 100 * step + length, step=step)
        for step, length in enumerate((90, 10, 50))
    ]
    path = path_of(spans, 1)
    assert (path.step, path.steps) == (2, (0, 1, 2))


def test_a_recorded_run_of_full_steps_is_busy_to_the_end() -> None:
    run = Run(pp=4, num_microbatches=8, num_steps=1)
    trace = trace_of(run.spans(), pp=4, schedule="1f1b")
    path = recorded_path(trace, trace.spans)
    assert path is not None
    # Down the stages, through every microbatch on the last one, and up again.
    assert path.by_kind["forward"] * (path.pieces[-1].end_ns) == pytest.approx(11 * FORWARD_NS)
    assert path.by_kind["other"] + path.by_kind["transfer"] == pytest.approx(0, abs=2e-3)
