"""Measured memory beside planned memory, from any of these tables of a folder.

simumax_b200_real_vs_model.csv                  allocated at most, of the fullest rank
megatron_functional_golden_memory_time.csv      allocated at most and between steps, last stage
perf_*.csv, rows with mem_GiB                   in use on the device, or reserved, of the same
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.accuracy import memory_apart
from benchmarks.accuracy.megatron_tests import megatron
from benchmarks.accuracy.memory_rows import (
    B200,
    FIGURES,
    GIB,
    MeasuredMemory,
    cells_of,
    number,
)
from benchmarks.accuracy.simumax_models import SIMUMAX_MODELS
from benchmarks.accuracy.table import HEAD, Errors, line
from serried.errors import InputError
from serried.plan.calibration.rows import MODELS, read_folder
from serried.plan.calibration.specs import model_of
from serried.plan.cluster.cluster import Cluster
from serried.plan.degrees import Degrees
from serried.plan.memory.job_memory import job_memory
from serried.plan.model.stages import layers_accounted
from serried.plan.request import PlanRequest

# ----------------------------------------------------------------------- SimuMax, 8 x B200


def simumax(path: Path) -> Iterator[MeasuredMemory]:
    known = dict(SIMUMAX_MODELS)
    if (path.parent / MODELS).is_file():  # models that stand beside the table, as in other tables
        rows = [row for row in cells_of(path.parent / MODELS) if row["layers"]]
        known |= {row["model"]: model_of(row) for row in rows if row["model"] not in known}
    for cells in cells_of(path):
        if cells["model"] not in known:
            continue
        axes = {axis: int(size) for axis, size in re.findall(r"([a-z]+)(\d+)", cells["parallel"])}
        degrees = _eight(axes, number(cells, "cp", 1))
        model = replace(known[cells["model"]], layers=number(cells, "layers"))
        request = PlanRequest(
            model,
            Cluster("8xb200", B200, 8, 8, 50e9),
            degrees,
            sequence=number(cells, "seq"),
            global_batch=degrees.dp * number(cells, "mbc"),
            schedule="interleaved-1f1b" if degrees.chunks > 1 else "1f1b",
            options={"cross_entropy_fusion_impl": "te", "cp_comm_type": "a2a"},
        )
        real = float(cells["real_max_rank_GiB"]) * GIB
        yield MeasuredMemory("simumax_b200", cells["case"], "allocated", "", request, real)


def _eight(axes: Mapping[str, int], cp: int) -> Degrees:
    tp, pp = axes.get("tp", 1), axes.get("pp", 1)
    told = {"ep": axes.get("ep", 1), "etp": axes.get("etp", 1), "chunks": axes.get("vp", 1)}
    return Degrees(tp=tp, pp=pp, cp=cp, dp=8 // (tp * pp * cp), **told)


# ----------------------------------------------------------------------- perf_*.csv


def of_jobs(folder: Path) -> Iterator[MeasuredMemory]:
    """Yields rows of measured steps that say what memory they took, or that they found too little.

    What a row's source means by memory stands in its options: all that a device has in use, or
    what torch's allocator reserved.
    """
    try:
        rows = read_folder(folder, ("1", "mem", "oom")).rows
    except InputError:  # of other tables
        return
    for row in rows:
        if row.memory_gib is None and row.score != "oom":
            continue
        what = "reserved" if "reserved" in row.request.options.get("mem", "") else "in use"
        real = row.memory_gib * GIB if row.memory_gib else None
        request = _balanced(row.request)
        try:
            job_memory(request)
        except InputError:
            continue
        yield MeasuredMemory(row.table, row.name, what, request.framework, request, real)


def _balanced(request: PlanRequest) -> PlanRequest:
    """Returns a job whose ends count as layers, where its row says that these are balanced."""
    if "balanced" not in request.options.get("layout", ""):
        return request
    degrees = request.degrees
    counts = layers_accounted(request.model, degrees.pp, degrees.chunks)
    return replace(request, stage_layers=tuple(counts))


# ----------------------------------------------------------------------- the table


READERS: Mapping[str, Callable[[Path], Iterator[MeasuredMemory]]] = {
    "simumax_b200_real_vs_model.csv": simumax,
    "megatron_functional_golden_memory_time.csv": megatron,
}


def measured_memory(folder: Path) -> list[MeasuredMemory]:
    """Returns every figure that a folder's tables have and that can be planned."""
    found = list(of_jobs(folder))
    for name, read in READERS.items():
        if (folder / name).is_file():
            found += read(folder / name)
    return found


def errors(rows: Iterable[MeasuredMemory]) -> Errors:
    """Returns how far plans are off."""
    pairs = [(row.planned(), row.num_bytes) for row in rows if row.num_bytes]
    planned, real = zip(*pairs, strict=True)
    return Errors.of(np.array(planned), np.array(real))


def wrongly_fitting(rows: Iterable[MeasuredMemory]) -> int:
    """Returns how many jobs that ran out of memory are said to fit."""
    return sum(job_memory(row.request).fits for row in rows if row.num_bytes is None)


def print_memory(folder: Path) -> None:
    """Prints the errors of planned memory by table and kind of row."""
    rows = measured_memory(folder)
    if not rows:
        return
    print("\nmemory of the fullest rank, or of the last stage where that alone was logged")
    print(HEAD)
    groups: dict[tuple[str, str], list[MeasuredMemory]] = {}
    for row in rows:
        for group in {"", row.group}:
            groups.setdefault((row.table, group), []).append(row)
    for (table, group), each in sorted(groups.items()):
        if any(row.num_bytes for row in each):
            print(line(f"  {group}" if group else table, errors(each)))
    print_intervals(rows)
    missed = [row for row in rows if row.num_bytes is None]
    if missed:
        print(f"of {len(missed)} that ran out of memory, {wrongly_fitting(missed)} are said to fit")


def print_intervals(rows: Iterable[MeasuredMemory]) -> None:
    """Prints how often the intervals of planned peaks hold, where any were measured."""
    peaks = memory_apart.peaks_of(rows)
    if peaks is None:
        return
    print(
        f"measured peak inside the 90 % interval: {100 * peaks.covered:.0f} % of rows; held apart,"
    )
    for name, share in memory_apart.coverage(peaks):
        print(f"  interval of rows of other {name + 's:':12}{100 * share:3.0f} %")


def document_memory(folder: Path) -> list[dict[str, object]]:
    """Returns every row's prediction with its interval."""
    found: list[dict[str, object]] = []
    for row in measured_memory(folder):
        job = job_memory(row.request)
        place = job.of_ranks[-1] if "last" in row.what else job.fullest
        planned = FIGURES[row.what](job)
        off = place.error * planned + place.error_bytes
        found.append(
            {
                "row": row.row,
                "table": row.table,
                "what": row.what,
                "measured_bytes": row.num_bytes,
                "predicted_bytes": planned,
                "interval_bytes": [max(0.0, planned - off), planned + off],
                "fits": job.fits,
            }
        )
    return found
