"""Figures of ranks: one number per rank and kind of figure, the slow rank standing out in them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from serried.trace.measure.overlay import overlay_of
from serried.trace.measure.ranks.rank_figures import FIGURES, SHARES, Values, rank_figures
from serried.trace.measure.statistics import measure
from serried.trace.model.trace import Trace
from tests.trace.simulated_run import FORWARD, simulated_run

SLOW_RANK = 4
"""Stage 2 of the first of two pipelines."""


def slow(pipeline: int, step: int, stage: int, microbatch: int) -> int:
    """Rank 4 takes half as long again, and in the last step twice as long."""
    is_it = (pipeline, stage) == (0, 2)
    return FORWARD if not is_it else FORWARD * 3 // 2 + (step == 2) * FORWARD // 2


@pytest.fixture(scope="module")
def trace() -> Trace:
    return simulated_run(forward=slow)


@pytest.fixture(scope="module")
def figures(trace: Trace) -> dict[str, Values]:
    return rank_figures(trace, measure(trace), overlay_of(trace))


def test_shares_of_busy_and_idle_time_add_up_to_one(figures: dict[str, Values]) -> None:
    assert figures["busy"] + figures["idle"] == pytest.approx(np.ones(8))
    assert np.argmax(figures["busy"]) == SLOW_RANK


def test_the_slow_rank_stands_out_in_what_tells_of_it(figures: dict[str, Values]) -> None:
    for name in ("compute", "forward", "jitter", "slowness", "excess"):
        assert np.argmax(figures[name]) == SLOW_RANK, name
    assert figures["forward"][0] == 8 * FORWARD
    assert figures["forward"][SLOW_RANK] == pytest.approx(8 * FORWARD * 5 / 3)
    assert not figures["jitter"][[0, 1, 2, 3, 5, 6, 7]].any()
    late = figures["lateness"]
    assert late[::2].min() > late[1::2].max(), "its whole pipeline is late with it"
    # Its twin of the other pipeline is as much below the median of the two as it is above.
    assert figures["slowness"][SLOW_RANK] == pytest.approx(-figures["slowness"][SLOW_RANK + 1])


def test_each_rank_s_idle_time_is_its_causes(trace: Trace, figures: dict[str, Values]) -> None:
    stats = measure(trace)
    window = np.mean([step.window_ns for step in stats.steps])
    causes = [
        figures[name] for name in ("warm_up", "late_peer", "cool_down", "other") if name in figures
    ]
    assert sum(causes) == pytest.approx(figures["idle"] * window)


def test_figures_stand_in_their_order_and_empty_ones_are_left_out(
    figures: dict[str, Values],
) -> None:
    assert list(figures) == [name for name in FIGURES if name in figures]
    assert {"exchange", "reduce", "weight"}.isdisjoint(figures)
    assert set(SHARES) <= set(FIGURES)


def test_without_a_plan_or_a_whole_step_there_are_fewer(trace: Trace) -> None:
    stats = measure(trace)
    assert {"lateness", "excess", "slowness"}.isdisjoint(rank_figures(trace, stats, None))
    assert rank_figures(trace, dataclasses.replace(stats, steps=()), None) == {}


def test_a_rank_without_a_recording_has_no_figure(trace: Trace) -> None:
    others = tuple(rank for rank in trace.ranks if rank != 7)
    spans = trace.spans.where(trace.spans.rank != 7)
    part = dataclasses.replace(trace, spans=spans, ranks=others, missing=(7,))
    figures = rank_figures(part, measure(part), overlay_of(part))
    assert all(np.isnan(values[7]) for values in figures.values())
    assert not np.isnan(figures["busy"][:7]).any()
