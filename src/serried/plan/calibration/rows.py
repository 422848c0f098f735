"""Measured steps as CSV: tables whose rows are a job each, and how long its step took.

One schema for all tables: row, score, ref, release, task, model, layers, gpu, gpus, tp, pp, vpp,
cp, ep, etp, dp, sharding, fsdp_group, sp, precision, recompute, offload, seq, mbs, gbs, step_s,
mem_GiB, extra (k=v;…), note. The first line names the source. Empty is not stated: ``row_job``
says what is taken then, and ``Measured.assumed`` which of it a row needed.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from serried import user_file
from serried.errors import InputError
from serried.finding import said
from serried.limits import PLAN_ROWS_BYTES
from serried.plan.calibration.row_job import row_job
from serried.plan.calibration.specs import Row, gpus_of, number
from serried.plan.cluster.cluster import Gpu
from serried.plan.request import PlanRequest

WHAT = said("a table of measured steps")
MODELS, GPUS = "perf_models.csv", "gpu_specs.csv"


@dataclass(frozen=True)
class Measured:
    """Holds one row: the job, its step, and what had to be assumed."""

    name: str
    table: str
    configuration: str
    """The part of the name that rows of one configuration share."""
    score: str
    task: str
    model: str
    gpu: str
    precision: str
    request: PlanRequest
    step_s: float | None
    memory_gib: float | None
    assumed: tuple[str, ...]
    day: str
    """Release, or day of measurement: rows of one can be ranked among themselves."""


@dataclass(frozen=True)
class Folder:
    """Holds the tables of a folder, and the rows that cannot be planned with why."""

    rows: tuple[Measured, ...]
    left_out: tuple[tuple[str, str], ...]


def read_folder(folder: Path, scores: Sequence[str] = ("1",)) -> Folder:
    """Returns the rows of every ``perf_*.csv`` in a folder that have one of the scores.

    Models and specifications are those that stand beside them, else the catalog's. Raises
    InputError where no table has a row that can be planned.
    """
    beside = {name: _beside(folder / name) for name in (MODELS, GPUS)}
    models = {row["model"]: row for row in beside[MODELS]}
    gpus = gpus_of(beside[GPUS])
    rows: list[Measured] = []
    left_out: list[tuple[str, str]] = []
    tables = [path for path in sorted(folder.glob("perf_*.csv")) if path.name != MODELS]
    for path in tables:
        source, cells = read_csv(path)
        if cells and "score" not in cells[0]:
            continue
        for row in completed(cells):
            if row["score"] not in scores:
                continue
            try:
                rows.append(measured(row, path.stem.removeprefix("perf_"), source, models, gpus))
            except InputError as error:
                left_out.append((row["row"], str(error)))
    if not rows and left_out:
        raise InputError(
            "{folder} has no perf_*.csv with rows to plan; the first that cannot be: {why}",
            folder=str(folder),
            why=left_out[0][1],
        )
    if not rows:
        raise InputError("{folder} has no perf_*.csv with rows to plan", folder=str(folder))
    return Folder(tuple(rows), tuple(left_out))


def _beside(path: Path) -> list[dict[str, str]]:
    """Returns the rows of a table where it is there."""
    return read_csv(path)[1] if path.is_file() else []


def read_table(path: Path) -> Folder:
    """Returns the measured steps of one table, its models and GPUs those of the catalog.

    Models and specifications beside it, where there are any, come first. Rows that cannot be
    planned are left out by name. Raises InputError for a table without rows that can.
    """
    beside = {name: path.parent / name for name in (MODELS, GPUS)}
    models, specs = (
        ([], [])
        if not all(each.is_file() for each in beside.values())
        else (
            read_csv(beside[MODELS])[1],
            read_csv(beside[GPUS])[1],
        )
    )
    known = {row["model"]: row for row in models}
    source, cells = read_csv(path)
    rows: list[Measured] = []
    left_out: list[tuple[str, str]] = []
    for line, row in enumerate(cells, start=2):
        told = {"row": f"line {line}", "score": "1", **{key: row[key] or "" for key in row}}
        try:
            rows.append(measured(told, path.stem, source, known, gpus_of(specs)))
        except InputError as error:
            left_out.append((told["row"], str(error)))
        except KeyError as error:
            lacking = InputError("it has no column {column}", column=error.args[0])
            left_out.append((told["row"], str(lacking)))
    if not rows:
        why = left_out[0][1] if left_out else "it is empty"
        raise InputError(
            "{path} has no measured step that can be planned: {why}", path=str(path), why=why
        )
    return Folder(tuple(rows), tuple(left_out))


def read_csv(path: Path) -> tuple[str, list[dict[str, str]]]:
    """Returns the source line of a table, "" without one, and its rows."""
    text = user_file.read_text(path, PLAN_ROWS_BYTES.most, WHAT)
    lines = text.splitlines()
    source = lines.pop(0)[1:].strip() if lines and lines[0].startswith("#") else ""
    return source, list(csv.DictReader(lines))


def completed(cells: list[dict[str, str]]) -> list[dict[str, str]]:
    """Returns rows with what they recompute and offload as another of their configuration tells.

    >>> told = [{"row": "a.1", "recompute": "full", "offload": "none"}, {"row": "a.2"}]
    >>> completed(told)[1]["recompute"]
    'full'
    """
    known: dict[str, dict[str, str]] = {}
    for row in cells:
        if row.get("recompute"):
            told = {name: row.get(name) or "" for name in ("recompute", "offload")}
            known.setdefault(row["row"].split(".")[0], told)
    return [
        row if row.get("recompute") else row | known.get(row["row"].split(".")[0], {})
        for row in cells
    ]


def measured(
    row: Row,
    table: str,
    source: str,
    models: Mapping[str, Row],
    gpus: Mapping[str, tuple[Gpu, Row]],
) -> Measured:
    """Returns what one row says; raises InputError where it is no job that could run."""
    is_packed = row.get("task") in ("sft", "lora") and "mlperf" not in table
    request, assumed = row_job(row, source, models, gpus, is_packed=is_packed)
    return Measured(
        row["row"],
        table,
        row["row"].split(".")[0],
        row.get("score", "1"),
        row.get("task", ""),
        row["model"],
        row["gpu"],
        row.get("precision", ""),
        request,
        number(row, "step_s") or None,
        number(row, "mem_GiB") or None,
        assumed,
        row.get("release", ""),
    )
