"""A plan laid over a run: it begins with each step, and says of every span how late it was."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from serried.action import COMPUTE, ActionKind
from serried.errors import InputError
from serried.trace.measure.overlay import overlay_of
from serried.trace.model.trace import Trace
from tests.trace.simulated_run import FORWARD, row_of, simulated_run

EXTRA = 400_000


def slow_once(pipeline: int, step: int, stage: int, microbatch: int) -> int:
    """Rank 4 takes longer over its fourth forward of the middle step."""
    is_it = (pipeline, step, stage, microbatch) == (0, 1, 2, 3)
    return FORWARD + EXTRA * is_it


@pytest.fixture(scope="module")
def slow() -> Trace:
    return simulated_run(forward=slow_once)


def test_a_run_that_went_as_planned_is_nowhere_late() -> None:
    trace = simulated_run()
    overlay = overlay_of(trace)
    assert (overlay.schedule, overlay.steps.tolist()) == ("1f1b", [0, 1, 2])
    assert set(overlay.late_ns(trace.spans)) == {0.0}
    assert set(overlay.longer_ns(trace.spans)) == {0.0}
    starts = [trace.spans.start_ns[trace.spans.step == step].min() for step in range(3)]
    assert overlay.starts_ns.tolist() == starts


def test_what_follows_a_slow_action_is_as_late_as_it_was_long(slow: Trace) -> None:
    overlay = overlay_of(slow)
    late, longer = overlay.late_ns(slow.spans), overlay.longer_ns(slow.spans)
    at = row_of(slow, 4, "2F3", step=1)
    assert (late[at], longer[at]) == (0, EXTRA)
    assert np.count_nonzero(longer) == 1
    assert late[row_of(slow, 4, "2B3", step=1)] == EXTRA
    assert late[row_of(slow, 0, "0B7", step=1)] == EXTRA
    other_pipeline = slow.spans.rank % 2 == 1
    assert not late[other_pipeline].any()
    assert not late[slow.spans.step != 1].any()


def test_spans_that_the_plan_lacks_have_no_lateness(slow: Trace) -> None:
    spans = slow.spans
    strange = dataclasses.replace(
        spans,
        kind=np.where(spans.microbatch == 0, ActionKind.SPAN, spans.kind).astype(np.int32),
        microbatch=np.where(spans.microbatch == 1, 900, spans.microbatch).astype(np.int32),
    )
    late = overlay_of(slow).late_ns(strange)
    assert np.isnan(late[spans.microbatch < 2]).all()
    assert not np.isnan(late[spans.microbatch > 1]).any()
    of_another_step = dataclasses.replace(spans, step=spans.step + 7)
    assert np.isnan(overlay_of(slow).late_ns(of_another_step)).all()


def unnamed(trace: Trace) -> Trace:
    return dataclasses.replace(trace, job=dataclasses.replace(trace.job, schedule="unknown"))


def test_a_run_that_names_no_schedule_has_the_plan_of_its_order(slow: Trace) -> None:
    named, found = overlay_of(slow), overlay_of(unnamed(slow))
    assert found.schedule == "1f1b"
    assert found.late_ns(slow.spans).tolist() == named.late_ns(slow.spans).tolist()


def test_without_a_known_order_or_a_computation_there_is_no_plan(slow: Trace) -> None:
    spans = slow.spans
    shuffled = dataclasses.replace(spans, microbatch=(spans.microbatch * 3) % 8)
    with pytest.raises(InputError, match="simulated does not say which schedule ran, so there is"):
        overlay_of(dataclasses.replace(unnamed(slow), spans=shuffled))
    waits = spans.where(~np.isin(spans.kind, list(COMPUTE)))
    with pytest.raises(InputError, match="simulated holds no forward and no backward, so there is"):
        overlay_of(dataclasses.replace(slow, spans=waits))
    with pytest.raises(InputError, match="the spans of simulated hold the waits for their inputs"):
        overlay_of(dataclasses.replace(slow, waits_inside=True))


def test_a_run_of_one_stage_has_a_plan_too() -> None:
    trace = simulated_run(pp=1, dp=2, num_microbatches=3)
    overlay = overlay_of(trace)
    assert overlay.pipeline.tolist() == [0, 1]
    assert not overlay.late_ns(trace.spans).any()
