"""The period of a job without a pipeline: its parts add up to it, and data is told apart."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.action import Action, ActionKind, Span
from serried.trace.measure.ranks.period import PARTS, RankPeriod, StepPeriods, step_periods
from serried.trace.model.trace import Trace
from tests.trace.measure.ranks.test_slowest import MS, even, meeting, span
from tests.trace.measure.test_statistics import traced
from tests.trace.recorded_run import Run

DATA = Action(ActionKind.SPAN)


def job_of(spans: list[Span]) -> Trace:
    world = 1 + max(each.rank for each in spans)
    job = dataclasses.replace(Run(pp=1).job, world_size=world, sizes={"dp": world})
    return dataclasses.replace(traced(spans, job), names=("data", "other"))


def measured(spans: list[Span]) -> StepPeriods:
    trace = job_of(spans)
    found = step_periods(trace, np.unique(trace.spans.step))
    assert found is not None
    return found


def loaded(spans: list[Span], name: int = 0) -> list[Span]:
    """Returns ``spans`` with half a millisecond of loading before each forward, or of a name."""
    return [
        *spans,
        *(
            Span(each.rank, DATA, each.step, each.start_ns - MS // 2, each.start_ns, name)
            for each in spans
            if each.action.kind == ActionKind.F
        ),
    ]


def parts_of(each: RankPeriod) -> list[float]:
    return [getattr(each, f"{name}_ns") for name in PARTS]


@given(
    world=st.integers(1, 3),
    times=st.lists(st.lists(st.floats(0, 30), min_size=12, max_size=12), min_size=2, max_size=6),
)
def test_parts_add_up_to_the_period_whatever_they_are(world: int, times: list[list[float]]) -> None:
    own = even(world, len(times))
    for step, extra in enumerate(times):
        for at, name in enumerate(own):
            for rank in range(world):
                own[name][step][rank] += extra[4 * rank + at]
    for each in measured(loaded(meeting(own))).ranks:
        assert sum(parts_of(each)) == pytest.approx(each.period_ns)
        assert min(parts_of(each)) >= 0


def test_what_a_rank_waits_inside_its_backward_is_communication_and_no_computing() -> None:
    own = even(2)
    for row in own["loader"]:
        row[1] += 15
    early, late = measured(meeting(own)).ranks
    assert (early.compute_ns, late.compute_ns) == (30 * MS, 30 * MS)
    assert (early.communication_ns, late.communication_ns) == (16 * MS, 1 * MS)
    assert (early.before_ns, late.before_ns) == (1 * MS, 16 * MS)


def test_data_is_what_spans_of_that_name_cover_and_nothing_else_does() -> None:
    spans = meeting(even(2))
    found = measured(loaded(spans))
    assert found.has_data and found.loader is not None
    assert [(each.data_ns, each.before_ns) for each in found.ranks] == [(MS / 2, MS / 2)] * 2
    other = measured(loaded(spans, name=1))
    assert (other.has_data, other.loader) == (False, None)
    assert [each.before_ns for each in other.ranks] == [MS] * 2


def test_the_loader_is_the_rank_that_loads_longest() -> None:
    slow = [span(1, "0F0", 100 * step + 20, 100 * step + 30, step) for step in range(4)]
    fast = [span(0, "0F0", 100 * step + 20, 100 * step + 30, step) for step in range(4)]
    data = [
        Span(rank, DATA, step, (100 * step + begin) * MS, (100 * step + 20) * MS, 0)
        for step in range(4)
        for rank, begin in ((0, 15), (1, 5))
    ]
    found = measured([*slow, *fast, *data])
    assert found.loader is not None
    assert (found.loader.rank, found.loader.data_ns) == (1, 15 * MS)


def test_a_step_whose_predecessor_was_not_recorded_is_left_out_where_others_are() -> None:
    spans = meeting(even(2, 6))
    assert measured(spans).steps == (1, 2, 3, 4, 5)
    apart = [each for each in spans if each.step in (0, 2, 4)]
    assert measured(apart).steps == (0, 2, 4)


def test_steps_of_the_start_are_in_no_mean() -> None:
    own = even(2, 8)
    for name in ("F", "B"):
        own[name][1] = [200.0, 200.0]
    found = measured(meeting(own))
    assert found.steps == (2, 3, 4, 5, 6, 7)
    assert found.mean.compute_ns == 30 * MS
