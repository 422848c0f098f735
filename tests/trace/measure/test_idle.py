"""Idle time of recorded runs: every nanosecond under one cause, and the right one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.action import COMPUTE, EXCHANGES, Action, ActionKind, Span
from serried.trace.formats.reading import read_trace
from serried.trace.measure.idle import CAUSES, measured_idle
from serried.trace.measure.statistics import measure
from tests.trace.recorded_run import Run, table

GOLDENS = Path(__file__).parents[2] / "goldens" / "traces"


def span(rank: int, action: str, start: int, end: int, peer: int = -1) -> Span:
    return Span(rank, Action.parse(action), 0, start, end, peer)


def causes(spans: list[Span], ranks: int, window: tuple[int, int]) -> list[dict[str, int]]:
    """Returns the idle time of each rank by cause, without those of none."""
    edges = np.array([window[0]]), np.array([window[1]])
    idle = measured_idle(table(spans), np.array([0], dtype=np.int32), np.arange(ranks), edges)
    return [
        {
            cause: int(idle.by_cause[cause][0, rank])
            for cause in CAUSES
            if idle.by_cause[cause][0, rank]
        }
        for rank in range(ranks)
    ]


def test_a_receive_is_a_late_peer_until_the_send_begins_and_transfer_from_then() -> None:
    spans = [
        *(span(0, "0F0", 0, 30), span(0, "0SEND_F0", 30, 32, peer=1), span(0, "0F1", 34, 60)),
        *(span(1, "1F9", 5, 10), span(1, "1RECV_F0", 12, 40, peer=0), span(1, "1F0", 41, 50)),
    ]
    assert causes(spans, 2, (0, 60)) == [
        {"send": 2, "other": 2},
        # 10 to 12 nothing, to 30 the peer computes, to 40 the message travels, to 41 nothing
        {"warm_up": 5, "late_peer": 18, "transfer": 10, "other": 3, "cool_down": 10},
    ]


def test_a_message_that_was_sent_before_it_was_waited_for_is_transfer_alone() -> None:
    spans = [
        *(span(0, "0F0", 0, 10), span(0, "0SEND_F0", 10, 11, peer=1), span(0, "0F1", 11, 40)),
        *(span(1, "1F9", 0, 20), span(1, "1RECV_F0", 20, 25, peer=0), span(1, "1F0", 25, 40)),
    ]
    assert causes(spans, 2, (0, 40)) == [{"send": 1}, {"transfer": 5}]


def test_a_receive_whose_sender_recorded_nothing_waits_for_a_late_peer() -> None:
    spans = [span(0, "1F9", 0, 5), span(0, "1RECV_F0", 5, 9, peer=7), span(0, "1F0", 9, 10)]
    assert causes(spans, 1, (0, 10)) == [{"late_peer": 4}]


def test_what_overlaps_counts_once_under_the_first_cause() -> None:
    spans = [
        *(
            span(0, "0F0", 0, 10),
            span(0, "0REDUCE_GRAD", 5, 30),
            span(0, "0SEND_F0", 8, 20, peer=1),
        ),
        span(0, "0F1", 30, 40),
    ]
    assert causes(spans, 1, (0, 40)) == [{"send": 10, "reduce": 10}]


def test_a_log_without_receives_waits_for_its_inputs() -> None:
    spans = [
        *(span(0, "0F0", 0, 10), span(0, "0F1", 10, 30)),
        *(span(1, "1F0", 10, 20), span(1, "1F1", 32, 40)),
    ]
    assert causes(spans, 2, (0, 40))[1] == {"warm_up": 10, "late_peer": 10, "other": 2}


def test_communication_behind_computation_is_overlapped_and_the_rest_exposed() -> None:
    spans = [
        *(span(0, "0F0", 0, 10), span(0, "0SEND_F0", 6, 14, peer=1), span(0, "0F1", 20, 30)),
        span(0, "0RING0", 22, 25),
    ]
    edges = np.array([0]), np.array([30])
    idle = measured_idle(table(spans), np.array([0], dtype=np.int32), np.arange(1), edges)
    # Four of the send beside F0; four after it, and three of the ring inside F1.
    assert (idle.overlapped_ns.item(), idle.exposed_ns.item()) == (4, 7)


@given(st.data())
def test_the_causes_add_up_to_the_window_less_the_computation(data: st.DataObject) -> None:
    def interval() -> tuple[int, int]:
        start = data.draw(st.integers(0, 90))
        return start, start + data.draw(st.integers(0, 20))

    spans = []
    for rank in range(2):
        at = data.draw(st.integers(0, 20))
        for microbatch in range(4):
            length = data.draw(st.integers(1, 10))
            spans.append(span(rank, f"{rank}F{microbatch}", at, at + length))
            at += length + data.draw(st.integers(0, 10))
    for action, rank, peer in (("0SEND_F0", 0, 1), ("1RECV_F0", 1, 0), ("0REDUCE_GRAD", 0, -1)):
        if data.draw(st.booleans()):
            spans.append(span(rank, action, *interval(), peer=peer))
    found = causes(spans, 2, (0, 120))
    for rank in range(2):
        busy = sum(s.duration_ns for s in spans if s.rank == rank and str(s.action)[1] == "F")
        assert sum(found[rank].values()) == 120 - busy


@pytest.mark.parametrize("sample", ["megatronapp", "kineto", "paddle/multi", "paddle/sendrecv"])
def test_other_tools_idle_time_adds_up_too(sample: str) -> None:
    stats = measure(read_trace([GOLDENS / sample]))
    assert stats.bubbles is not None
    assert sum(stats.bubbles.causes.values()) == pytest.approx(stats.bubbles.of_makespan)


def test_a_steady_pipelines_idle_time_is_warm_up_cool_down_and_its_neighbours(
    tmp_path: Path,
) -> None:
    stats = measure(read_trace([Run(pp=4, num_microbatches=8).write(tmp_path)]))
    assert stats.bubbles is not None
    assert stats.bubbles.of_makespan == pytest.approx(3 / 11)
    assert stats.bubbles.over_ideal == pytest.approx(3 / 8)
    # Rank 0 is there from the first forward to the last backward.
    assert stats.bubbles.longest_window == pytest.approx(3 / 11)
    assert stats.bubbles.causes["warm_up"] == pytest.approx(6 / 4 / 33, rel=0.01)
    assert stats.bubbles.causes["cool_down"] == pytest.approx(12 / 4 / 33, rel=0.01)
    assert stats.bubbles.causes["late_peer"] > 0.1


def test_waiting_inside_a_computation_is_idle_time_and_counts_once() -> None:
    spans = [
        *(span(0, "0F0", 0, 30), span(0, "0ALL_REDUCE0", 10, 20), span(0, "0ALL_GATHER0", 15, 22)),
        *(span(0, "0IN_FLIGHT0", 2, 10), span(0, "0B0", 30, 60), span(0, "0REDUCE_GRAD", 35, 59)),
        Span(0, Action(ActionKind.REDUCE_GRAD, 0, 0), 0, 55, 59),  # one that the backward waits for
    ]
    assert causes(spans, 1, (0, 60)) == [{"exchange": 12 + 4}]


def drawn_interval(data: st.DataObject, high: int = 90) -> tuple[int, int]:
    start = data.draw(st.integers(0, high))
    return start, start + data.draw(st.integers(0, 40))


@given(st.data())
def test_causes_and_computing_add_up_in_windows_that_overlap(data: st.DataObject) -> None:
    kinds = st.sampled_from(
        [each for each in ActionKind if each not in (ActionKind.SPAN, ActionKind.OVERLAP_F_B)]
    )
    numbers, ranks, num_steps = st.integers(-1, 2), 3, 3
    spans = [
        Span(
            data.draw(st.integers(0, ranks - 1)),
            Action(data.draw(kinds), data.draw(numbers), data.draw(numbers)),
            data.draw(st.integers(0, num_steps)),  # of a step that is not measured too
            *drawn_interval(data),
            peer=data.draw(numbers),
        )
        for _ in range(data.draw(st.integers(0, 25)))
    ]
    windows = [drawn_interval(data, 130) for _ in range(num_steps)]
    first, last = np.array(windows, dtype=np.int64).T
    steps = np.arange(num_steps, dtype=np.int32)
    idle = measured_idle(table(spans), steps, np.arange(ranks), (first, last))
    whole = np.broadcast_to((last - first)[:, None], idle.busy_ns.shape)
    assert (idle.busy_ns + idle.total_ns == whole).all()
    assert all((each >= 0).all() for each in (*idle.by_cause.values(), *idle.by_work.values()))
    assert (idle.exposed_ns + idle.overlapped_ns <= whole).all()
    assert (idle.receiving_ns + idle.waiting_ns + idle.busy_ns <= whole).all()
    computed = [
        [moment_by_moment(spans, rank, window) for rank in range(ranks)] for window in windows
    ]
    assert idle.busy_ns.tolist() == computed


def moment_by_moment(spans: list[Span], rank: int, window: tuple[int, int]) -> int:
    """Counts the moments of a window at which a rank computes and waits for no collective."""
    mine = [each for each in spans if each.rank == rank]

    def is_waiting(each: Span) -> bool:
        is_held = each.action.kind == ActionKind.REDUCE_GRAD and each.action.microbatch >= 0
        return each.action.kind in EXCHANGES or is_held

    count = 0
    for moment in range(*window):
        now = [each for each in mine if each.start_ns <= moment < each.end_ns]
        computes = any(each.action.kind in COMPUTE for each in now)
        count += computes and not any(is_waiting(each) for each in now)
    return count
