"""Throughput counts what all replicas finish between the starts of steps that follow."""

from __future__ import annotations

import pytest

from serried.action import Span
from serried.trace.measure.throughput import Throughput, throughput
from serried.trace.model.trace import Trace
from tests.trace.traced_run import compute, trace_of


def stepped(starts: dict[int, int], *, dp: int = 2) -> Trace:
    """Returns a trace of steps of 100 ms with two microbatches on ``dp`` ranks."""
    spans: list[Span] = []
    for step, start_ms in starts.items():
        for rank in range(dp):
            for microbatch in range(2):
                begin = (start_ms + 50 * microbatch) * 1_000_000
                name = f"0F{microbatch}"
                spans.append(compute(rank, name, begin, begin + 50_000_000, step=step))
    return trace_of(spans, pp=1, dp=dp)


def measured(trace: Trace, tokens: int | None = None) -> Throughput:
    found = throughput(trace, trace.spans, tokens_per_microbatch=tokens)
    assert found is not None
    return found


def test_a_step_lasts_from_its_start_to_the_next_ones() -> None:
    found = measured(stepped({3: 0, 4: 200, 5: 400}))
    assert (found.period_ns, found.has_gaps, found.jitter) == (200e6, True, 0)
    assert found.microbatches_per_step == 4
    assert found.microbatches_per_s == pytest.approx(20)
    assert found.tokens_per_s is None


def test_steps_that_do_not_follow_one_another_last_as_long_as_their_spans() -> None:
    found = measured(stepped({3: 0, 7: 200_000}))
    assert (found.period_ns, found.has_gaps) == (100e6, False)
    assert found.microbatches_per_s == pytest.approx(40)


def test_tokens_are_those_of_a_microbatch_that_the_user_names() -> None:
    assert measured(stepped({0: 0, 1: 200}), tokens=4096).tokens_per_s == pytest.approx(81_920)


def test_uneven_steps_are_jitter() -> None:
    assert measured(stepped({0: 0, 1: 100, 2: 400})).jitter == pytest.approx(0.5)


def test_nothing_recorded_is_no_throughput() -> None:
    trace = stepped({0: 0})
    assert throughput(trace, trace.spans.where(trace.spans.step > 0)) is None
