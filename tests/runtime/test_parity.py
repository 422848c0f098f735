"""Every parallelism equals one process: a few rows cheaply here, the whole matrix as a soak.

The matrix as a table: ``python -m tests.runtime.parity``.
"""

from __future__ import annotations

import pytest

from tests.runtime.parity import BASE, LIMITS, ROWS, Difference, Row, measure
from tests.runtime.rank_group import DEVICES

QUICK = [row for row in ROWS if row.is_quick]
STEPS = 5


@pytest.fixture(scope="module", params=DEVICES)
def quick(request: pytest.FixtureRequest) -> dict[str, Difference]:
    """The largest difference of each quick row, all on one launch."""
    found = measure(QUICK, "float64", STEPS, request.param)
    return {row.name: each for row, each in zip(QUICK, found, strict=True)}


@pytest.mark.parametrize("row", QUICK, ids=lambda row: row.name)
def test_losses_and_norms_are_those_of_one_process(row: Row, quick: dict[str, Difference]) -> None:
    assert quick[row.name].within(LIMITS["float64"])


@pytest.mark.soak
@pytest.mark.parametrize("dtype", LIMITS)
def test_the_whole_matrix_is_one_process_s_over_twenty_steps(dtype: str) -> None:
    found = measure(ROWS, dtype, BASE.steps)
    far = {
        row.name: it for row, it in zip(ROWS, found, strict=True) if not it.within(LIMITS[dtype])
    }
    assert not far
