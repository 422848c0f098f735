"""Why a span was late: the ranks along the way to it, whose parts add up to its lateness."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serried.action import ActionKind
from serried.trace.measure.lateness import BEGAN, BETWEEN, LONGER, MESSAGE, LatenessCause, why_late
from serried.trace.measure.overlay import overlay_of
from serried.trace.model.trace import Trace
from tests.trace.measure.test_overlay import EXTRA, slow_once
from tests.trace.simulated_run import FORWARD, row_of, simulated_run


@pytest.fixture(scope="module")
def slow() -> Trace:
    return simulated_run(forward=slow_once)


def test_the_rank_that_took_longer_is_named_wherever_it_is_felt(slow: Trace) -> None:
    overlay = overlay_of(slow)
    for rank, action in ((4, "2B3"), (0, "0B7"), (2, "1B5")):
        late = why_late(slow.spans, overlay, row_of(slow, rank, action, step=1))
        assert late is not None
        assert late.late_ns == EXTRA
        assert late.causes == (LatenessCause(4, LONGER, EXTRA, 1),)


def test_a_span_on_time_has_no_cause_even_if_it_took_longer(slow: Trace) -> None:
    late = why_late(slow.spans, overlay_of(slow), row_of(slow, 4, "2F3", step=1))
    assert late is not None
    assert (late.late_ns, late.longer_ns, late.planned_ns) == (0, EXTRA, FORWARD)
    assert late.causes == ()


def test_gaps_are_told_apart_by_where_what_was_waited_for_ran() -> None:
    trace = simulated_run(pp=2, dp=1, num_microbatches=2, num_steps=1)
    spans, late_by = trace.spans, 300_000
    # All that begins with or after rank 1's first forward is late: its message took so long.
    moved = spans.start_ns >= spans.start_ns[row_of(trace, 1, "1F0")]
    moved &= ~((spans.rank == 0) & (spans.kind == ActionKind.F))
    later = spans.where(np.ones(len(spans), dtype=np.bool_))
    later.start_ns[moved] += late_by
    later.end_ns[moved] += late_by
    last = row_of(trace, 0, "0B0")
    late = why_late(later, overlay_of(trace), last)
    assert late is not None
    assert late.causes == (LatenessCause(1, MESSAGE, late_by, 1),)

    at = row_of(trace, 0, "0B1")
    later.start_ns[at] += 50_000
    late = why_late(later, overlay_of(trace), at)
    assert late is not None
    assert {(each.rank, each.what, each.ns) for each in late.causes} >= {(1, MESSAGE, late_by)}
    assert sum(each.ns for each in late.causes) == late_by + 50_000


def test_a_pipeline_that_began_late_is_said_to_have(slow: Trace) -> None:
    spans = slow.spans
    moved = np.where((spans.rank % 2 == 1) & (spans.step == 0), 70_000, 0)
    later = dataclasses.replace(spans, start_ns=spans.start_ns + moved, end_ns=spans.end_ns + moved)
    late = why_late(later, overlay_of(slow), row_of(slow, 3, "1B0"))
    assert late is not None
    assert late.causes == (LatenessCause(1, BEGAN, 70_000, 1),)


def test_a_pause_of_a_rank_lies_between_its_actions() -> None:
    trace = simulated_run(pp=1, dp=1, num_microbatches=2, num_steps=1)
    spans = trace.spans
    moved = np.where(np.arange(len(spans)) >= 2, 10_000, 0)
    later = dataclasses.replace(spans, start_ns=spans.start_ns + moved, end_ns=spans.end_ns + moved)
    late = why_late(later, overlay_of(trace), 3)
    assert late is not None
    assert late.causes == (LatenessCause(0, BETWEEN, 10_000, 1),)


def test_what_the_plan_lacks_has_no_lateness(slow: Trace) -> None:
    spans = dataclasses.replace(slow.spans, step=slow.spans.step + 9)
    assert why_late(spans, overlay_of(slow), 0) is None


@settings(max_examples=20)
@given(st.lists(st.integers(1, 5), min_size=24, max_size=24), st.integers(0, 47))
def test_the_causes_add_up_to_the_lateness(times: list[int], row: int) -> None:
    trace = simulated_run(
        pp=3, dp=1, num_microbatches=8, num_steps=1, forward=lambda _p, _s, s, m: times[8 * s + m]
    )
    late = why_late(trace.spans, overlay_of(trace), row)
    assert late is not None
    assert sum(each.ns for each in late.causes) == late.late_ns
