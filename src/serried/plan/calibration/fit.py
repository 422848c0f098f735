"""Fits the efficiency constants to measured steps: few numbers, each held near what is expected.

    minimise   sum of w_i rho(ln predicted_i - ln measured_i)  +  sum of ((ln c - ln e) / s)^2

rho is Huber's: a row far off counts less than its square, so that a few odd measurements do not
move what all others agree on. Each constant c has an expectation e and a width s of its logarithm.
That pulls a GPU type to its generation, and lets rows teach only what they bear on: the standard
error of what no row bears on stays at its width. Levenberg-Marquardt, with numeric derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.plan.time.constants import Constant, Constants
from serried.plan.time.jobs import Jobs
from serried.plan.time.step import step_times

Vector = NDArray[np.float64]
NOISE = 0.06
"""Spread of the logarithm between runs of one configuration: other days, other clusters."""
KNEE = 0.06
"""Beyond this a row counts by its distance, no longer by its square."""


@dataclass(frozen=True)
class Expectation:
    """Holds what a constant is expected to be before anything is measured."""

    value: float
    width: float
    """Standard deviation of its logarithm."""


@dataclass(frozen=True, eq=False)
class Fit:
    """Holds fitted constants, how well each is known among them, and what is left over."""

    constants: Constants
    residuals: Vector
    """ln(predicted / measured), one a row."""


def fit(
    jobs: Jobs,
    steps: Vector,
    expected: Mapping[str, Expectation],
    weights: Vector | None = None,
    start: Mapping[str, float] | None = None,
    rounds: int = 25,
) -> Fit:
    """Returns the constants that predict ``steps`` (seconds, one a job) best.

    Rows of weight 0 are left out. ``start`` is where the search begins, the expectations by
    default; ``rounds`` bounds it.
    """
    names = tuple(expected)
    centre = np.log([expected[name].value for name in names])
    firm = np.array([expected[name].width for name in names]) ** -2.0
    trust = np.ones(steps.size) if weights is None else weights
    measured = np.log(steps)
    point = centre.copy() if start is None else np.log([start[name] for name in names])

    def off(at: Vector) -> Vector:
        return np.asarray(np.log(step_times(jobs, _named(names, at)).step) - measured)

    def cost(residual: Vector, at: Vector) -> float:
        size = np.abs(residual)
        bent = np.where(size < KNEE, residual**2, 2 * KNEE * size - KNEE**2)
        return float((trust * bent).sum() / NOISE**2 + (firm * (at - centre) ** 2).sum())

    damping, residual = 1e-2, off(point)
    best = cost(residual, point)
    for _ in range(rounds):
        curve, slope = _normal(off, point, residual, trust, firm, centre)
        before = best
        for _ in range(6):
            damped = curve + damping * np.diag(np.diag(curve))
            tried = point + np.clip(-np.linalg.solve(damped, slope), -0.5, 0.5)
            found = off(tried)
            if (now := cost(found, tried)) < best:
                point, residual, best, damping = tried, found, now, max(damping / 5, 1e-6)
                break
            damping *= 6
        if before - best < 1e-3:
            break
    curve, _ = _normal(off, point, residual, trust, firm, centre)
    errors = np.sqrt(np.diag(np.linalg.inv(curve)))
    bears = np.clip(1.0 - errors**2 * firm, 0.0, 1.0)
    entries = {
        name: Constant(float(value), float(error), float(told))
        for name, value, error, told in zip(names, np.exp(point), errors, bears, strict=True)
    }
    return Fit(Constants(entries, {}, ""), residual)


def _named(names: tuple[str, ...], at: Vector) -> Constants:
    values = np.exp(at)
    entries = {name: Constant(float(each), 0.0) for name, each in zip(names, values, strict=True)}
    return Constants(entries, {}, "")


def _normal(
    off: Callable[[Vector], Vector],
    point: Vector,
    residual: Vector,
    trust: Vector,
    firm: Vector,
    centre: Vector,
) -> tuple[Vector, Vector]:
    """Returns curvature and slope of the cost at a point, half of each."""
    step = 1e-4
    table = np.empty((residual.size, point.size))
    for column in range(point.size):
        moved = point.copy()
        moved[column] += step
        table[:, column] = (off(moved) - residual) / step
    size = np.maximum(np.abs(residual), 1e-12)
    counted = trust * np.where(size < KNEE, 1.0, KNEE / size) / NOISE**2
    curve = (table * counted[:, None]).T @ table + np.diag(firm)
    return curve, table.T @ (counted * residual) + firm * (point - centre)


@dataclass(frozen=True, eq=False)
class LinearFit:
    """Holds steps as a line in the logarithms of the constants, about some of them.

    Fits to some of the rows follow from it in milliseconds, to first order.
    """

    names: tuple[str, ...]
    centre: Vector
    firm: Vector
    point: Vector
    residual: Vector
    """ln(predicted / measured) at the point, one a row."""
    slopes: NDArray[np.float64]
    """The derivatives of that, one row a job and one column a constant."""

    @classmethod
    def of(
        cls, jobs: Jobs, steps: Vector, expected: Mapping[str, Expectation], about: Constants
    ) -> LinearFit:
        """Returns the line of measured steps (seconds, one a job) about constants."""
        names, measured, step = tuple(expected), np.log(steps), 1e-3
        centre = np.log([expected[name].value for name in names])
        point = np.log([about.value(name) for name in names])
        residual = np.asarray(np.log(step_times(jobs, _named(names, point)).step) - measured)
        slopes = np.empty((residual.size, point.size))
        for column in range(point.size):
            moved = point.copy()
            moved[column] += step
            found = np.log(step_times(jobs, _named(names, moved)).step) - measured
            slopes[:, column] = (found - residual) / step
        firm = np.array([expected[name].width for name in names]) ** -2.0
        return cls(names, centre, firm, point, residual, slopes)

    def fitted(self, weights: Vector, rounds: int = 8) -> Constants:
        """Returns the constants that a fit to so weighed rows finds along the line."""
        rows = weights > 0
        slopes, start, trust = self.slopes[rows], self.residual[rows], weights[rows]
        moved = np.zeros(self.point.size)
        for _ in range(rounds):
            off = start + slopes @ moved
            size = np.maximum(np.abs(off), 1e-12)
            counted = trust * np.where(size < KNEE, 1.0, KNEE / size) / NOISE**2
            curve = (slopes * counted[:, None]).T @ slopes + np.diag(self.firm)
            slope = slopes.T @ (counted * off) + self.firm * (self.point + moved - self.centre)
            moved = moved - np.linalg.solve(curve, slope)
        return _named(self.names, self.point + moved)
