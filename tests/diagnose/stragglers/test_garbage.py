"""Recorded garbage collections: whoever collects while others wait is named, with what it costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from serried.action import ActionKind, Spans
from serried.diagnose.diagnosis import Cause
from serried.diagnose.stragglers.of_trace import trace_causes
from serried.trace.measure.ranks.garbage import COLLECTION
from serried.trace.model.trace import Trace
from tests.diagnose.stragglers.straggler_runs import nothing, pipelines, step_ns

PP, STEPS = 4, 40
PAUSE = 12.0
"""By what factor a forward is longer in which a rank collects."""


def collected(when: dict[tuple[int, int], int], *, dp: int = 1) -> Trace:
    """Returns a run in which ranks collect in a microbatch of a step, by step and rank."""

    def slower(pipeline: int, step: int, stage: int, microbatch: int) -> float:
        return PAUSE if when.get((step, stage * dp + pipeline)) == microbatch else 1.0

    trace = pipelines(slower, 3, pp=PP, dp=dp, steps=STEPS)
    spans = trace.spans
    rows = [
        row
        for row in np.flatnonzero(spans.kind == ActionKind.F).tolist()
        if when.get((int(spans.step[row]), int(spans.rank[row]))) == spans.microbatch[row]
    ]
    forwards = spans.where(np.array(rows))
    usual = (forwards.end_ns - forwards.start_ns) / PAUSE
    found = replace(
        forwards,
        kind=np.full(len(rows), ActionKind.SPAN, dtype=np.int32),
        peer=np.full(len(rows), 1, dtype=np.int32),
        start_ns=forwards.start_ns + usual.astype(np.int64),
    )
    return replace(trace, spans=Spans.joined([spans, found]), names=("", COLLECTION))


def told(trace: Trace) -> Cause:
    (cause,) = trace_causes(trace)
    return cause


@pytest.mark.parametrize("slow", range(PP))
def test_a_rank_that_collects_alone_in_its_stage_is_named_with_what_it_costs(slow: int) -> None:
    trace = collected({(step, slow): 3 for step in range(2, STEPS, 5)})
    cause = told(trace)

    assert (cause.kind, cause.ranks) == ("garbage_collection", (slow,))
    usual = step_ns(pipelines(nothing, 3, pp=PP, dp=1, steps=STEPS))
    assert cause.cost == pytest.approx(1 - usual / step_ns(trace), abs=0.02)
    assert "gc.collect" in str(cause.cures[0])


def test_a_rank_that_collects_in_every_step_is_not_taken_for_a_slow_device() -> None:
    cause = told(collected({(step, 1): 3 for step in range(STEPS)}, dp=2))
    assert (cause.kind, cause.ranks) == ("garbage_collection", (1,))


def test_collections_now_on_this_rank_and_now_on_that_name_nobody() -> None:
    cause = told(collected({(step, step % 8): 3 for step in range(STEPS)}, dp=2))
    assert (cause.kind, cause.ranks) == ("garbage_collection", ())
    assert "one rank or another" in str(cause.verdict)


def test_collections_of_all_ranks_in_the_same_steps_are_said_to_be_so() -> None:
    alike = {(step, rank): 3 for step in range(2, STEPS, 4) for rank in range(2 * PP)}
    cause = told(collected(alike, dp=2))
    assert (cause.kind, cause.ranks) == ("garbage_collection", ())
    assert "all ranks collect" in str(cause.verdict)


def test_collections_that_cost_nothing_are_not_told() -> None:
    assert not list(trace_causes(collected({(7, 2): 3})))
