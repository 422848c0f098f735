"""Closed forms are equal to the simulation wherever they speak, and silent elsewhere."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.pipeline import (
    ENTRIES,
    Costs,
    Extra,
    Links,
    Request,
    Schedule,
    Simulation,
    closed_forms,
    generate,
    peaks,
    simulate,
)
from serried.pipeline.closed_form import Quantity
from tests.pipeline.strategies import schedules, times


def measured(result: Simulation, quantity: Quantity) -> object:
    if quantity is Quantity.PEAK:
        return int(peaks(result.schedule).to_weight.max())
    if quantity is Quantity.IDLE:
        return result.ticks.number(result.rank_end.max() - result.work.min())
    window = (result.rank_end - result.rank_start).max()
    return result.ticks.number(window - result.work.max())


@st.composite
def plain_costs(draw: st.DrawFn) -> Costs:
    f, i, w = (draw(times) for _ in range(3))
    latency = draw(st.just(0) | times)
    overlap = draw(st.none() | st.just(f + i + w))
    return Costs(f, draw(st.sampled_from((f, i))), w, overlap=overlap, links=Links(latency))


@given(schedules(), plain_costs())
def test_a_form_is_exact_where_it_speaks(case: tuple[Schedule, Request], costs: Costs) -> None:
    schedule, _ = case
    result = simulate(schedule, costs)
    for form in closed_forms(schedule, costs):
        assert form.value == measured(result, form.quantity), form


SPOKEN = {
    "gpipe": 2, "1f1b": 2, "eager-1f1b": 2, "interleaved-1f1b": 2, "looped-bfs": 2, "zb-h1": 2,
    "zb-h2": 2, "interleaved-zb": 2, "zbv": 3, "v-half": 1, "v-min": 1, "1f1b-v": 1,
    "group-interleaved": 1, "dualpipe": 2, "dualpipev": 2, "chimera": 2, "hanayo": 2, "auto": 0,
}  # fmt: skip


@pytest.mark.parametrize("name", ENTRIES)
def test_every_form_of_a_schedule_speaks_at_equal_times(name: str) -> None:
    forms = closed_forms(generate(name, Request(4, 16)), Costs())
    assert len(forms) == SPOKEN[name]
    assert all(form.region and form.formula for form in forms)


@pytest.mark.parametrize(
    "costs",
    [
        Costs(forward=(1, 1, 2, 1)),
        Costs(links=Links(1, is_blocking=True)),
        Costs(links=Links(0, 1, 1)),
        Costs(links=Links(tuple((0,) * 4 for _ in range(4)))),
        Costs(recompute=1),
        Costs(optimizer=1),
        Costs(loss=Extra(1)),
    ],
)
def test_forms_are_silent_about_what_they_do_not_know(costs: Costs) -> None:
    assert closed_forms(generate("gpipe", Request(4, 8)), costs) == []


@pytest.mark.parametrize(
    ("name", "costs", "exact"),
    [
        ("zb-h1", Costs(2, 2, 2), True),
        ("zb-h1", Costs(2, 2, Fraction(21, 10)), False),
        ("eager-1f1b", Costs(1, 1, 1, links=Links(Fraction(3, 2))), True),
        ("eager-1f1b", Costs(1, 1, 1, links=Links(Fraction(8, 5))), False),
    ],
)
def test_a_region_ends_where_the_form_stops_being_exact(
    name: str, costs: Costs, exact: bool
) -> None:
    schedule = generate(name, Request(4, 12))
    idle = simulate(schedule, costs)
    spoken = [form for form in closed_forms(schedule, costs) if form.quantity is Quantity.IDLE]
    assert bool(spoken) == exact
    f, i, w, c = (
        np.asarray(each).item()
        for each in (costs.forward, costs.input_grad, costs.weight_grad, costs.links.latency)
    )
    formula = 3 * (f + i - w) if name == "zb-h1" else 3 * (f + i + w + 2 * c)
    assert (measured(idle, Quantity.IDLE) == formula) == exact


@pytest.mark.parametrize(("pair", "exact"), [(2, True), (3, True), (4, False)])
@pytest.mark.parametrize(("name", "ranks"), [("dualpipe", 6), ("dualpipev", 4)])
def test_forms_of_pairs_end_where_a_pair_is_slower_than_its_halves(
    name: str, ranks: int, pair: int, exact: bool
) -> None:
    schedule, costs = generate(name, Request(ranks, 12)), Costs(1, 1, 1, overlap=pair)
    spoken = [form for form in closed_forms(schedule, costs) if form.quantity is Quantity.IDLE]
    assert bool(spoken) == exact
    ends = ranks - 1 if name == "dualpipev" else ranks // 2 - 1
    idle = measured(simulate(schedule, costs), Quantity.IDLE)
    assert (idle == ends * (pair + 2 - 3)) == exact
