"""The quickest of windows: how far off their mean is, is known whatever the law of delays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from serried.trace.clocks.quickest import Centres, Sides, centres_of, narrowest_half

LENGTH = 1e9
Law = Callable[[np.random.Generator, int], NDArray[np.float64]]
LAWS: dict[str, Law] = {
    "exponential": lambda rng, count: rng.exponential(2e5, count),
    "uniform": lambda rng, count: rng.uniform(0, 4e5, count),
    "several queues": lambda rng, count: rng.gamma(3, 1e4, count),
    "log-normal": lambda rng, count: 3e4 * np.exp(rng.normal(0, 0.7, count)),
    "one in seven held up": lambda rng, count: (
        rng.gamma(3, 5e3, count) + (rng.random(count) < 1 / 7) * rng.exponential(2e6, count)
    ),
}


def bounds(out: NDArray[np.float64], back: NDArray[np.float64], drift: float = 0.0) -> Sides:
    """Returns bounds of an offset of 0, evenly spread over the time."""
    at = [np.linspace(0, LENGTH, len(each)) for each in (out, back)]
    return (at[0], drift * at[0] - out), (at[1], drift * at[1] + back)


def centre(centres: Centres) -> float:
    return float(np.average(centres.value, weights=centres.weights))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("count", [32, 64, 640])
def test_centres_are_off_by_what_their_variances_say(law: str, count: int) -> None:
    rng = np.random.default_rng(17)
    off, said = [], []
    for _ in range(300):
        out, back = (5e5 + LAWS[law](rng, count) for _ in range(2))
        found = centres_of(bounds(out, back), 0.0)
        off.append(centre(found))
        said.append(1 / found.weights.sum())
    assert np.std(off) == pytest.approx(np.sqrt(np.mean(said)), rel=0.25)


def test_many_are_averaged_where_being_quickest_is_chance() -> None:
    rng = np.random.default_rng(18)
    edge = centres_of(bounds(rng.exponential(2e5, 640), rng.exponential(2e5, 640)), 0.0)
    bulk = centres_of(bounds(rng.normal(1e5, 1e4, 640), rng.normal(1e5, 1e4, 640)), 0.0)
    assert bulk.freedom > 1.5 * edge.freedom


def test_messages_that_mostly_wait_one_way_count_by_those_that_do_not() -> None:
    rng = np.random.default_rng(19)
    off = []
    for _ in range(50):
        waits = np.where(rng.random(800) < 0.1, 0.0, rng.uniform(1e6, 8e6, 800))
        out, back = (rng.gamma(3, 8e3, 800) for _ in range(2))
        off.append(abs(centre(centres_of(bounds(out + waits, back), 0.0))))
    assert np.median(off) < 10_000


def test_sides_unlike_each_other_are_less_sure_and_alike_ones_are_not() -> None:
    rng = np.random.default_rng(20)
    alike, unlike = [], []
    for _ in range(50):
        out, back = (rng.uniform(0, 1e5, 320) for _ in range(2))
        alike.append(centres_of(bounds(out, back), 0.0).unlike)
        found = centres_of(bounds(3 * out, back), 0.0)
        unlike.append(centre(found) ** 2 / max(found.unlike, 1.0))
    assert np.median(alike) == 0.0
    assert np.median(unlike) < 2.0


def test_bounds_in_times_of_their_own_have_one_centre() -> None:
    sides = ((np.arange(6.0), np.full(6, -3.0)), (np.arange(100.0, 106.0), np.full(6, 5.0)))
    found = centres_of(sides, 0.0)
    assert (found.value.tolist(), found.delay.tolist()) == ([1.0], [4.0])
    assert narrowest_half(sides, 0.0) == 4.0


def test_one_bound_of_a_side_says_nothing_of_how_sure_it_is() -> None:
    found = centres_of(bounds(np.array([10.0]), np.array([20.0])), 0.0)
    assert found.value.tolist() == [5.0]
    assert found.variance.tolist() == [float("inf")]
