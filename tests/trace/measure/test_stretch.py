"""A stretch of time: what ranks did in it, told apart to the nanosecond."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serried.action import COMPUTE, ActionKind
from serried.trace.measure.statistics import measure
from serried.trace.measure.stretch import BETWEEN_STEPS, StepWindows, Stretch, measure_stretch
from serried.trace.merge.in_memory import merge
from serried.trace.model.trace import Trace
from tests.trace.recorded_run import Run, table
from tests.trace.traced_run import compute

RUN = Run(pp=4, dp=2, num_microbatches=8, num_steps=3)
MS = 1_000_000


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return merge([RUN.write(tmp_path_factory.mktemp("run"))])


def stretch(trace: Trace, begin: int, end: int, ranks: list[int] | None = None) -> Stretch:
    asked = np.array(range(trace.job.world_size) if ranks is None else ranks)
    return measure_stretch(trace.spans, StepWindows.of(trace.spans), (begin, end), asked)


def test_spans_count_as_far_as_they_lie_inside(trace: Trace) -> None:
    # Rank 0 of 1F1B: F0 to F3 in the first four milliseconds, then it waits for B0.
    found = stretch(trace, 500_000, 3_500_000, [0])
    forward = found.kinds[0]
    assert (forward.kind, forward.num_spans, forward.time_ns) == (ActionKind.F, 4, 3 * MS)
    assert (found.compute_ns, sum(found.idle_ns.values())) == (3 * MS, 0)
    assert (found.length_ns, found.total_ns, found.num_ranks) == (3 * MS, 3 * MS, 1)
    assert found.microbatches == 3
    assert str(found.longest[0].action) == "0F0"


def test_a_wait_has_its_cause_though_the_sender_was_not_asked_about(trace: Trace) -> None:
    found = stretch(trace, 5 * MS, 6 * MS, [0])
    assert found.compute_ns == 0
    assert found.idle_ns["late_peer"] == MS
    assert str(found.longest[0].action) == "0RECV_B0"


def test_a_whole_step_s_causes_are_those_of_the_statistics(trace: Trace) -> None:
    windows, stats = StepWindows.of(trace.spans), measure(trace)
    found = stretch(trace, int(windows.first_ns[1]), int(windows.last_ns[1]))
    assert found.compute_ns == RUN.busy_ns
    for cause, ns in found.idle_ns.items():
        if cause != BETWEEN_STEPS:
            mean = sum(rank.idle_ns[cause] for rank in stats.ranks)
            assert ns == pytest.approx(mean)
    assert found.idle_ns[BETWEEN_STEPS] == 0


def test_what_lies_between_steps_is_idle_of_its_own_kind(trace: Trace) -> None:
    windows = StepWindows.of(trace.spans)
    found = stretch(trace, int(windows.last_ns[0]), int(windows.first_ns[1]))
    assert found.idle_ns[BETWEEN_STEPS] == found.total_ns
    assert [each.kind for each in found.kinds] == [ActionKind.OPTIMIZER]


def test_a_stretch_past_the_end_holds_nothing(trace: Trace) -> None:
    found = stretch(trace, 10**12, 10**12 + 5)
    assert (found.num_spans, found.kinds, len(found.longest)) == (0, (), 0)
    assert found.idle_ns[BETWEEN_STEPS] == 5 * 8


def test_overlapping_computations_of_a_rank_count_once(trace: Trace) -> None:
    spans = trace.spans
    doubled = spans.where(np.sort(np.concatenate([np.arange(len(spans))] * 2)))
    found = measure_stretch(doubled, StepWindows.of(doubled), (0, 20 * MS), np.arange(8))
    once = stretch(trace, 0, 20 * MS)
    assert found.num_spans == 2 * once.num_spans
    assert (found.compute_ns, found.kinds[0].time_ns) == (
        once.compute_ns,
        2 * once.kinds[0].time_ns,
    )


@settings(max_examples=25)
@given(
    st.integers(0, 110 * MS),
    st.integers(1, 40 * MS),
    st.sets(st.integers(0, 7), min_size=1).map(sorted),
)
def test_computing_and_idle_time_fill_every_stretch(
    trace: Trace, begin: int, length: int, ranks: list[int]
) -> None:
    found = stretch(trace, begin, begin + length, ranks)
    assert found.compute_ns + sum(found.idle_ns.values()) == found.total_ns
    assert all(ns >= 0 for ns in found.idle_ns.values())
    compute = sum(each.time_ns for each in found.kinds if each.kind in COMPUTE)
    assert found.compute_ns == compute


def test_ranks_that_share_a_microbatch_count_it_once(tmp_path: Path) -> None:
    run = Run(pp=2, tp=2, dp=2, num_microbatches=4, num_steps=1)
    trace = merge([run.write(tmp_path)])
    windows = StepWindows.of(trace.spans)
    moments, ranks = (0, 100 * MS), np.arange(8)
    # Megatron's order: ranks 0 and 1 are tensor parallel, 0 and 2 data parallel.
    replica = np.array([0, 0, 1, 1, 0, 0, 1, 1])
    alone = measure_stretch(trace.spans, windows, moments, ranks)
    shared = measure_stretch(trace.spans, windows, moments, ranks, replica)
    half = measure_stretch(trace.spans, windows, moments, ranks[[0, 4]], replica)
    assert (alone.microbatches, shared.microbatches, half.microbatches) == (16, 8, 4)


@given(st.data())
def test_a_stretch_of_steps_that_overlap_adds_up_and_counts_no_moment_twice(
    data: st.DataObject,
) -> None:
    def at(high: int) -> int:
        return data.draw(st.integers(0, high))

    spans = []
    for rank in range(2):
        begin = at(30)
        for step in range(3):
            end = begin + 1 + at(20)
            spans.append(compute(rank, "0F0", begin, end, step))
            waited = begin + at(10)
            spans.append(compute(rank, "0ALL_REDUCE0", waited, waited + at(10), step))
            begin = end + at(10)
    every = table(spans)
    every = every.where(np.lexsort((every.start_ns, every.rank)))
    begin = at(60)
    found = measure_stretch(every, StepWindows.of(every), (begin, begin + 1 + at(60)), np.arange(2))
    assert found.compute_ns + sum(found.idle_ns.values()) == found.total_ns
    assert min(found.idle_ns.values()) >= 0
