"""The runs behind ``planned_on_gpu``: each row planned, then run, what came of it written at once.

    python -m benchmarks.planned_on_gpu --run rows.csv             one rank each
    python -m benchmarks.planned_on_gpu --run rows.csv --shared    those that share the GPU

One process runs all rows of one rank; torch has then loaded what it needs before the first.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.planned_on_gpu import (
    APART,
    ASKED,
    FITTED,
    MEMORY,
    WARM_UP,
    Row,
    calibrated,
    planned_ms,
    written,
)
from serried.runtime.job.report import MemoryPeaks
from tests.runtime.many_runs import Ran, run_each


def measured(file: Path, families: Sequence[str], *, is_shared: bool) -> None:
    """Plans and runs rows of ``families``, or all, writing all of them into ``file`` after each."""
    gpu = "h200" if "H200" in torch.cuda.get_device_name() else "h100"
    asked = [row for row in ASKED if row.family in families] if families else ASKED
    rows = [replace(row, gpu=gpu) for row in asked if (row.role == MEMORY) == is_shared]
    shipped = planned_ms(rows)
    rows = [
        replace(row, planned_by_shipped_ms=ms, planned_gib=row.memory_gib())
        for row, ms in zip(rows, shipped, strict=True)
    ]
    written(rows, file)
    if is_shared:
        _run(rows, range(len(rows)), file)
        return
    for family in dict.fromkeys(row.family for row in rows):
        mine = [n for n, row in enumerate(rows) if row.family == family]
        fitted = [n for n in mine if rows[n].role == FITTED]
        apart = [n for n in mine if rows[n].role == APART]
        _run(rows, fitted, file)
        constants = calibrated([rows[n] for n in fitted if rows[n].step_ms])
        for n, ms in zip(apart, planned_ms([rows[n] for n in apart], constants), strict=True):
            rows[n] = replace(rows[n], planned_ms=ms)
        written(rows, file)
        print(f"{time.strftime('%T')} planned before they run: {family}", flush=True)
        _run(rows, apart, file)


def _run(rows: list[Row], places: Sequence[int], file: Path) -> None:
    """Runs rows one after another; one that cannot be is told, and the others go on."""
    left = list(places)
    while left:
        try:
            for ran in run_each([rows[n].settings() for n in left]):
                _keep(rows, left[0], ran)
                written(rows, file)
                left.pop(0)
        except AssertionError as error:
            print(f"{rows[left.pop(0)].name}: {error}", flush=True)


def _keep(rows: list[Row], n: int, ran: Ran) -> None:
    steps = [each.duration_ms for each in ran.steps[WARM_UP:] or ran.steps]
    peaks = [each for each in ran.events if isinstance(each, MemoryPeaks)]
    if not steps:
        print(f"{rows[n].name}: {ran.error}", flush=True)
        return
    gib = max(peaks[-1].peak_bytes) / 2**30 if peaks else 0.0
    rows[n] = replace(rows[n], step_ms=statistics.median(steps), gib=gib)
    took = " ".join(f"{each.duration_ms:.0f}" for each in ran.steps)
    print(f"{time.strftime('%T')} {rows[n].name}: {took} ms, {gib:.3f} GiB", flush=True)
