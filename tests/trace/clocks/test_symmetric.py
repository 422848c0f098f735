"""If both ways are alike the band holds the truth, whatever delays are like, and is not idle."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from serried.trace.clocks.fit import Bounds, fit_clock
from serried.trace.clocks.region import STEEPEST, feasible_region
from serried.trace.clocks.symmetric import Sides, SymmetricLine, symmetric_line, tightest

SECOND = 1e9
Reals = NDArray[np.float64]
Law = Callable[[np.random.Generator, int], Reals]
LAWS: dict[str, Law] = {
    "exponential": lambda rng, count: rng.exponential(2e5, count),
    "uniform": lambda rng, count: rng.uniform(0, 4e5, count),
    "several queues": lambda rng, count: rng.gamma(3, 1e4, count),
    "log-normal": lambda rng, count: 3e4 * np.exp(rng.normal(0, 0.7, count)),
    "one in seven held up": lambda rng, count: (
        rng.gamma(3, 5e3, count) + (rng.random(count) < 1 / 7) * rng.exponential(2e6, count)
    ),
}


def rounds(length_s: float) -> list[float]:
    """Returns when rounds of pings begin in a run, in nanoseconds: as ``runtime.pings`` asks."""
    begins = [0.0]
    while begins[-1] < length_s:
        begins.append(begins[-1] + min(max(0.25, begins[-1] / 4), 120.0))
    return [*(each * SECOND for each in begins[:-1]), length_s * SECOND]


def pings(
    rng: np.random.Generator, law: Law, begins: list[float], count: int
) -> tuple[tuple[Reals, Reals], tuple[Reals, Reals], float]:
    """Returns the bounds that pings of an even wire make of a clock that drifts, and its drift."""
    least, drift = np.exp(rng.uniform(np.log(1e5), np.log(5e7))), rng.uniform(-1e-4, 1e-4)
    lower, upper = [], []
    for begin in begins:
        out, back = (least + law(rng, count) for _ in range(2))
        there = begin + np.cumsum(np.concatenate([[0.0], (out + back)[:-1]])) + out
        lower.append((there, drift * there - out))
        upper.append((there, drift * there + back))
    (low_at, low), (high_at, high) = (np.concatenate(each, axis=1) for each in (lower, upper))
    return (low_at, low), (high_at, high), float(drift)


def fitted(sides: Sides) -> SymmetricLine:
    """Returns the line of pings whose drift is known as ``fit`` knows it."""
    return symmetric_line(sides, feasible_region(*sides).slope)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("length_s", "count"), [(0.2, 32), (3, 8), (600, 32)])
def test_pings_of_an_even_wire_are_known_whatever_delays_are_like(
    law: str, length_s: float, count: int
) -> None:
    rng = np.random.default_rng(31)
    errors, bands = [], []
    for _ in range(100):
        lower, upper, drift = pings(rng, LAWS[law], rounds(length_s), count)
        line = fitted((lower, upper))
        at = np.linspace(lower[0].min(), upper[0].max(), 25)
        errors.append(np.abs(line.at(at) - drift * at).max())
        bands.append(line.band_at(at).max())
    assert np.mean(np.array(errors) <= np.array(bands)) >= 0.95
    assert np.median(bands) <= 6 * np.median(errors)


def test_a_log_too_short_for_a_drift_has_none_and_may_hold_any() -> None:
    rng = np.random.default_rng(32)
    lower, upper, _ = pings(rng, LAWS["exponential"], [0.0], 32)
    line = fitted((lower, upper))
    near, far = line.band_at(np.array([line.middle, line.middle + 100 * SECOND]))
    assert line.slope == 0.0
    assert far == pytest.approx(np.hypot(near, STEEPEST * 100 * SECOND))


def test_too_few_bounds_tell_an_offset_and_not_how_far_off_it_is() -> None:
    at = np.arange(11.0)
    line = symmetric_line(((at, np.full(11, -20.0)), (at, np.full(11, 10.0))), 0.0)
    assert line.at(np.array([5.0])).tolist() == [-5.0]
    assert np.isinf(line.band_at(np.array([5.0]))).all()


def test_messages_that_mostly_wait_one_way_count_by_those_that_do_not() -> None:
    rng = np.random.default_rng(19)
    at = np.linspace(0, SECOND, 800)
    off = []
    for _ in range(50):
        waits = np.where(rng.random(800) < 0.1, 0.0, rng.uniform(1e6, 8e6, 800))
        out, back = (rng.gamma(3, 8e3, 800) for _ in range(2))
        line = symmetric_line(((at, -out - waits), (at, back)), 0.0)
        off.append(abs(float(line.at(np.array([SECOND / 2]))[0])))
    assert np.median(off) < 10_000


def test_bounds_in_times_of_their_own_have_one_middle() -> None:
    sides = ((np.arange(6.0), np.full(6, -3.0)), (np.arange(100.0, 106.0), np.full(6, 5.0)))
    found = tightest(sides, 0.0)
    assert (found.offset.tolist(), found.half.tolist()) == ([1.0], [4.0])


def test_rounds_that_differ_by_more_than_their_pings_widen_the_band() -> None:
    rng = np.random.default_rng(34)
    at = np.linspace(0, 60 * SECOND, 25)
    held, wider = [], []
    for _ in range(100):
        lower, upper, drift = pings(rng, LAWS["several queues"], rounds(60), 32)
        each = np.searchsorted(rounds(60), lower[0], side="right")
        out, back = (rng.exponential(2e4, each.max() + 1)[each] for _ in range(2))
        calm, line = (
            fitted((lower, upper)),
            fitted(((lower[0], lower[1] - out), (upper[0], upper[1] + back))),
        )
        held.append((np.abs(line.at(at) - drift * at) <= line.band_at(at)).all())
        wider.append(line.band_at(at).max() / calm.band_at(at).max())
    assert np.mean(held) >= 0.95
    assert np.median(wider) > 2


def test_pings_alone_say_how_long_messages_take_where_there_are_pings() -> None:
    rng = np.random.default_rng(35)
    sides = []
    for sign, waits_ns in ((-1, 4e6), (1, 0.0)):
        when = np.linspace(0, 60 * SECOND, 400)
        asked = np.repeat(rounds(60), 32)
        late = np.concatenate([2e5 + rng.gamma(3, 5e3, len(asked)), 2e5 + waits_ns + 0 * when])
        sides.append(Bounds(np.rint([*asked, *when]).astype(int), np.rint(sign * late).astype(int)))
    count = 32 * len(rounds(60))
    of_pings = tuple(Bounds(each.at_ns[:count], each.value_ns[:count]) for each in sides)
    line = fit_clock(sides[0], sides[1], None, (of_pings[0], of_pings[1]))
    assert line is not None
    at = np.linspace(0, 60 * SECOND, 25).astype(int)
    bound, symmetric = line.worst_between(0, int(60 * SECOND))
    assert np.abs(line.offset_at(at)).max() <= symmetric < bound / 20
