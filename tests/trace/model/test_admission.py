"""Whatever order a file is in, its spans come in by rank and time, and damaged ones not at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from serried.action import ActionKind, Spans
from serried.errors import InputError
from serried.trace.formats.foreign import ForeignSpan, foreign_trace, pipelines, spans_of
from serried.trace.model.laid_out import laid_out
from serried.trace.model.trace import Trace
from tests.trace.any_run import any_rows


def columns_of(rows: list[ForeignSpan]) -> Spans:
    """Returns rows as columns, in the order in which they stand."""
    table = np.array([tuple(row) for row in rows], dtype=np.int64).T
    columns = dict(zip(ForeignSpan._fields, table, strict=True))
    return Spans(
        **{
            name: column if name.endswith("_ns") else column.astype(np.int32)
            for name, column in columns.items()
        }
    )


def trace_of(rows: list[ForeignSpan], spans: Spans) -> Trace:
    world = 1 + max(row.rank for row in rows)
    return foreign_trace("any", pipelines(rows, world, None), {"": range(world)}, spans)


@given(any_rows())
def test_spans_stand_by_rank_and_time_in_whatever_order_they_came(rows: list[ForeignSpan]) -> None:
    spans = trace_of(rows, columns_of(rows)).spans
    keys = list(zip(spans.rank, spans.start_ns, spans.end_ns, strict=True))
    assert keys == sorted(keys)
    first = min(row.start_ns for row in rows)
    given_rows = [(r.start_ns - first, r.rank, r.stage, r.kind, r.microbatch, r.step) for r in rows]
    columns = (spans.start_ns, spans.rank, spans.stage, spans.kind, spans.microbatch, spans.step)
    assert sorted(zip(*(column.tolist() for column in columns), strict=True)) == sorted(given_rows)


DAMAGED = {
    "rank": (4, "rank 4, outside the job's 4 ranks"),
    "kind": (99, "of kind 99, which is none"),
    "stage": (-2, "has stage -2"),
    "microbatch": (2**30, "has microbatch 1073741824"),
    "peer": (-7, "has peer -7"),
    "start_ns": (2**62, "start_ns 4611686018427387904 is beyond"),
    "end_ns": (-5, "ends 5 ns before it begins"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_span_that_no_job_has_is_refused_by_name(name: str) -> None:
    rows = [ForeignSpan(rank, rank, ActionKind.F, 0, 0, 0, 10) for rank in range(4)]
    trace = foreign_trace("any", laid_out("megatron", 4, None), {"": range(4)}, spans_of(rows))
    value, sentence = DAMAGED[name]
    column = getattr(trace.spans, name).copy()
    column[2] = value
    with pytest.raises(InputError, match=sentence):
        replace(trace, spans=replace(trace.spans, **{name: column}))


def test_a_span_of_a_rank_that_wrote_nothing_is_refused() -> None:
    rows = [ForeignSpan(rank, 0, ActionKind.F, 0, 0, 0, 10) for rank in (0, 2)]
    layout = laid_out("megatron", 4, {"dp": 4})
    trace = foreign_trace("any", layout, {"": range(4)}, spans_of(rows))
    assert (trace.ranks, trace.missing) == ((0, 2), (1, 3))
    with pytest.raises(InputError, match="holds spans of rank 2, of which it says"):
        replace(trace, ranks=(0, 1))
