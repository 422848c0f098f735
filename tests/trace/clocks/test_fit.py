"""The fit of two clocks: what it states holds, whatever way messages took, and is not idle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from serried.trace.clocks.fit import Bounds, fit_clock
from serried.trace.clocks.line import ClockLine
from serried.trace.clocks.region import feasible_region

SECOND = 1_000_000_000
LENGTH = 600 * SECOND
Truth = Callable[[NDArray[np.float64]], NDArray[np.float64]]
PATTERNS = ["start and end", "every few minutes", "all along"]


def moments(rng: np.random.Generator, pattern: str, count: int) -> NDArray[np.float64]:
    """Returns when messages cross: in rounds of a hundredth of a second, or all along."""
    begins = {
        "start and end": rng.choice([0.0, LENGTH], count),
        "every few minutes": rng.choice(np.linspace(0, LENGTH, 6), count),
        "all along": rng.uniform(0, LENGTH, count),
    }[pattern]
    return np.rint(begins + rng.uniform(0, SECOND / 100, count))


@dataclass(frozen=True)
class Ways:
    """Draws how long messages take: at least ``least_ns`` each way, and jitter on top."""

    least_ns: tuple[float, float]
    jitter_ns: float
    count: int = 200

    def fitted(self, rng: np.random.Generator, pattern: str, truth: Truth) -> ClockLine:
        sides = []
        for sign, least_ns in zip((-1, 1), self.least_ns, strict=True):
            at = moments(rng, pattern, self.count)
            delay = least_ns + rng.exponential(self.jitter_ns, self.count)
            value = np.rint(truth(at) + sign * delay)
            sides.append(Bounds(at.astype(np.int64), value.astype(np.int64)))
        line = fit_clock(sides[0], sides[1], (0, LENGTH))
        assert line is not None
        return line


def error_ns(line: ClockLine, truth: Truth) -> float:
    at = np.linspace(0, LENGTH, 25)
    return float(np.abs(line.offset_at(at.astype(np.int64)) - truth(at)).max())


def straight(rng: np.random.Generator) -> Truth:
    """Returns a clock off by seconds that drifts by up to 100 ppm."""
    offset, drift = rng.uniform(-5, 5) * SECOND, rng.uniform(-1e-4, 1e-4)
    return lambda at: offset + drift * at


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("jitter_ns", [20_000, 500_000])
def test_the_bound_holds_for_paths_that_are_slower_one_way(pattern: str, jitter_ns: int) -> None:
    rng = np.random.default_rng(7)
    errors, stated = [], []
    for _ in range(100):
        truth = straight(rng)
        ways = Ways((rng.exponential(1e6), rng.exponential(1e6)), jitter_ns)
        line = ways.fitted(rng, pattern, truth)
        errors.append(error_ns(line, truth))
        stated.append(line.worst_between(0, LENGTH)[0])
    assert (np.array(errors) <= np.array(stated)).all()
    assert np.median(stated) <= 5 * np.median(errors)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("jitter_ns", [2_000, 500_000])
def test_the_even_figure_holds_in_95_of_100_where_both_ways_are_equal(
    pattern: str, jitter_ns: int
) -> None:
    rng = np.random.default_rng(7)
    errors, symmetric, stated = [], [], []
    for _ in range(100):
        truth = straight(rng)
        least_ns = rng.uniform(20_000, 2_000_000)
        line = Ways((least_ns, least_ns), jitter_ns).fitted(rng, pattern, truth)
        errors.append(error_ns(line, truth))
        bound, figure = line.worst_between(0, LENGTH)
        stated.append(bound)
        symmetric.append(figure)
    assert (np.array(errors) <= np.array(stated)).all()
    assert np.mean(np.array(errors) <= np.array(symmetric)) >= 0.95
    assert np.median(symmetric) <= 4 * np.median(errors)


def wandering(at: NDArray[np.float64]) -> NDArray[np.float64]:
    return 3e6 * np.sin(2 * np.pi * at / LENGTH)


@pytest.mark.parametrize("pattern", PATTERNS[1:])
def test_a_clock_whose_drift_changes_is_followed_in_pieces(pattern: str) -> None:
    rng = np.random.default_rng(5)
    line = Ways((50_000, 50_000), 2_000, 2_000).fitted(rng, pattern, wandering)
    stated_ns, _ = line.worst_between(0, LENGTH)
    assert not line.jumps
    assert error_ns(line, wandering) <= stated_ns < 3_000_000


@pytest.mark.parametrize("step_ns", [500_000_000, -500_000_000, 2_000_000])
def test_a_clock_that_is_set_steps_where_it_was_set(step_ns: int) -> None:
    def stepping(at: NDArray[np.float64]) -> NDArray[np.float64]:
        return 20e-6 * at + step_ns * (at > LENGTH / 3)

    rng = np.random.default_rng(3)
    line = Ways((50_000, 90_000), 2_000, 2_000).fitted(rng, "all along", stepping)
    assert error_ns(line, stepping) <= line.worst_between(0, LENGTH)[0]
    if abs(step_ns) > 100_000_000:  # two milliseconds may as well be a drift of two seconds
        ((when, step),) = line.jumps
        assert when == pytest.approx(LENGTH / 3, abs=2 * SECOND)
        assert step == pytest.approx(step_ns, abs=2_000_000)


def test_messages_of_the_middle_tighten_pings_of_the_ends() -> None:
    rng = np.random.default_rng(9)
    truth = straight(rng)
    sides = []
    for sign in (-1, 1):
        ends, middle = moments(rng, "start and end", 100), moments(rng, "all along", 100)
        at = np.concatenate([ends, middle])
        delay = np.concatenate([np.full(100, 2e6), 50_000 + rng.exponential(2_000, 100)])
        value = np.rint(truth(at) + sign * delay)
        sides.append(Bounds(at.astype(np.int64), value.astype(np.int64)))
    ends_only = [Bounds(each.at_ns[:100], each.value_ns[:100]) for each in sides]
    alone, both = fit_clock(ends_only[0], ends_only[1]), fit_clock(sides[0], sides[1])
    assert alone is not None and both is not None
    assert both.worst_between(0, LENGTH)[0] < alone.worst_between(0, LENGTH)[0] / 10
    assert error_ns(both, truth) <= both.worst_between(0, LENGTH)[0]


def test_a_one_sided_clock_has_no_line() -> None:
    nothing = Bounds(np.array([], dtype=np.int64), np.array([], dtype=np.int64))
    some = Bounds(np.array([1, 2]), np.array([3, 4]))
    assert fit_clock(nothing, nothing) is None
    assert fit_clock(some, nothing) is None
    assert fit_clock(nothing, some) is None


def test_one_message_each_way_is_enough_and_says_little_far_from_it() -> None:
    line = fit_clock(
        Bounds(np.array([0]), np.array([-100])), Bounds(np.array([0]), np.array([300])), (0, SECOND)
    )
    assert line is not None
    assert line.offset_at(np.array([0])).tolist() == [100.0]
    near, far = (line.worst_between(at, at)[0] for at in (0, SECOND))
    assert near == pytest.approx(200)
    assert far == pytest.approx(200 + 2e-4 * SECOND)  # clocks drift apart by 200 ppm at most


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_lines_that_fit_lie_between_the_lowest_and_the_highest(data: st.DataObject) -> None:
    offset = data.draw(st.floats(-1e6, 1e6))
    slope = data.draw(st.floats(-1.9e-4, 1.9e-4))
    draws = st.lists(
        st.tuples(st.integers(0, 10_000_000), st.floats(1, 1e6)), min_size=1, max_size=30
    )
    sides = []
    for sign in (-1, 1):
        rows = np.array(data.draw(draws), dtype=float)
        sides.append((rows[:, 0], offset + slope * rows[:, 0] + sign * rows[:, 1]))
    region = feasible_region(*sides)
    at = np.array([0.0, 3e6, 1e7, 5e7])
    low, high = region.range_at(at)
    assert region.is_feasible
    assert (low <= offset + slope * at + 1e-3).all()
    assert (high >= offset + slope * at - 1e-3).all()


def lines(count: int) -> list[ClockLine]:
    rng = np.random.default_rng(11)
    return [Ways((1e5, 2e5), 1e4).fitted(rng, "all along", straight(rng)) for _ in range(count)]


def test_a_line_there_and_back_is_where_it_began() -> None:
    (line,) = lines(1)
    at = np.linspace(-SECOND, LENGTH + SECOND, 50).astype(np.int64)
    assert np.abs(line.reversed().moved(line.moved(at)) - at).max() <= 2
    assert line.reversed().worst_between(*line.moved(at[[0, -1]]).tolist()) == pytest.approx(
        line.worst_between(int(at[0]), int(at[-1])), rel=1e-3
    )


def test_a_line_through_another_adds_up_what_both_may_be_off() -> None:
    one, other = lines(2)
    at = np.linspace(0, LENGTH, 50).astype(np.int64)
    through = one.then(other)
    assert np.abs(through.moved(at) - other.moved(one.moved(at))).max() <= 2
    bounds = [each.worst_between(SECOND, 2 * SECOND)[0] for each in (one, other)]
    assert through.worst_between(SECOND, 2 * SECOND)[0] <= sum(bounds) * 1.5
    assert through.worst_between(SECOND, 2 * SECOND)[0] >= max(bounds)
