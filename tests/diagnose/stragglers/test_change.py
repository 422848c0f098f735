"""Change points: the exact optimum, found where a level moves, and nowhere else."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.diagnose.stragglers.change import LEAST_LENGTH, changes, optimal_places

FIGURES = st.lists(st.floats(-100, 100), min_size=1, max_size=10)


def cost(values: list[float], places: tuple[int, ...], penalty: float) -> float:
    parts = np.split(np.array(values), list(places))
    return sum(float(((part - part.mean()) ** 2).sum()) for part in parts) + penalty * len(places)


@given(values=FIGURES, penalty=st.floats(0.1, 500), least=st.integers(1, 4))
def test_no_other_cuts_cost_less(values: list[float], penalty: float, least: int) -> None:
    found = tuple(optimal_places(np.array(values), penalty, least))
    edges = [0, *found, len(values)]
    assert not found or min(np.diff(edges)) >= least
    every = (
        cost(values, places, penalty)
        for count in range(len(values))
        for places in combinations(range(1, len(values)), count)
        if min(np.diff([0, *places, len(values)]), default=0) >= least
    )
    assert cost(values, found, penalty) <= min(every, default=np.inf) + 1e-6 * (1 + penalty)


@given(
    first=st.integers(LEAST_LENGTH, 60),
    second=st.integers(LEAST_LENGTH, 60),
    level=st.floats(-1e9, 1e9),
    jump=st.floats(0.01, 1e9),
)
def test_a_jump_without_noise_is_found_to_the_place(
    first: int, second: int, level: float, jump: float
) -> None:
    series = np.array([level] * first + [level + jump] * second)
    if series[0] + 1e-6 * abs(level) < series[-1]:
        assert changes(series) == [first]


@given(values=st.lists(st.floats(-5, 5), min_size=8, max_size=60), scale=st.floats(0.1, 100))
def test_the_unit_and_the_zero_of_the_figures_do_not_matter(
    values: list[float], scale: float
) -> None:
    series = np.round(np.array(values), 3)
    assert changes(series) == changes(np.float64(2.0 ** round(np.log2(scale))) * series)


def test_one_level_has_none_whatever_its_noise() -> None:
    draws = np.random.default_rng(5)
    noises = [
        noise
        for count in (20, 100, 500)
        for noise in (
            draws.normal(size=count),
            draws.laplace(size=count),
            draws.standard_t(3, count),
        )
    ]
    assert [changes(10 + noise) for noise in noises] == [[]] * 9


@pytest.mark.parametrize("outlier", [50.0, -50.0, 1e6])
def test_outliers_are_no_level(outlier: float) -> None:
    series = np.random.default_rng(1).normal(size=60)
    series[[7, 20, 21, 44]] = outlier
    assert changes(series) == []


def test_a_jump_of_three_deviations_is_found_within_two_steps() -> None:
    draws = np.random.default_rng(2)
    found = [
        changes(np.concatenate([draws.normal(size=40), 3 + draws.normal(size=60)]))
        for _ in range(50)
    ]
    assert sum(len(each) == 1 and abs(each[0] - 40) <= 2 for each in found) >= 48


def test_several_levels_are_all_found() -> None:
    series = np.repeat([1.0, 5.0, 2.0, 2.5], [30, 10, 40, 25])
    assert changes(series + np.random.default_rng(3).normal(0, 0.05, 105)) == [30, 40, 80]
