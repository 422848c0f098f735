"""Steps of the start: leading ones far over the median are in no mean, and no others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.trace.measure.statistics import measure
from serried.trace.measure.warm_up import WARM_UP, warm_up_of
from tests.trace.simulated_run import FORWARD, simulated_run


@pytest.mark.parametrize(
    ("lengths", "left_out"),
    [
        ([], 0),
        ([9], 0),
        ([900, 100], 0),
        ([900, 100, 100], 1),
        ([100, 900, 100, 100], 0),
        ([900, 500, 100, 101, 99, 180], 2),
        ([126, 100, 100], 1),
        ([125, 100, 100], 0),
    ],
)
def test_leading_steps_over_the_median_are_left_out(lengths: list[int], left_out: int) -> None:
    assert warm_up_of(np.array(lengths)) == left_out


@given(st.lists(st.integers(1, 1000), min_size=3, max_size=20))
def test_at_most_half_is_left_out_and_what_remains_begins_as_usual(lengths: list[int]) -> None:
    found = warm_up_of(np.array(lengths))
    assert found <= len(lengths) / 2
    assert lengths[found] <= WARM_UP * np.median(lengths)


def test_means_are_those_of_the_run_without_its_start() -> None:
    slow = simulated_run(num_steps=6, forward=lambda p, step, s, mb: FORWARD * (3 - 2 * (step > 1)))
    warm, even = measure(slow), measure(simulated_run(num_steps=4))
    assert (warm.num_warm_up, len(warm.steps), len(warm.counted)) == (2, 6, 4)
    assert warm.ranks == even.ranks
    assert warm.bubbles == even.bubbles
