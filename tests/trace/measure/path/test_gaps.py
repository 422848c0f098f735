"""The longest waits of ranks: drawn steps in which it is known who waited for whom, and why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from serried.action import ActionKind, Span
from serried.pipeline import Costs, Request, generate
from serried.trace.measure.overlay import overlay_of
from serried.trace.measure.path.gaps import Gap, gap_before, largest_gaps
from serried.trace.model.trace import Trace
from tests.trace.traced_run import compute, simulated, trace_of


def usual_steps(late_ns: int = 0, longer_ns: int = 0, transfer_ns: int = 0) -> list[Span]:
    """Returns four steps of two stages; in step 2 rank 0 begins late, takes longer, or sends long.

    rank 0   [0F0 10]             [0B0 20][O 5]
    rank 1           [1F0 10][1B0 20]     [O 5]
    """
    spans, at = list[Span](), 0
    for step in range(4):
        late, longer, sent = (late_ns, longer_ns, transfer_ns) if step == 2 else (0, 0, 0)
        start = at + late
        forward = start + 10 + longer
        arrives = forward + sent
        spans += [
            compute(0, "0F0", start, forward, step),
            compute(1, "1F0", arrives, arrives + 10, step),
            compute(1, "1B0", arrives + 10, arrives + 30, step),
            compute(0, "0B0", arrives + 30, arrives + 50, step),
            compute(0, "OPTIMIZER", arrives + 50, arrives + 55, step),
            compute(1, "OPTIMIZER", arrives + 50, arrives + 55, step),
        ]
        at = arrives + 55
    return spans


def gaps_of(trace: Trace) -> tuple[Gap, ...]:
    return largest_gaps(trace, trace.spans, None)


def test_a_rank_waits_for_a_forward_that_began_late_because_nothing_was_recorded() -> None:
    first, *_ = gaps_of(trace_of(usual_steps(late_ns=200), pp=2))
    assert (first.rank, first.step, first.action, first.length_ns) == (1, 2, "1F0", 210)
    assert first.awaited is not None
    assert (first.awaited.rank, first.awaited.action) == (0, "0F0")
    assert first.root is not None
    assert (first.root.rank, first.root.kind, first.root.beyond_ns) == (0, "other", 200)
    # Rank 0 itself did nothing for 200, for the same reason.
    assert (first.alike, first.alike_ns) == (2, 410)


def test_a_rank_waits_for_an_action_that_took_longer_than_is_usual() -> None:
    first, *_ = gaps_of(trace_of(usual_steps(longer_ns=90), pp=2))
    assert (first.rank, first.step, first.length_ns) == (1, 2, 100)
    assert first.root is not None
    assert first.root == first.awaited
    assert (first.root.took_ns, first.root.usual_ns) == (100, 10)


def test_a_message_that_takes_long_is_the_root_where_the_sends_were_recorded() -> None:
    spans = usual_steps(transfer_ns=80)
    forwards = [each for each in spans if str(each.action) == "0F0"]
    for each, after in zip(forwards, [s for s in spans if str(s.action) == "1F0"], strict=True):
        spans += [
            compute(0, "0SEND_F0", each.end_ns, each.end_ns + 1, each.step, peer=1),
            compute(1, "1RECV_F0", each.start_ns, after.start_ns, each.step, peer=0),
        ]
    first, *_ = gaps_of(trace_of(spans, pp=2))
    # Rank 0 waited for what came back, rank 1 for the message itself.
    assert (first.rank, first.action, first.length_ns) == (0, "0B0", 110)
    assert (first.alike, first.alike_ns) == (2, 200)
    assert first.root is not None
    assert (first.root.rank, first.root.kind, first.root.beyond_ns) == (1, "transfer", 80)


def test_what_a_user_named_tells_what_an_unrecorded_piece_was() -> None:
    spans = usual_steps(late_ns=200)
    begin = max(each.end_ns for each in spans if each.step == 1)
    trace = trace_of([*spans, compute(0, "SPAN", begin, begin + 180, 2, peer=0)], pp=2)
    first, *_ = gaps_of(replace(trace, names=("data",)))
    assert first.root is not None
    assert first.root.name == "data"


def test_a_replica_waits_in_a_reduction_for_the_one_that_comes_last() -> None:
    spans, at = list[Span](), 0
    for step in range(3):
        late = 40 if step == 1 else 0
        for rank in (0, 1):
            done = at + 20 + late * rank
            met = at + 30 + late
            spans += [
                compute(rank, "0F0", at, done, step),
                compute(rank, "0REDUCE_GRAD", done, met, step),
                compute(rank, "OPTIMIZER", met, met + 5, step),
            ]
        at += 35 + late
    first, *_ = gaps_of(trace_of(spans, pp=1, dp=2))
    assert (first.rank, first.step, first.action, first.length_ns) == (0, 1, "0REDUCE_GRAD", 40)
    assert first.root is not None
    assert first.awaited is not None
    assert (first.root.rank, first.root.action, first.root.took_ns) == (1, "0F0", 60)


def test_a_plain_schedule_has_no_gap_beyond_its_plan() -> None:
    trace = simulated(generate("1f1b", Request(4, 8)), Costs(1, 2, 1), steps=3)
    trace = replace(trace, job=replace(trace.job, schedule="1f1b"))
    found = largest_gaps(trace, trace.spans, overlay_of(trace))
    # A simulated step ends with a gap of one millisecond, which every warm-up has beside its plan.
    assert all(each.beyond_ns <= 1_000_000 for each in found)
    without_plan = largest_gaps(trace, trace.spans, None)
    assert without_plan[0].length_ns > 5_000_000


def test_the_gap_before_one_span_is_found_and_of_a_receive_that_of_its_computation() -> None:
    spans = usual_steps(late_ns=200)
    late = next(each for each in spans if str(each.action) == "1F0" and each.step == 2)
    receive = compute(1, "1RECV_F0", late.start_ns - 210, late.start_ns, 2, peer=0)
    send = compute(0, "0SEND_F0", late.start_ns - 1, late.start_ns, 2, peer=1)
    trace = trace_of([*spans, receive, send], pp=2)

    def row(rank: int, kind: ActionKind) -> int:
        mine = (trace.spans.rank == rank) & (trace.spans.kind == kind) & (trace.spans.step == 2)
        return int(np.flatnonzero(mine)[0])

    found = gap_before(trace, row(1, ActionKind.F), None)
    assert found is not None
    assert found.length_ns == 210
    assert gap_before(trace, row(1, ActionKind.RECV_F), None) == found
    assert gap_before(trace, row(1, ActionKind.B), None) is None
    assert gap_before(trace, row(0, ActionKind.SEND_F), None) is None


@pytest.mark.parametrize("waits_inside", [True, False])
def test_spans_that_hold_their_waits_have_no_gaps(*, waits_inside: bool) -> None:
    trace = replace(trace_of(usual_steps(late_ns=200), pp=2), waits_inside=waits_inside)
    assert bool(gaps_of(trace)) is not waits_inside


def test_a_step_that_is_left_out_between_two_makes_no_gap() -> None:
    spans = [each for each in usual_steps() if each.step != 1]
    assert max(each.length_ns for each in gaps_of(trace_of(spans, pp=2))) < 60
