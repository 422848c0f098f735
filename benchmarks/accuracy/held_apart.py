"""Steps as predicted by constants that saw nothing of them, and the intervals that follow from it.

    rows of a folder ─> one line: ln(predicted) by the logarithms of the constants
      ─> without a group of rows, fitted anew along that line ─> the group's steps, by the formulas
      ─> residuals by kind of job and by how familiar it was ─> half widths

A group is a configuration, a model, a GPU type or a table. Widths are judged as constants are: of a
group by those that the residuals of all other groups give.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.accuracy.fitting import Examples, folds
from benchmarks.accuracy.table import Errors
from serried.plan.calibration.expected import expectations
from serried.plan.calibration.fit import LinearFit, fit
from serried.plan.time.constants import Constants
from serried.plan.time.experience import FAMILIARITIES, Experience, JobMark
from serried.plan.time.interval import experience_of, marks_of
from serried.plan.time.jobs import Jobs
from serried.plan.time.step import step_times

LEAST_WEIGHT = 0.1
"""Rows that weigh less in a fit are no experience of it, and no interval is made of them."""
QUANTILE = 0.93
"""What makes the widths: above the 0.9 that they hold for, as few groups stand behind each."""
KINDS = ("dense", "moe", "lora")
SMALL = 1024
"""The most GPUs of jobs that constants are fitted to where larger ones are predicted by them."""
LIKE_RUNS = ("configuration", "table")
"""What is left out to show how far a step is off that was measured alike."""


@dataclass(frozen=True, eq=False)
class Apart:
    """Holds residuals of rows whose group was left out, one a row in every field."""

    name: str
    groups: np.ndarray
    residuals: np.ndarray
    """ln(measured / predicted)."""
    familiar: np.ndarray
    """How familiar each row was to the fit: an index of ``FAMILIARITIES``."""


def held_apart(shown: Examples, constants: Constants) -> list[Apart]:
    """Returns the residuals of every row, once for each way to leave groups out."""
    line = LinearFit.of(shown.jobs, shown.steps, expectations(), constants)
    marks = marks_of(shown.jobs)
    ways = {
        "configuration": folds(shown.configurations),
        "model": shown.models,
        "GPU type": shown.gpus,
        "table": shown.tables,
    }
    return [_left_out(name, groups, shown, line, marks) for name, groups in ways.items()]


def _left_out(
    name: str, groups: np.ndarray, shown: Examples, line: LinearFit, marks: Sequence[JobMark]
) -> Apart:
    residuals, familiar = np.zeros(shown.steps.size), np.zeros(shown.steps.size, np.intp)
    counts = shown.weights >= LEAST_WEIGHT
    for group in np.unique(groups[counts]):
        hidden = groups == group
        known = line.fitted(np.where(hidden, 0.0, shown.weights))
        predicted = step_times(shown.jobs, known).step
        residuals[hidden] = np.log(shown.steps / predicted)[hidden]
        seen = Experience(
            frozenset(marks[row] for row in np.flatnonzero(counts & ~hidden).tolist())
        )
        for row in np.flatnonzero(hidden).tolist():
            familiar[row] = FAMILIARITIES.index(seen.of(marks[row]))
    return Apart(name, groups, residuals, familiar)


def widths(
    shown: Examples, found: Iterable[Apart], chosen: Mapping[str, np.ndarray] | None = None
) -> dict[str, tuple[float, ...]]:
    """Returns half widths by kind of job, one for each familiarity, the less familiar the wider.

    ``chosen`` tells which residuals of each way count, all by default. A group counts by the root
    of its rows. A kind of which too few are left has the ratios of dense models.
    """
    told = list(found)
    made: dict[str, tuple[float, ...]] = {}
    for kind in KINDS:
        known: list[float] = []
        for place in range(len(FAMILIARITIES)):
            values, weights = _cell(shown, told, kind, place, chosen)
            before = known[-1] if known else 0.3
            ratio = made["dense"][place] / made["dense"][place - 1] if made and place else 1.3
            width = _quantile(values, weights) if values.size >= 8 else before * ratio
            known.append(max(width, known[-1] if known else 0.0))
        made[kind] = tuple(known)
    return made


def _cell(
    shown: Examples,
    found: Sequence[Apart],
    kind: str,
    place: int,
    chosen: Mapping[str, np.ndarray] | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns sizes of residuals of a kind and familiarity, and how much each counts."""
    values, weights = [], []
    for each in found:
        if each.name not in LIKE_RUNS if place == 0 else each.name == "configuration":
            continue
        rows = (shown.weights >= LEAST_WEIGHT) & (shown.kinds == kind) & (each.familiar == place)
        if chosen is not None:
            rows = rows & chosen[each.name]
        _, which, counts = np.unique(each.groups[rows], return_inverse=True, return_counts=True)
        values.append(np.abs(each.residuals[rows]))
        alone = each.name == "configuration"
        weights.append(np.ones(which.size) if alone else counts[which].astype(float) ** -0.5)
    return np.concatenate(values), np.concatenate(weights)


def _quantile(values: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(values)
    along = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][min(int(np.searchsorted(along, QUANTILE)), values.size - 1)])


def coverage(
    shown: Examples, found: Sequence[Apart], most: int | None = None
) -> Iterator[tuple[str, float]]:
    """Yields how often the intervals hold on rows that neither constants nor widths saw.

    ``most`` is how many rows are counted, from the first on; all by default.
    """
    counts = (shown.weights >= LEAST_WEIGHT) & (np.arange(shown.weights.size) < (most or np.inf))
    for each in found:
        yield each.name, float(inside(shown, found, each, counts)[counts].mean())


def inside(shown: Examples, found: Sequence[Apart], way: Apart, counts: np.ndarray) -> np.ndarray:
    """Returns which rows lie within intervals that are made without their own group."""
    held = np.zeros(counts.size, bool)
    for group in np.unique(way.groups[counts]):
        hidden = (way.groups == group) & counts
        known = widths(shown, found, {other.name: ~hidden for other in found})
        for row in np.flatnonzero(hidden):
            width = known[str(shown.kinds[row])][way.familiar[row]]
            held[row] = abs(way.residuals[row]) <= width
    return held


def by_group(
    shown: Examples, found: Sequence[Apart], way: Apart
) -> Iterator[tuple[str, Errors, float]]:
    """Yields the errors of each group that was left out, and how often its intervals hold."""
    counts = shown.weights >= LEAST_WEIGHT
    held, predicted = inside(shown, found, way, counts), shown.steps / np.exp(way.residuals)
    for group in np.unique(way.groups[counts]):
        rows = (way.groups == group) & counts
        yield str(group), Errors.of(predicted[rows], shown.steps[rows]), float(held[rows].mean())


def by_scale(shown: Examples, constants: Constants) -> Iterator[tuple[str, Errors]]:
    """Yields the errors of jobs by their GPUs, of constants fitted to the smaller ones alone."""
    gpus, counts = shown.jobs.world_size, shown.weights >= LEAST_WEIGHT
    start = {name: each.value for name, each in constants.entries.items()}
    weights = np.where(gpus <= SMALL, shown.weights, 0.0)
    known = fit(shown.jobs, shown.steps, expectations(), weights, start).constants
    found = step_times(shown.jobs, known).step
    for low, high in ((0, SMALL), (SMALL, 4095), (4095, 8192), (8192, int(gpus.max()))):
        rows = counts & (gpus > low) & (gpus <= high)
        if rows.any():
            name = f"{low + 1:,} to {high:,} GPUs"
            yield name, Errors.of(found[rows], shown.steps[rows])


def experience(shown: Examples) -> Experience:
    """Returns what a fit to these rows has seen."""
    rows = np.flatnonzero(shown.weights >= LEAST_WEIGHT)
    return experience_of(Jobs.of(shown.requests[row] for row in rows))
