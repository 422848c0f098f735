"""Every send meets its own receive, and a message that lacks a side stays alone."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.action import Action, ActionKind, Span
from serried.trace.formats.reading import read_trace
from serried.trace.measure.statistics import measure
from serried.trace.model.pairs import (
    computed_from,
    hand_overs,
    pair_messages,
    whole_computations,
    whole_hand_overs,
)
from tests.trace.recorded_run import Run, table
from tests.trace.traced_run import compute, trace_of

PADDLE = Path(__file__).parents[2] / "goldens" / "traces" / "paddle"

SENDS = {ActionKind.SEND_F, ActionKind.SEND_B}
RECEIVES = {ActionKind.RECV_F, ActionKind.RECV_B}


def message(kind: str, rank: int, stage: int, peer: int, *, step: int = 0, at: int = 0) -> Span:
    return Span(rank, Action(ActionKind[kind], stage, 2), step, at, at + 1, peer)


def slow_pairs(spans: list[Span]) -> tuple[set[tuple[int, int]], int]:
    """Pairs by the words of the definition, one at a time; also counts those alone."""
    waiting = [i for i, span in enumerate(spans) if span.action.kind in RECEIVES]
    found = set()
    alone = 0
    for i, send in enumerate(spans):
        if send.action.kind not in SENDS:
            continue
        up = send.action.kind == ActionKind.SEND_F
        kind = ActionKind.RECV_F if up else ActionKind.RECV_B
        stage = send.action.stage + (1 if up else -1)
        wanted = Action(kind, stage, send.action.microbatch)
        match = next(
            (
                j
                for j in waiting
                if spans[j].action == wanted
                and (spans[j].rank, spans[j].peer, spans[j].step)
                == (send.peer, send.rank, send.step)
            ),
            None,
        )
        if match is None:
            alone += 1
        else:
            waiting.remove(match)
            found.add((i, match))
    return found, alone + len(waiting)


@pytest.mark.parametrize("run", [Run(pp=2), Run(pp=4, tp=2, dp=2, num_microbatches=5, num_steps=3)])
def test_all_messages_of_a_whole_run_pair(run: Run) -> None:
    pairs = pair_messages(table(run.spans()))

    pipelines = run.world_size // run.pp
    assert len(pairs) == 2 * (run.pp - 1) * run.num_microbatches * pipelines * run.num_steps
    assert (len(pairs.lone_sends), len(pairs.lone_receives)) == (0, 0)


@given(seed=st.integers(0, 10**6), share=st.floats(0, 1))
def test_pairs_are_those_of_the_definition_whatever_is_missing(seed: int, share: float) -> None:
    draw = random.Random(seed)
    spans = [s for s in Run(pp=3, num_microbatches=3).spans() if draw.random() < share]

    pairs = pair_messages(table(spans))

    expected, alone = slow_pairs(spans)
    assert set(zip(pairs.sends.tolist(), pairs.receives.tolist(), strict=True)) == expected
    assert len(pairs.lone_sends) + len(pairs.lone_receives) == alone


@pytest.mark.parametrize(
    "other",
    [
        message("RECV_F", 1, 4, peer=2),  # from another sender
        message("RECV_F", 5, 4, peer=0),  # by another receiver
        message("RECV_F", 1, 3, peer=0),  # into another stage
        message("RECV_B", 1, 4, peer=0),  # over another boundary
        message("RECV_B", 1, 3, peer=0),  # the other way
        message("RECV_F", 1, 4, peer=0, step=1),
        message("SEND_F", 1, 4, peer=0),
    ],
    ids=str,
)
def test_a_receive_of_something_else_stays_alone(other: Span) -> None:
    pairs = pair_messages(table([message("SEND_F", 0, 3, peer=1), other]))

    assert len(pairs) == 0
    assert len(pairs.lone_sends) + len(pairs.lone_receives) == 2


def test_backward_messages_run_from_a_stage_to_the_one_below() -> None:
    spans = [message("RECV_B", 0, 3, peer=1), message("SEND_B", 1, 4, peer=0)]

    pairs = pair_messages(table(spans))

    assert (pairs.sends.tolist(), pairs.receives.tolist()) == ([1], [0])


def test_messages_of_one_name_pair_in_the_order_of_time() -> None:
    spans = [
        *(message("SEND_F", 0, 3, peer=1, at=at) for at in (10, 20, 30)),
        *(message("RECV_F", 1, 4, peer=0, at=at) for at in (11, 21)),
    ]

    pairs = pair_messages(table(spans))

    assert (pairs.sends.tolist(), pairs.receives.tolist()) == ([0, 1], [3, 4])
    assert pairs.lone_sends.tolist() == [2]


def test_a_run_without_messages_has_no_pairs() -> None:
    pairs = pair_messages(table(Run(pp=1).spans()))

    assert (len(pairs), len(pairs.lone_sends), len(pairs.lone_receives)) == (0, 0, 0)


def test_names_too_many_for_one_number_still_pair() -> None:
    # Receivers, steps, boundaries, directions and microbatches of 16, 16, 16, 1 and 16 bits:
    # as one 64-bit number, messages of different senders would look alike.
    far = 2**16 - 1
    spans = [
        Span(0, Action(ActionKind.SEND_F, far, far), far, 0, 1, far),
        Span(0, Action(ActionKind.SEND_B, 1, 0), 0, 0, 1, 0),
        Span(3, Action(ActionKind.SEND_F, 6, 5), 4, 0, 1, 8),
        Span(8, Action(ActionKind.RECV_F, 7, 5), 4, 0, 1, 2),
        Span(8, Action(ActionKind.RECV_F, 7, 5), 4, 0, 1, 3),
    ]

    pairs = pair_messages(table(spans))

    assert (pairs.sends.tolist(), pairs.receives.tolist()) == ([2], [4])


def test_what_was_computed_from_a_receive_is_of_its_rank_stage_step_and_microbatch() -> None:
    spans = Run(pp=3, dp=2, num_microbatches=3).spans()
    receives = [i for i, span in enumerate(spans) if span.action.kind in RECEIVES]

    rows = computed_from(table(spans), np.array(receives)).tolist()

    for receive, computed in zip(
        (spans[i] for i in receives), (spans[i] for i in rows), strict=True
    ):
        kind = ActionKind.F if receive.action.kind == ActionKind.RECV_F else ActionKind.B
        action = Action(kind, receive.action.stage, receive.action.microbatch)
        assert (computed.action, computed.rank, computed.step) == (
            action,
            receive.rank,
            receive.step,
        )


def test_a_receive_that_nothing_was_computed_from_has_no_row() -> None:
    spans = [message("RECV_F", 1, 4, peer=0), Span(1, Action.parse("4B2"), 0, 5, 6)]

    assert computed_from(table(spans), np.array([0])).tolist() == [-1]


def test_a_result_goes_to_the_next_stage_of_its_own_pipeline() -> None:
    # Two pipelines, ranks 0 and 2, 1 and 3; rank 2 left no file.
    places = ((0, "0F2"), (1, "0F2"), (3, "1F2"))
    spans = table([Span(rank, Action.parse(text), 0, 5, 6) for rank, text in places])
    before, after = hand_overs(spans, np.array([0, 1, 0, 1]))
    assert (spans.rank[before].tolist(), spans.rank[after].tolist()) == ([1], [3])


def test_without_pipelines_results_go_in_the_order_of_ranks() -> None:
    places = ((0, "0B2"), (1, "0B2"), (2, "1B2"), (3, "1B2"))
    spans = table([Span(rank, Action.parse(text), 0, 5, 6) for rank, text in places])
    before, after = hand_overs(spans)
    assert (spans.rank[before].tolist(), spans.rank[after].tolist()) == ([2, 3], [0, 1])


# ----------------------------------------------------------------------- in pieces


def test_the_last_piece_goes_to_the_first_piece() -> None:
    spans = trace_of(
        [
            *(compute(0, "0B0", 20, 25), compute(0, "0B0", 25, 30)),
            *(compute(1, "1B0", 0, 10), compute(1, "1B0", 10, 20)),
        ],
        pp=2,
    ).spans
    before, after = whole_hand_overs(spans)
    assert [
        (int(spans.end_ns[b]), int(spans.start_ns[a])) for b, a in zip(before, after, strict=True)
    ] == [(20, 20)]


def test_a_job_is_as_long_as_its_pieces_and_stands_where_the_first_of_them_did() -> None:
    pieces = [
        *(compute(0, "0F0", 0, 5), compute(0, "0B0", 5, 9), compute(0, "0F1", 9, 12)),
        *(compute(0, "0B0", 12, 18), compute(0, "0B1", 18, 20)),
    ]
    found = whole_computations(trace_of(pieces, pp=1).spans)
    assert [(str(each.action), each.duration_ns) for each in found] == [
        *(("0F0", 5), ("0B0", 10), ("0F1", 3), ("0B1", 2)),
    ]


@pytest.mark.parametrize("sample", ["chunk", "sendrecv"])
def test_pieces_and_one_way_receives_leave_the_causes_of_idle_time_as_they_are(sample: str) -> None:
    plain, other = (measure(read_trace([PADDLE / name])).bubbles for name in ("dev23", sample))
    assert plain is not None and other is not None
    # sendrecv has receives of a quarter of a millisecond in 150, and sends as long.
    assert other.causes == pytest.approx(plain.causes, abs=0.004)
