"""Sequences of varying length make steps longer, and no rank is at fault."""

from __future__ import annotations

from serried.diagnose.stragglers.of_trace import trace_causes
from tests.diagnose.stragglers.straggler_runs import nothing, on_a_busy_host, pipelines, unequal


def test_microbatches_of_unequal_length_are_told_and_no_rank_is_named() -> None:
    (cause,) = trace_causes(unequal(1, spread=0.4))

    assert (cause.kind, cause.ranks) == ("sequence_length", ())
    assert cause.cost is not None
    assert 0.1 < cause.cost < 0.5


def test_a_slow_rank_is_no_unequal_length() -> None:
    trace = pipelines(lambda p, t, s, m: 1.5 if (p, s) == (1, 2) else 1.0, 1, steps=12)
    assert [each.kind for each in trace_causes(trace)] == ["slow_gpu"]


def test_equal_microbatches_are_not_told() -> None:
    assert list(trace_causes(pipelines(nothing, 4, steps=12))) == []


def test_stalls_of_a_few_microbatches_are_no_unequal_length() -> None:
    assert "sequence_length" not in {
        each.kind for each in trace_causes(on_a_busy_host(1, stalls=2))
    }


def test_neighbours_that_are_long_alike_are_no_unequal_length() -> None:
    kinds = {each.kind for each in trace_causes(on_a_busy_host(1, spells=0.6))}
    assert "sequence_length" not in kinds
