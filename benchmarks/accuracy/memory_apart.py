"""How often intervals of planned peaks hold: on all rows, and on rows that did not make them.

peak ─> the part of the plan by which it is off, beyond the bytes that an implementation is off by
  ─> without a model, a GPU type or a table: what nine of ten others stay within ─> does it hold?
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.accuracy.memory_rows import MeasuredMemory
from serried.plan.memory.implementation import Implementation, implementation_of
from serried.plan.memory.job_memory import job_memory

LEAST = 0.03
"""No interval is narrower, however near the other rows' plans are."""
FEWEST = 8
"""Rows of an implementation and kind of model that tell how far its plans are off."""


@dataclass(frozen=True, eq=False)
class Peaks:
    """Holds measured peaks, one a row in every field."""

    models: np.ndarray
    gpus: np.ndarray
    tables: np.ndarray
    kinds: np.ndarray
    """The implementation, and whether the model has experts."""
    off: np.ndarray
    """By which part of the plan each is off, beyond the bytes that it may be."""
    told: np.ndarray
    """The part that its interval goes."""
    otherwise: np.ndarray
    """The part that goes for an implementation of which nothing was measured."""

    @property
    def covered(self) -> float:
        """The share that lies in its interval."""
        return float((self.off <= self.told).mean())


def peaks_of(rows: Iterable[MeasuredMemory]) -> Peaks | None:
    """Returns the peaks among rows, None where there are none.

    What is held between steps is none, nor is what did not fit.
    """
    unknown = Implementation("", "")
    found = []
    for row in rows:
        if row.num_bytes is None or "steady" in row.what:
            continue
        asked, job = row.request, job_memory(row.request)
        place = job.of_ranks[-1] if "last" in row.what else job.fullest
        built = implementation_of(asked.framework, asked.options)
        planned = row.planned()
        short = max(0.0, abs(planned - row.num_bytes) - built.error_bytes)
        model = asked.model
        experts = model.experts.count if model.experts else 0
        found.append(
            (
                f"{model.hidden}/{model.ffn}/{experts}",
                asked.cluster.gpu.name,
                row.table,
                f"{built.name.removesuffix('-local')} {bool(experts)}",
                short / planned,
                place.error,
                unknown.error_of(model),
            )
        )
    if not found:
        return None
    return Peaks(*(np.array(column) for column in zip(*found, strict=True)))


def coverage(peaks: Peaks) -> Iterator[tuple[str, float]]:
    """Yields how often intervals hold that are made without the rows of a model, GPU or table."""
    for name, groups in (
        ("model", peaks.models),
        ("GPU type", peaks.gpus),
        ("table", peaks.tables),
    ):
        inside = np.zeros(groups.size, bool)
        for row in range(groups.size):
            others = (groups != groups[row]) & (peaks.kinds == peaks.kinds[row])
            told = peaks.otherwise[row]
            if others.sum() >= FEWEST:
                told = np.quantile(peaks.off[others], 0.9)
            inside[row] = peaks.off[row] <= max(LEAST, told)
        yield name, float(inside.mean())
