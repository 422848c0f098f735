"""Finding spans by what they are, in the order in which they began."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from serried.action import ActionKind
from serried.trace.measure.find import Wish, find
from serried.trace.model.trace import Trace
from tests.trace.simulated_run import simulated_run


@pytest.fixture(scope="module")
def trace() -> Trace:
    return simulated_run()


def names(trace: Trace, wish: Wish) -> list[tuple[int, str, int]]:
    return [
        (span.rank, str(span.action), span.step) for span in trace.spans.where(find(trace, wish))
    ]


def test_every_part_of_a_wish_narrows_what_is_found(trace: Trace) -> None:
    forwards = frozenset({ActionKind.F})
    assert len(find(trace, Wish())) == len(trace.spans)
    assert len(find(trace, Wish(kinds=forwards))) == 3 * 8 * 8
    assert len(find(trace, Wish(kinds=forwards, rank=4))) == 3 * 8
    assert names(trace, Wish(kinds=forwards, stage=3, microbatch=2, step=1)) == [
        (6, "3F2", 1),
        (7, "3F2", 1),
    ]
    assert len(find(trace, Wish(rank=99))) == 0


def test_what_is_found_stands_by_start_and_then_by_rank(trace: Trace) -> None:
    rows = find(trace, Wish(microbatch=5))
    keys = [(span.start_ns, span.rank) for span in trace.spans.where(rows)]
    assert keys == sorted(keys)


def test_a_node_is_that_of_its_ranks(trace: Trace) -> None:
    job = dataclasses.replace(trace.job, gpus_per_node=2)
    rows = find(dataclasses.replace(trace, job=job), Wish(node=1))
    assert set(trace.spans.rank[rows]) == {2, 3}


def test_a_user_s_own_span_is_found_by_a_part_of_its_name(trace: Trace) -> None:
    kind = np.where(np.arange(len(trace.spans)) < 2, ActionKind.SPAN, trace.spans.kind)
    spans = dataclasses.replace(
        trace.spans,
        kind=kind.astype(np.int32),
        peer=np.arange(len(kind), dtype=np.int32) % 2,
    )
    named = dataclasses.replace(trace, spans=spans, names=("Load data", "log"))
    assert find(named, Wish(name="DATA")).tolist() == [0]
    assert len(find(named, Wish(name="nothing"))) == 0
