"""Every parallelism equals one process: a few rows cheaply here, the whole matrix as a soak.

The matrix as a table: ``python -m tests.runtime.parity``; rows drawn at random over all options:
``python -m tests.runtime.parity_draws``.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.runtime.parity import BASE, LIMITS, MODEL, ROWS, Difference, Row, measure
from tests.runtime.parity_draws import Draw, accepted, draw, outcomes
from tests.runtime.rank_group import DEVICES


def with_few_layers(row: Row) -> Row:
    """Returns ``row`` with no more layers than its schedule has stages for, two at least."""
    stages = row.settings("float64", STEPS).num_stages
    model = replace(row.options.get("model", MODEL), layers=max(stages, 2))
    return replace(row, options={**row.options, "model": model})


STEPS = 4
QUICK = [with_few_layers(row) for row in ROWS if row.is_quick]
FEW = 160
"""Draws of which those that are not refused run here, where they are small."""
MANY = 2000
"""Draws of the soak: about 400 runs."""


@pytest.fixture(scope="module", params=DEVICES)
def quick(request: pytest.FixtureRequest) -> dict[str, Difference]:
    """The largest difference of each quick row, all on one launch."""
    found = measure(QUICK, "float64", STEPS, request.param)
    return {row.name: each for row, each in zip(QUICK, found, strict=True)}


@pytest.mark.parametrize("row", QUICK, ids=lambda row: row.name)
def test_losses_and_norms_are_those_of_one_process(row: Row, quick: dict[str, Difference]) -> None:
    assert quick[row.name].within(LIMITS["float64"])


def is_small(it: Draw) -> bool:
    """Tells whether a run is of two ranks at most, and of few layers and microbatches for them."""
    ranks, layers = it.options["world_size"], it.options["layers"]
    return bool(ranks <= 2 and ranks * layers * it.options["microbatches"] <= 16)


def test_options_drawn_at_random_are_refused_in_a_sentence_or_run_as_one_process() -> None:
    drawn = [it for it in accepted(range(FEW)) if is_small(it)]
    assert len(drawn) > 3
    assert not [f"{it}\n{fault}" for it, fault in outcomes(drawn) if fault]


def test_what_is_drawn_and_cannot_be_is_refused_in_a_sentence() -> None:
    refusals = {it.refusal for it in map(draw, range(300)) if it.settings is None}
    assert len(refusals) > 50
    assert all(len(refusal.split()) > 5 for refusal in refusals)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, MANY, 100))
def test_many_options_drawn_at_random_run_as_one_process(first: int) -> None:
    drawn = accepted(range(first, first + 100))
    assert not [f"{it}\n{fault}" for it, fault in outcomes(drawn) if fault]


@pytest.mark.soak
@pytest.mark.parametrize("dtype", LIMITS)
def test_the_whole_matrix_is_one_process_s_over_twenty_steps(dtype: str) -> None:
    found = measure(ROWS, dtype, BASE.steps)
    far = {
        row.name: it for row, it in zip(ROWS, found, strict=True) if not it.within(LIMITS[dtype])
    }
    assert not far
