"""The errors of predictions, table by table, and how much a choice by them loses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from serried.plan.calibration.rows import Measured


@dataclass(frozen=True)
class Errors:
    """Holds errors of step times in percent of what was measured."""

    rows: int
    mean: float
    median: float
    p90: float
    most: float
    bias: float

    @classmethod
    def of(cls, predicted: np.ndarray, measured: np.ndarray) -> Errors:
        """Returns the errors of so many predictions."""
        off = (predicted / measured - 1) * 100
        size = np.abs(off)
        return cls(
            off.size,
            float(size.mean()),
            float(np.median(size)),
            float(np.percentile(size, 90)),
            float(size.max()),
            float(off.mean()),
        )


HEAD = f"{'':34}{'rows':>6}{'mean %':>8}{'median':>8}{'p90':>8}{'most':>8}{'bias':>8}"


def line(name: str, errors: Errors) -> str:
    """Returns one line of the table."""
    cells = (errors.mean, errors.median, errors.p90, errors.most, errors.bias)
    return f"{name:34}{errors.rows:6}" + "".join(f"{each:8.1f}" for each in cells)


def parts(rows: Sequence[Measured]) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the lines of a table: each table's rows, then all of them by task."""
    tables = np.array([row.table for row in rows])
    tasks = np.array([row.task for row in rows])
    for name in np.unique(tables):
        yield str(name), tables == name
    for name, chosen in (
        ("all pretraining and SFT", tasks != "lora"),
        ("all LoRA", tasks == "lora"),
        ("all", np.full(len(rows), fill_value=True)),
    ):
        if chosen.any():
            yield name, chosen


def regrets(rows: Sequence[Measured], predicted: np.ndarray) -> list[tuple[str, int, float]]:
    """Returns what choosing the layout predicted fastest loses, by group of measured layouts.

    A group is of one model, GPU, number of GPUs, batch, sequence, precision and day; configurations
    measured twice count by their mean. Percent of the fastest measured.
    """
    groups: dict[tuple[Any, ...], dict[str, list[tuple[float, float]]]] = {}
    for row, time in zip(rows, predicted, strict=True):
        asked = row.request
        shape = (asked.model.layers, asked.model.hidden, asked.model.heads)
        size = (asked.degrees.world_size, asked.global_batch, asked.sequence)
        key: tuple[Any, ...] = (
            row.table,
            row.model,
            shape,
            row.gpu,
            size,
            row.precision,
            row.task,
            row.day,
        )
        measured = row.step_s or np.nan
        groups.setdefault(key, {}).setdefault(row.configuration, []).append((time, measured))
    found = []
    for key, layouts in groups.items():
        if len(layouts) < 2:
            continue
        means = np.array([np.mean(each, axis=0) for each in layouts.values()])
        chosen = means[np.argmin(means[:, 0]), 1]
        name = f"{key[0]} {key[1]} on {key[4][0]} {key[3]}"
        found.append((name, len(layouts), float(chosen / means[:, 1].min() - 1) * 100))
    return found
