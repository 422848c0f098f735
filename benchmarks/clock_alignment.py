"""How well the clocks of two hosts are known from pings: beside the middle of what is feasible.

Drawn are clocks that drift by up to 100 ppm, a wire that is alike both ways, and delays of five
laws; pings come in rounds, as ``runtime`` sends them, over a run of 0.2 s, 3 s and ten minutes.
Every line is of the same draws:

    middle    half way between the highest and the lowest line that fits all bounds; what it
              states holds whatever way messages took
    serried   least squares through the tightest bounds of windows of time; what it states holds
              if messages take as long either way
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from serried.trace.clocks.region import feasible_region
from serried.trace.clocks.symmetric import Sides, symmetric_line

Reals = NDArray[np.float64]
Law = Callable[[np.random.Generator, int], Reals]

DRAWS, ROUND = 200, 32
SECOND = 1e9
LENGTHS_S = (0.2, 3.0, 600.0)
LAWS: dict[str, Law] = {
    "exponential, 0.2 ms": lambda rng, count: rng.exponential(2e5, count),
    "uniform to 0.4 ms": lambda rng, count: rng.uniform(0, 4e5, count),
    "three queues of 10 us": lambda rng, count: rng.gamma(3, 1e4, count),
    "log-normal, 30 us": lambda rng, count: 3e4 * np.exp(rng.normal(0, 0.7, count)),
    "one in seven held up 2 ms": lambda rng, count: (
        rng.gamma(3, 5e3, count) + (rng.random(count) < 1 / 7) * rng.exponential(2e6, count)
    ),
}


def rounds(length_s: float) -> list[float]:
    """Returns when rounds of pings begin, in nanoseconds: ever further apart, and at the end."""
    begins = [0.0]
    while begins[-1] < length_s:
        begins.append(begins[-1] + min(max(0.25, begins[-1] / 4), 120.0))
    return [*(each * SECOND for each in begins[:-1]), length_s * SECOND]


def drawn(rng: np.random.Generator, law: Law, length_s: float) -> tuple[Sides, float]:
    """Returns the bounds that a run's pings make, and how the clock drifts in truth."""
    least, drift = np.exp(rng.uniform(np.log(1e5), np.log(5e7))), rng.uniform(-1e-4, 1e-4)
    lower, upper = [], []
    for begin in rounds(length_s):
        out, back = (least + law(rng, ROUND) for _ in range(2))
        there = begin + np.cumsum(np.concatenate([[0.0], (out + back)[:-1]])) + out
        lower.append((there, drift * there - out))
        upper.append((there, drift * there + back))
    (low_at, low), (high_at, high) = (np.concatenate(each, axis=1) for each in (lower, upper))
    return ((low_at, low), (high_at, high)), float(drift)


def measured(law: Law, length_s: float) -> Iterator[tuple[float, float, float, float]]:
    """Yields, draw by draw, the errors of both lines and what both state, in nanoseconds."""
    rng = np.random.default_rng(7)
    for _ in range(DRAWS):
        sides, drift = drawn(rng, law, length_s)
        at = np.linspace(sides[0][0].min(), sides[1][0].max(), 25)
        region = feasible_region(*sides)
        low, high = region.range_at(at)
        line = symmetric_line(sides, region.slope)
        yield (
            float(np.abs((low + high) / 2 - drift * at).max()),
            float(np.abs(line.at(at) - drift * at).max()),
            float((high - low).max() / 2),
            float(line.band_at(at).max()),
        )


def main() -> None:
    """Prints the figures."""
    print(f"{DRAWS} draws a line; medians in microseconds, and how many of 100 draws were covered")
    print(f"{'delays':26} {'run':>6} | {'middle':>8} {'stated':>9} | serried  stated  held")
    ratios = []
    for name, law in LAWS.items():
        for length_s in LENGTHS_S:
            middle, ours, stated, band = np.array([*measured(law, length_s)]).T / 1e3
            held = 100 * float((ours <= band).mean())
            ratios.append(float(np.median(middle) / np.median(ours)))
            print(
                f"{name:26} {length_s:4.4g} s | {np.median(middle):8.1f} {np.median(stated):9.0f}"
                f" | {np.median(ours):7.1f} {np.median(band):7.1f} {held:5.0f}"
            )
    print(f"the middle is off by {min(ratios):.1f} to {max(ratios):.1f} times as much as ours")


if __name__ == "__main__":
    main()
