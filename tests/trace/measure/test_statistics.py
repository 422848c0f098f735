"""Statistics of runs whose bubble, waits and messages are known exactly."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.action import Action, ActionKind, Span
from serried.pipeline import ideal_bubble
from serried.trace.measure.statistics import Statistics, StepStatistics, measure
from serried.trace.merge.in_memory import merge
from serried.trace.model.messages import Alignment
from serried.trace.model.record import UNKNOWN_SCHEDULE, TracedJob
from serried.trace.model.trace import Host, Trace
from tests.trace.recorded_run import BACKWARD_NS, FORWARD_NS, Clock, Run, table

RUN = Run(pp=4, tp=1, dp=2, num_microbatches=8, num_steps=3)


def traced(spans: list[Span], job: TracedJob, *, ranks: tuple[int, ...] | None = None) -> Trace:
    """Returns a trace of ``spans`` on one host, without files."""
    everyone = tuple(range(job.world_size)) if ranks is None else ranks
    return Trace(
        run="run-a",
        job=job,
        spans=table(spans),
        base_ns=0,
        hosts=(Host("a", everyone, 0),),
        ranks=everyone,
        torn=(),
        missing=tuple(sorted(set(range(job.world_size)) - set(everyone))),
        warnings=(),
        layout=None,
    )


def measured(run: Run, keep: Callable[[Span], bool] = lambda span: True) -> Statistics:
    return measure(traced([span for span in run.spans() if keep(span)], run.job))


def told_apart(stats: Statistics) -> Statistics:
    """Returns ``stats`` without what each kind of work took."""
    ranks = tuple(dataclasses.replace(each, by_work_ns={}) for each in stats.ranks)
    return dataclasses.replace(stats, ranks=ranks)


def compute(rank: int, action: str, start: int, end: int, step: int = 0) -> Span:
    return Span(rank, Action.parse(action), step, start, end)


# ----------------------------------------------------------------------- bubble


def test_the_bubble_of_a_drawn_step_is_its_idle_share() -> None:
    #        0    2    4    6    8    10   12
    # rank 0 [0F0][0F1]          [0B0]  [0B1]      busy 8 of 14
    # rank 1      [1F0][1B0][1F1][1B1]             busy 8 of 14
    spans = [
        compute(0, "0F0", 0, 2), compute(0, "0F1", 2, 4),
        compute(0, "0B0", 8, 10), compute(0, "0B1", 12, 14),
        compute(1, "1F0", 2, 4), compute(1, "1B0", 4, 6),
        compute(1, "1F1", 6, 8), compute(1, "1B1", 8, 10),
    ]  # fmt: skip
    job = dataclasses.replace(Run(pp=2, num_microbatches=2).job, num_microbatches=2)

    stats = measure(traced(spans, job))

    assert stats.steps == (StepStatistics(0, 14, 16, 1 - 16 / 28),)
    assert [rank.compute_ns for rank in stats.ranks] == [8, 8]
    assert [rank.other_ns for rank in stats.ranks] == [6, 6]


@given(
    p=st.integers(2, 5),
    m=st.integers(1, 9),
    dp=st.integers(1, 3),
    steps=st.integers(1, 3),
)
def test_1f1b_with_equal_stages_measures_exactly_its_ideal_bubble(
    p: int, m: int, dp: int, steps: int
) -> None:
    run = Run(pp=p, dp=dp, num_microbatches=m, num_steps=steps)

    stats = measured(run)

    assert stats.ideal == ideal_bubble(p, m) == Fraction(p - 1, m + p - 1)
    assert stats.bubble == pytest.approx(float(stats.ideal))
    assert [step.step for step in stats.steps] == list(range(steps))
    assert {step.window_ns for step in stats.steps} == {run.window_ns}
    assert {step.busy_ns for step in stats.steps} == {run.busy_ns}


def test_optimizer_and_gaps_between_steps_are_outside_the_window() -> None:
    without = measured(RUN, lambda span: span.action.kind != ActionKind.OPTIMIZER)

    assert told_apart(without) == told_apart(measured(RUN))


def test_split_backwards_count_as_computation() -> None:
    def split(span: Span) -> list[Span]:
        if span.action.kind != ActionKind.B:
            return [span]
        halves = (ActionKind.I, ActionKind.W)
        middle = (span.start_ns + span.end_ns) // 2
        times = ((span.start_ns, middle), (middle, span.end_ns))
        return [
            Span(span.rank, dataclasses.replace(span.action, kind=kind), span.step, *time)
            for kind, time in zip(halves, times, strict=True)
        ]

    spans = [part for span in RUN.spans() for part in split(span)]

    assert told_apart(measure(traced(spans, RUN.job))) == told_apart(measured(RUN))


def test_the_mean_is_over_steps_not_over_time() -> None:
    job = Run(pp=1, num_microbatches=1).job
    spans = [
        compute(0, "0F0", 0, 10), compute(0, "0B0", 10, 20),  # no idle time
        compute(0, "0F0", 100, 110, step=1), compute(0, "0B0", 170, 200, step=1),  # 60 of 100
    ]  # fmt: skip

    stats = measure(traced(spans, job))

    assert [step.bubble for step in stats.steps] == [0.0, pytest.approx(0.6)]
    assert stats.bubble == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("schedule", "is_known"), [("1F1B", True), ("gpipe", True), ("zbv", False)]
)
def test_the_ideal_is_given_only_where_it_has_the_closed_form(
    schedule: str, is_known: bool
) -> None:
    stats = measured(dataclasses.replace(RUN, schedule=schedule))

    assert (stats.ideal is not None) == is_known
    assert (stats.messages.expected_spans is not None) == is_known


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe", "unknown"])
def test_a_job_without_a_pipeline_has_no_ideal_bubble(schedule: str) -> None:
    stats = measured(Run(pp=1, dp=3, schedule=schedule))

    assert not stats.has_pipeline
    assert (stats.ideal, stats.messages.expected_spans) == (None, None)


# ----------------------------------------------------------------------- ranks


def test_each_rank_time_is_split_into_compute_wait_and_other() -> None:
    stats = measured(RUN)

    slot, m, p = FORWARD_NS + BACKWARD_NS, RUN.num_microbatches, RUN.pp
    assert {rank.compute_ns for rank in stats.ranks} == {m * slot}
    # Stage s is done s backwards before the window ends, and waits in the rest of the bubble.
    assert [rank.other_ns for rank in stats.ranks] == [(r // 2) * BACKWARD_NS for r in range(8)]
    assert {rank.receive_wait_ns + rank.other_ns for rank in stats.ranks} == {(p - 1) * slot}


@pytest.mark.parametrize(
    ("wait", "counted"),
    [((0, 105), 0), ((105, 115), 5), ((135, 900), 0), ((0, 50), 0), ((90, 300), 10)],
)
def test_a_wait_outside_the_window_or_behind_a_computation_does_not_count(
    wait: tuple[int, int], counted: int
) -> None:
    job = Run(pp=1, num_microbatches=1).job
    received = Span(0, Action.parse("0RECV_F0"), 0, *wait, 0)
    spans = [received, compute(0, "0F0", 100, 110), compute(0, "0B0", 120, 140)]

    (rank,) = measure(traced(spans, job)).ranks

    assert (rank.compute_ns, rank.receive_wait_ns, rank.other_ns) == (30, counted, 10 - counted)


# ----------------------------------------------------------------------- incomplete steps


@pytest.mark.parametrize("lost", ["0F0", "3B7", "2B4", "1F7"])
def test_a_step_that_one_rank_did_not_finish_is_left_out(lost: str) -> None:
    action = Action.parse(lost)

    stats = measured(RUN, lambda span: not (span.step == 2 and span.action == action))

    assert stats.left_out == (2,)
    assert [step.step for step in stats.steps] == [0, 1]
    assert stats.messages == measured(dataclasses.replace(RUN, num_steps=2)).messages


def test_a_rank_that_recorded_nothing_leaves_no_step_complete() -> None:
    stats = measured(RUN, lambda span: span.rank != 5)

    assert (stats.steps, stats.left_out, stats.ranks) == ((), (0, 1, 2), ())
    assert stats.bubble is None
    assert stats.messages.spans == 0


def test_a_window_of_steps_keeps_their_numbers() -> None:
    stats = measured(RUN, lambda span: span.step >= 1)

    assert [step.step for step in stats.steps] == [1, 2]
    assert stats.left_out == ()


def test_a_missing_file_leaves_the_other_ranks_measured() -> None:
    spans = [span for span in RUN.spans() if span.rank != 7]

    stats = measure(traced(spans, RUN.job, ranks=tuple(range(7))))

    assert stats.num_ranks == len(stats.ranks) == 7
    assert stats.bubble == pytest.approx(3 / 11)
    assert stats.messages.lone_sends == stats.messages.lone_receives == 3 * 8


def test_ranks_that_hold_several_stages_must_finish_them_all() -> None:
    job = dataclasses.replace(Run(pp=1, num_microbatches=1).job, schedule="interleaved")
    first = [compute(0, "0F0", 0, 1), compute(0, "1F0", 1, 2)]
    last = [compute(0, "1B0", 2, 3), compute(0, "0B0", 3, 4)]

    assert measure(traced(first + last, job)).left_out == ()
    assert measure(traced(first + last[:1], job)).left_out == (0,)


@pytest.mark.parametrize("halves", ["0I0", "0W0"])
def test_a_backward_of_which_only_one_half_was_done_is_not_finished(halves: str) -> None:
    job = Run(pp=1, num_microbatches=1).job
    spans = [compute(0, "0F0", 0, 1), compute(0, halves, 1, 2)]

    assert measure(traced(spans, job)).left_out == (0,)


def short_last_step(**lost: int) -> Statistics:
    """Returns the statistics of two data parallel ranks whose last step has half the microbatches.

    ``lost`` names one more action that a rank lacks in it.
    """
    run = Run(pp=1, dp=2, num_microbatches=4, num_steps=3)
    lacks = {(rank, action) for action, rank in lost.items()}

    def kept(span: Span) -> bool:
        has_it = span.action.microbatch < 2 and (span.rank, str(span.action)[-2:]) not in lacks
        return span.step < 2 or (has_it and (span.rank, span.action.kind.name) not in lacks)

    return measured(run, kept)


def test_a_last_step_of_fewer_microbatches_counts_once_its_optimizer_ran() -> None:
    stats = short_last_step()
    assert ([step.step for step in stats.steps], stats.left_out) == ([0, 1, 2], ())
    assert stats.steps[2].window_ns == stats.steps[1].window_ns // 2


@pytest.mark.parametrize("lost", ["F1", "B1", "OPTIMIZER"])
def test_a_short_step_that_one_rank_did_not_finish_is_left_out(lost: str) -> None:
    assert short_last_step(**{lost: 1}).left_out == (2,)


# ----------------------------------------------------------------------- messages


@pytest.mark.parametrize(("received", "violations"), [(8, 1), (9, 0), (15, 0), (25, 0)])
def test_a_message_may_arrive_while_it_is_sent_but_not_before(
    received: int, violations: int
) -> None:
    job = Run(pp=2, num_microbatches=1).job
    spans = [
        Span(0, Action.parse("0SEND_F0"), 0, 10, 20, 1),
        Span(1, Action.parse("1RECV_F0"), 0, 0, received, 0),
    ]

    assert measure(traced(spans, job)).alignment == Alignment(1, 1, violations)


def test_the_schedule_says_how_many_sends_and_receives_there_are() -> None:
    messages = measured(RUN).messages

    # 4 (p - 1) m for 2 pipelines and 3 steps
    assert messages.spans == messages.expected_spans == 4 * 3 * 8 * 2 * 3
    assert messages.pairs == messages.spans // 2
    assert (messages.lone_sends, messages.lone_receives) == (0, 0)


def test_a_lost_receive_leaves_its_send_alone() -> None:
    lost = Action.parse("2RECV_F4")

    messages = measured(RUN, lambda span: span.action != lost).messages

    assert (messages.lone_sends, messages.lone_receives) == (6, 0)
    assert messages.spans == (messages.expected_spans or 0) - 6


def test_clocks_of_one_host_are_certain_and_no_message_runs_backwards() -> None:
    alignment = measured(RUN).alignment

    assert alignment == Alignment(num_hosts=1, checked=288, causality_violations=0)
    assert alignment.uncertainty_us == 0


def test_messages_show_that_two_wall_clocks_disagree(tmp_path: Path) -> None:
    late = Clock("b", late_ns=-500_000_000)
    clocks = [Clock("a")] * 4 + [late] * 4

    alignment = measure(merge([RUN.write(tmp_path / "run", clocks=clocks)])).alignment

    # Host b's clock is half a second behind, more than the whole run: all that stages 1 to 2
    # send forward over the host boundary seems to arrive before it was sent.
    assert alignment.num_hosts == 2
    assert alignment.uncertainty_us is None
    assert alignment.causality_violations == 8 * 2 * 3
    assert alignment.checked == 288


# ----------------------------------------------------------------------- odd steps


def foreign(spans: list[Span], world_size: int) -> Statistics:
    """Returns the statistics of spans whose files do not say which schedule ran."""
    job = dataclasses.replace(Run(pp=world_size).job, schedule=UNKNOWN_SCHEDULE)
    return measure(traced(spans, job))


def test_a_step_that_only_went_forwards_ends_with_its_last_forward() -> None:
    stats = foreign([compute(0, "0F0", 0, 10), compute(1, "1F0", 10, 20)], 2)
    assert [(step.window_ns, step.bubble) for step in stats.steps] == [(20, 0.5)]


def test_steps_of_messages_alone_or_of_no_time_are_not_measured() -> None:
    sent = Span(0, Action.parse("0SEND_F0"), 0, 0, 5, 1)
    assert foreign([sent], 2).bubble is None
    stats = foreign([compute(0, "0F0", 5, 5), compute(0, "0B0", 5, 5)], 1)
    assert (stats.bubble, stats.left_out) == (None, (0,))


def test_computations_of_one_rank_that_intersect_are_busy_once() -> None:
    spans = [compute(0, "0F0", 0, 10), compute(0, "0F1", 5, 15), compute(0, "0B0", 15, 20)]
    stats = foreign([*spans, compute(1, "1F0", 0, 10)], 2)
    assert stats.bubble == pytest.approx(10 / 40)
    assert stats.bubbles is not None
    assert sum(stats.bubbles.causes.values()) == pytest.approx(stats.bubble)
    assert [rank.compute_ns for rank in stats.ranks] == [20, 10]


def test_a_rank_that_only_ran_its_optimizer_is_idle_once() -> None:
    spans = [compute(0, "0F0", 0, 10), compute(0, "0B0", 10, 30), compute(1, "OPTIMIZER", 40, 50)]
    stats = foreign(spans, 2)
    assert stats.bubble == pytest.approx(0.5)
    assert stats.bubbles is not None
    assert stats.bubbles.causes["warm_up"] == pytest.approx(0.5)
    assert sum(stats.bubbles.causes.values()) == pytest.approx(0.5)


# ----------------------------------------------------------------------- steps that overlap


def test_the_causes_add_up_to_the_bubble_where_steps_of_ranks_overlap() -> None:
    #        0    10   20   30
    # rank 0 [F][B][F][B]             step 1 from 10 on
    # rank 1 [F      ][B][F   ][B]    step 0 until 20
    spans = [
        compute(0, "0F0", 0, 5), compute(0, "0B0", 5, 10),
        compute(0, "0F0", 10, 15, step=1), compute(0, "0B0", 15, 18, step=1),
        compute(1, "0F0", 0, 15), compute(1, "0B0", 15, 20),
        compute(1, "0F0", 20, 28, step=1), compute(1, "0B0", 28, 30, step=1),
    ]  # fmt: skip
    job = dataclasses.replace(Run(pp=1, num_microbatches=1).job, world_size=2)

    stats = measure(traced(spans, job))

    # In step 0 rank 0 computes for step 1 until 18, and waits until 20.
    assert [step.window_ns for step in stats.steps] == [20, 20]
    assert [step.busy_ns for step in stats.steps] == [18 + 20, 8 + 20]
    assert stats.bubbles is not None
    assert stats.bubbles.of_makespan == stats.bubble == pytest.approx((2 / 40 + 12 / 40) / 2)
    assert sum(stats.bubbles.causes.values()) == pytest.approx(stats.bubble)


@given(st.data())
def test_causes_and_computing_add_up_whatever_overlaps(data: st.DataObject) -> None:
    """Draws steps of ranks that drift apart, and waits anywhere."""
    world, num_steps = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    waits = st.sampled_from(["0ALL_REDUCE0", "0REDUCE_GRAD", "0IN_FLIGHT0", "OPTIMIZER"])
    some = st.integers(0, 12)
    spans = []
    for rank in range(world):
        at = data.draw(some)
        for step in range(num_steps):
            for action in ("0F0", "0B0"):
                end = at + 1 + data.draw(some)
                spans.append(compute(rank, action, at, end, step))
                within = at + data.draw(some)
                waited = within + data.draw(some)
                spans.append(compute(rank, data.draw(waits), within, waited, step))
                at = end + data.draw(some)
    job = dataclasses.replace(Run(pp=1, num_microbatches=1).job, world_size=world)

    stats = measure(traced(spans, job))

    if stats.bubbles is not None:
        found = stats.bubbles
        assert sum(found.causes.values()) == pytest.approx(stats.bubble)
        assert min(found.causes.values()) >= 0
        assert 0 <= found.of_makespan <= 1 and 0 <= found.longest_window <= 1
        assert found.over_ideal >= 0
        window = sum(step.window_ns for step in stats.counted) / len(stats.counted)
        for each in stats.ranks:
            work = sum(each.by_work_ns[name] for name in ("forward", "backward", "weight"))
            assert work == pytest.approx(each.compute_ns)
            assert work + sum(each.idle_ns.values()) == pytest.approx(window)
            waiting = each.receive_wait_ns + each.exchange_wait_ns
            assert each.compute_ns + waiting + each.other_ns == pytest.approx(window)
            assert each.other_ns >= -1e-6


def test_a_step_in_which_ranks_did_nothing_but_wait_is_left_out() -> None:
    spans = [
        *(compute(0, "0F0", 0, 10), compute(0, "0ALL_GATHER0", 0, 20), compute(0, "0B0", 10, 20)),
        *(compute(0, "0F0", 30, 40, step=1), compute(0, "0B0", 40, 50, step=1)),
    ]

    stats = measure(traced(spans, Run(pp=1, num_microbatches=1).job))

    assert (stats.left_out, stats.bubble) == ((0,), 0)
