"""An order is known again: every schedule from its own spans, and where another one leaves it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from serried.pipeline import ENTRIES, Request, generate
from serried.trace.measure.recognition import Departure, Recognition, recognise
from serried.trace.model.recorded_order import RecordedOrder, pipeline_ranks, recorded_order
from tests.trace.traced_run import compute, simulated, trace_of


def order_of(
    name: str, p: int, m: int, chunks: int | None = None, group: int | None = None
) -> RecordedOrder:
    trace = simulated(generate(name, Request(p, m, chunks, group)))
    found = recorded_order(trace.spans, 0, pipeline_ranks(trace.layout, p)[0])
    assert found is not None
    return found


def recognised(
    name: str, p: int = 4, m: int = 8, chunks: int | None = None, group: int | None = None
) -> Recognition:
    found = recognise(order_of(name, p, m, chunks, group))
    assert found is not None
    return found


@pytest.mark.parametrize("name", [name for name in ENTRIES if name != "auto"])
def test_every_schedule_is_known_again_by_its_spans(name: str) -> None:
    found = recognised(name)
    assert found.is_exact
    assert name in found.equals


@pytest.mark.parametrize("group", [4, 6, 8])
def test_the_group_of_an_interleaved_schedule_is_found(group: int) -> None:
    found = recognised("interleaved-1f1b", 4, 24, chunks=2, group=group)
    assert found.is_exact
    assert found.schedule.group == group


def test_schedules_that_are_one_at_small_sizes_are_all_named() -> None:
    assert {"1f1b", "eager-1f1b"} <= set(recognised("1f1b", 1, 4).equals)


def test_two_actions_that_change_places_are_named_and_nearly_all_match() -> None:
    order = order_of("1f1b", 4, 8)
    codes = list(order.codes)
    codes[2] = codes[2].copy()
    codes[2][[5, 6]] = codes[2][[6, 5]]
    found = recognise(replace(order, codes=tuple(codes)))
    assert found is not None and not found.is_exact and found.equals == ()
    assert found.best.name == "1f1b"
    assert found.best.share == pytest.approx(63 / 64)
    assert found.best.departure == Departure(rank=2, place=5, recorded="2B2", planned="2F3")


def test_a_list_that_was_cut_departs_where_it_ends() -> None:
    order = order_of("gpipe", 2, 4)
    codes = (order.codes[0], order.codes[1][:-1])
    found = recognise(RecordedOrder(order.ranks, codes))
    assert found is not None
    assert found.best.departure == Departure(rank=1, place=7, recorded=None, planned="1B3")


def test_no_schedule_has_stages_that_ranks_do_not_share_evenly() -> None:
    spans = [compute(0, "0F0", 0, 1), compute(1, "1F0", 1, 2), compute(1, "2F0", 2, 3)]
    order = recorded_order(trace_of(spans, pp=2).spans, 0, np.arange(2))
    assert order is not None
    assert recognise(order) is None


def test_jobs_in_pieces_are_one_action_of_the_order() -> None:
    spans = [compute(0, "0F0", 0, 1), compute(0, "0B0", 1, 2), compute(0, "0B0", 3, 4)]
    order = recorded_order(trace_of(spans, pp=1).spans, 0, np.arange(1))
    assert order is not None and order.num_actions == 2


def test_an_order_is_not_known_where_a_rank_computed_nothing() -> None:
    spans = trace_of([compute(0, "0F0", 0, 1)], pp=2).spans
    assert recorded_order(spans, 0, np.arange(2)) is None
