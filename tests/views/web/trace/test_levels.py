"""Levels of detail: each bucket holds exactly the time that each class of spans fills of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.action import Action, ActionKind, Span
from serried.trace.model.trace import Host, Trace
from serried.views.web.trace import levels as trace_levels
from serried.views.web.trace.levels import Levels, as_bytes
from serried.views.web.trace.table import TraceTable
from tests.trace.recorded_run import Run, table

RUN = Run(pp=2)
F = Action(ActionKind.F, 0, 0)
Times = list[tuple[int, int, int]]
"""Rank, start and end of each span."""


def traced(times: Times) -> Trace:
    """Returns a trace of spans at ``times``, by rank and then by start."""
    spans = [Span(rank, F, 0, start, end) for rank, start, end in sorted(times)]
    host = Host("a", (0, 1), 0)
    return Trace("run", RUN.job, table(spans), 0, (host,), (0, 1), (), (), (), None)


def levels_of(times: Times, classes: list[int] | None = None) -> Levels:
    of = TraceTable.of(traced(times))
    numbers = np.zeros(len(of)) if classes is None else np.array(classes)
    return Levels.of(of, numbers.astype(np.uint8), 2)


def filled_between(times: Times, rank: int, low: int, high: int) -> int:
    inside = (min(e, high) - max(s, low) for r, s, e in times if r == rank)
    return sum(each for each in inside if each > 0)


TRACK = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 40)), min_size=1, max_size=30)


def laid(gaps: list[tuple[int, int]], rank: int) -> Times:
    """Returns spans one after another: a gap, then a length, and so on."""
    times, at = [], 0
    for gap, length in gaps:
        times.append((rank, at + gap, at + gap + length))
        at += gap + length
    return times


@given(TRACK, TRACK, st.integers(0, 7), st.integers(0, 5), st.integers(1, 40))
def test_buckets_hold_exactly_what_lies_in_them(
    one: list[tuple[int, int]], other: list[tuple[int, int]], bits: int, first: int, count: int
) -> None:
    times = laid(one, 0) + laid(other, 1)
    filled = levels_of(times).filled(np.array([0, 1]), bits=bits, first=first, last=first + count)
    for rank in (0, 1):
        for bucket in range(count):
            low = (first + bucket) << bits
            expected = filled_between(times, rank, low, low + (1 << bits))
            assert filled[rank, bucket].tolist() == [expected, 0]


def test_each_class_is_counted_by_itself() -> None:
    levels = levels_of([(0, 0, 6), (0, 6, 10), (0, 12, 16)], classes=[0, 1, 0])
    filled = levels.filled(np.array([0]), bits=3, first=0, last=2)
    assert filled.tolist() == [[[6, 2], [4, 2]]]


def test_the_levels_above_the_base_are_its_sums() -> None:
    levels = levels_of(laid([(1, 3)] * 200, 0))
    assert len(levels.sums) > 3
    for below, above in zip(levels.sums, levels.sums[1:], strict=False):
        assert above.sum() == below.sum()
    assert levels.sums[-1].shape[1] == 1


def test_many_spans_are_counted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    times = laid([(1, 3)] * 200, 0) + laid([(2, 5)] * 150, 1)
    whole = levels_of(times)
    monkeypatch.setattr(trace_levels, "_SPANS_AT_ONCE", 37)
    parts = levels_of(times)
    assert [each.tolist() for each in parts.sums] == [each.tolist() for each in whole.sums]


def test_tracks_are_added_up_by_row_at_every_level() -> None:
    levels = levels_of(laid([(1, 3)] * 200, 0) + laid([(2, 5)] * 150, 1))
    both = np.array([0, 1])
    for bits in (1, levels.base_bits, levels.base_bits + 1):
        single = levels.filled(both, bits=bits, first=1, last=7)
        added = levels.added(both, np.zeros(2, dtype=np.int64), 1, bits=bits, first=1, last=7)
        assert added[0].tolist() == single.sum(axis=0).tolist()


def test_a_span_of_no_time_is_still_to_be_seen() -> None:
    levels = levels_of([(0, 0, 100), (0, 150, 150), (0, 300, 400)])
    shares = as_bytes(levels.filled(np.array([0]), bits=6, first=2, last=3), 64)
    assert shares[0, 0].tolist() == [round(255 / 64), 0]


def test_shares_are_bytes_and_what_is_there_at_all_is_never_0() -> None:
    filled = np.array([[[100, 0], [50, 50], [0.01, 0], [0, 0]]], dtype=np.float32)
    assert as_bytes(filled, 100).tolist() == [[[255, 0], [128, 128], [1, 0], [0, 0]]]


def test_lanes_that_are_busy_at_once_fill_no_more_than_all() -> None:
    filled = np.array([[[100, 100]]], dtype=np.float32)
    assert as_bytes(filled, 100).tolist() == [[[128, 128]]]
