"""Slow ranks: the one that others wait for is named, and nobody whom they do not wait for."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.action import Action, Span
from serried.trace.measure.ranks.slowest import RankPace, paces
from serried.trace.model.trace import Trace
from tests.trace.measure.test_statistics import traced
from tests.trace.recorded_run import Run
from tests.trace.traced_run import compute

STEPS = 6
MS = 1_000_000


def span(rank: int, action: str, start: float, end: float, step: int) -> Span:
    return Span(rank, Action.parse(action), step, round(start * MS), round(end * MS))


def paced(spans: list[Span], **sizes: int) -> dict[int, RankPace]:
    """Returns the paces of ranks by rank, the slowest first."""
    world = 1 + max(each.rank for each in spans)
    job = dataclasses.replace(Run().job, world_size=world, sizes=sizes or {"dp": world})
    trace: Trace = traced(spans, job)
    return {each.rank: each for each in paces(trace, np.unique(trace.spans.step))}


def named(found: dict[int, RankPace]) -> list[int]:
    return [rank for rank, pace in found.items() if pace.is_slow]


def meeting(own: dict[str, list[list[float]]]) -> list[Span]:
    """Returns data parallel steps in which all ranks meet at the end of the backward.

    ``own`` holds milliseconds by step and rank: of the ``loader``, ``F``, ``B`` and ``OPTIMIZER``.
    """
    world = len(own["F"][0])
    free = [0.0] * world
    spans = []
    for step in range(len(own["F"])):
        begun = [free[r] + own["loader"][step][r] for r in range(world)]
        ready = [begun[r] + own["F"][step][r] + own["B"][step][r] for r in range(world)]
        met = max(ready) + 1
        for r in range(world):
            there = begun[r] + own["F"][step][r]
            free[r] = met + own["OPTIMIZER"][step][r]
            spans += [
                span(r, "0F0", begun[r], there, step),
                span(r, "0B0", there, met, step),
                span(r, "0REDUCE_GRAD", there, met, step),
                span(r, "0ALL_REDUCE0", ready[r], met, step),
                span(r, "OPTIMIZER", met, free[r], step),
            ]
    return spans


def even(world: int, steps: int = STEPS) -> dict[str, list[list[float]]]:
    return {
        name: [[length] * world for _ in range(steps)]
        for name, length in (("loader", 1.0), ("F", 10.0), ("B", 20.0), ("OPTIMIZER", 2.0))
    }


@pytest.mark.parametrize("world", [2, 3, 4])
@pytest.mark.parametrize(
    ("where", "told"),
    [("loader", "before"), ("F", "forward"), ("B", "backward"), ("OPTIMIZER", "optimizer")],
)
def test_the_rank_that_others_wait_for_is_named_wherever_it_is_slow(
    where: str, told: str, world: int
) -> None:
    own = even(world)
    for row in own[where]:
        row[1] += 15
    found = paced(meeting(own))
    assert named(found) == [1]
    assert found[1].waited_for_ns == pytest.approx(15 * MS)
    ((part, more),) = found[1].longer
    assert part == told
    assert more == pytest.approx(15 * MS)


def test_waiting_inside_a_backward_is_nobody_s_computing() -> None:
    own = even(2)
    for row in own["loader"]:
        row[1] += 100
    found = paced(meeting(own))
    assert [found[rank].compute_ns for rank in range(2)] == [30 * MS] * 2
    assert [found[rank].slower for rank in range(2)] == [0, 0]


@given(
    world=st.integers(2, 4),
    own=st.lists(st.lists(st.floats(0, 0.4), min_size=16, max_size=16), min_size=3, max_size=9),
)
def test_nobody_is_named_where_no_step_is_two_percent_longer_for_one(
    world: int, own: list[list[float]]
) -> None:
    times = even(world, len(own))
    for step, extra in enumerate(own):
        for at, name in enumerate(times):
            for rank in range(world):
                times[name][step][rank] += extra[4 * at + rank] / 4
    assert not named(paced(meeting(times)))


def test_one_slow_step_makes_no_slow_rank() -> None:
    own = even(2)
    own["B"][3][1] += 900
    found = paced(meeting(own))
    assert not named(found)
    assert found[1].jitter > 1


def test_two_slow_ranks_are_named_and_no_other() -> None:
    own = even(4)
    for row in own["F"]:
        row[0] += 9
        row[2] += 12
    assert named(paced(meeting(own))) == [2, 0]


def test_a_first_step_that_pays_for_connections_hides_no_slow_rank() -> None:
    own = even(2)
    own["F"][0][0] += 500
    for row in own["B"]:
        row[1] += 15
    assert named(paced(meeting(own))) == [1]


def test_two_steps_name_nobody() -> None:
    own = even(2, steps=2)
    for row in own["F"]:
        row[1] += 15
    assert not named(paced(meeting(own)))


def test_what_was_waited_unseen_inside_a_backward_accuses_nobody() -> None:
    own = even(2)
    for row in own["loader"]:
        row[1] += 100
    unseen = [each for each in meeting(own) if each.action.kind.name != "ALL_REDUCE"]
    found = paced(unseen)
    assert not named(found)
    assert [(found[rank].evidence, found[rank].slower) for rank in range(2)] == [
        ("nothing", None)
    ] * 2


def test_tensor_parallel_waits_that_were_not_recorded_accuse_nobody() -> None:
    # Ranks 0 and 1 are a tensor parallel group, whose exchanges nobody saw; rank 1 is slow.
    spans = []
    for step in range(STEPS):
        zero = step * 100
        for rank in range(4):
            end = zero + (50 if rank < 2 else 30)
            spans += [
                span(rank, "0F0", zero, end - 15, step),
                span(rank, "0B0", end - 15, end, step),
            ]
            spans.append(span(rank, "0REDUCE_GRAD", end, zero + 51, step))
    assert not named(paced(spans, dp=2, tp=2))


def test_ranks_of_another_stage_are_no_measure() -> None:
    spans = [
        compute(rank, f"{rank}F0", 1000 * step, 1000 * step + 100 * (rank + 1), step=step)
        for rank in range(2)
        for step in range(STEPS)
    ]
    found = paced(spans, pp=2)
    assert [each.slower for each in found.values()] == [None, None]
    assert [each.stages for each in found.values()] == [(0,), (1,)]


def pipeline_log(times: dict[int, list[int]]) -> dict[int, RankPace]:
    """Returns the paces of a pipeline's log that tells of computations alone: two of a stage."""
    spans = [
        compute(rank, f"{rank % 2}F0", 1000 * step, 1000 * step + each, step=step)
        for rank, row in times.items()
        for step, each in enumerate(row)
    ]
    return paced(spans, pp=2, dp=len(times) // 2)


def test_a_pipeline_s_log_of_computations_compares_those_of_a_stage() -> None:
    found = pipeline_log({0: [100] * STEPS, 1: [50] * STEPS, 2: [108] * STEPS, 3: [50] * STEPS})
    assert found[2].slower == pytest.approx(0.08)
    assert (found[2].evidence, found[2].slower_steps) == ("computing", STEPS)
    assert named(found) == [2]


def test_slower_by_less_than_two_hundredths_is_not_worth_saying() -> None:
    rows = {0: [800] * STEPS, 1: [50] * STEPS, 2: [812] * STEPS, 3: [50] * STEPS}
    found = pipeline_log(rows)
    assert found[2].slower == pytest.approx(0.015)
    assert not named(found)
