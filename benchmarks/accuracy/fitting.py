"""What the shipped constants are fitted to: rows of tables and of papers, and how each weighs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.accuracy import published
from serried.plan.calibration.calibrate import calibrate
from serried.plan.calibration.expected import expectations
from serried.plan.calibration.fit import fit
from serried.plan.calibration.rows import Measured
from serried.plan.request import PlanRequest
from serried.plan.time.constants import Constant, Constants, shipped
from serried.plan.time.jobs import Jobs
from serried.plan.time.step import step_times

WEIGHTS: Mapping[str, float] = {
    "dgxc_baselines": 1.5,
    "mlperf_pretrain": 2.0,
    "mlperf_lora": 0.7,
    "llm_foundry": 0.8,
    "misc_published": 0.8,
    "korthikanti": 6.0,
    "sc21": 2.0,
    "simumax": 0.7,
    "llama3": 1.0,
    "vtrain": 0.03,
    "mtnlg": 0.0,
}
"""Rows of a table count so much each, 1.2 where nothing is said: clean tables more, and large ones
of one kind less."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Holds what a fit learns from, one entry a measured step in every field."""

    requests: tuple[PlanRequest, ...]
    steps: np.ndarray
    weights: np.ndarray
    configurations: np.ndarray
    models: np.ndarray
    gpus: np.ndarray
    kinds: np.ndarray
    tables: np.ndarray

    @property
    def jobs(self) -> Jobs:
        """The requests as columns."""
        return Jobs.of(self.requests)


def model_of(row: Measured) -> str:
    """Returns a row's model; where a table sweeps shapes under one name, its hidden size too."""
    sized = "hidden" in row.request.options
    return f"{row.model} {row.request.model.hidden}" if sized else row.model


def kind_of(request: PlanRequest) -> str:
    """Returns how a job is told apart by how well it is known: lora, moe or dense."""
    if request.lora is not None:
        return "lora"
    return "moe" if request.model.experts is not None else "dense"


def examples(rows: Sequence[Measured], constants: Constants) -> Examples:
    """Returns rows of tables, then the papers' steps, of whose choices the fastest is taken."""
    told = [row for row in rows if row.step_s]
    asked = [row.request for row in told]
    steps = [float(row.step_s or 0.0) for row in told]
    tables = [row.table for row in told]
    marks = [(row.configuration, model_of(row), row.gpu) for row in told]
    for read in published.ALL:
        for each in read():
            asked.append(_fastest(each.choices, constants))
            steps.append(each.step_s)
            tables.append(each.table)
            model = each.choices[0].model.name if each.table != "vtrain" else "vtrain"
            marks.append((each.name, model, kind_gpu(asked[-1])))
    configurations, models, gpus = (np.array(each) for each in zip(*marks, strict=True))
    return Examples(
        tuple(asked),
        np.array(steps),
        np.array([WEIGHTS.get(name, 1.2) for name in tables]),
        configurations,
        models,
        gpus,
        np.array([kind_of(each) for each in asked]),
        np.array(tables),
    )


def kind_gpu(request: PlanRequest) -> str:
    """Returns the GPU as the tables call it."""
    return request.cluster.gpu.name.split("-")[0]


def _fastest(choices: tuple[PlanRequest, ...], constants: Constants) -> PlanRequest:
    if len(choices) == 1:
        return choices[0]
    return choices[int(np.argmin(step_times(Jobs.of(choices), constants).step))]


def fitted(rows: Sequence[Measured], rounds: int = 2) -> tuple[Constants, Examples]:
    """Returns constants fitted to all; papers' free choices are made anew in each round."""
    known, start = _begun(), None
    for _ in range(rounds):
        shown = examples(rows, known)
        found = fit(shown.jobs, shown.steps, expectations(), shown.weights, start)
        known = found.constants
        start = {name: each.value for name, each in known.entries.items()}
    return known, shown


def _begun() -> Constants:
    """Returns the shipped constants, and as expected those that they do not have yet."""
    told = {name: Constant(each.value, each.width) for name, each in expectations().items()}
    return replace(shipped(), entries=told | dict(shipped().entries))


def calibrated_apart(rows: Sequence[published.Published]) -> np.ndarray:
    """Returns each step as predicted by a calibration on the other folds of its own table."""
    requests = [row.choices[0] for row in rows]
    parts = folds(np.array([row.name for row in rows]))
    found = np.zeros(len(rows))
    for part in np.unique(parts):
        learned = [int(row) for row in np.flatnonzero(parts != part)]
        tried = [int(row) for row in np.flatnonzero(parts == part)]
        known = calibrate(
            [rows[row].name for row in learned],
            [requests[row] for row in learned],
            [rows[row].step_s for row in learned],
        ).constants
        found[tried] = step_times(Jobs.of(requests[row] for row in tried), known).step
    return found


def folds(names: np.ndarray, count: int = 5, seed: int = 0) -> np.ndarray:
    """Returns a fold for each row, the same for rows of one name."""
    distinct, which = np.unique(names, return_inverse=True)
    shuffled = np.random.default_rng(seed).permutation(distinct.size) % count
    return np.asarray(shuffled[which])
