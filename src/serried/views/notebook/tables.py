"""The tables of a value, as columns whose names are those of the JSON documents, units included.

layout      a kind each, and all of them     kind group position rank
schedule    actions, idle                    rank place action stage kind microbatch start end
plan        memory, traffic, time            bytes and seconds
trace       spans, ranks, steps              start_ns …, compute_us …
diagnosis   findings, waiting
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from serried.action import ActionKind
from serried.diagnose.diagnosis import Diagnosis
from serried.errors import InputError, listed
from serried.mesh import Layout
from serried.pipeline.measured import MeasuredSchedule
from serried.plan.job_plan import JobPlan
from serried.trace.measure.statistics import measure
from serried.trace.model.trace import Trace
from serried.views.diagnose.document import diagnosis_document
from serried.views.notebook.frame import Columns
from serried.views.plan.document import plan_document
from serried.views.trace.document import stats_document

KINDS = np.array(["", *(kind.name for kind in ActionKind)], dtype=object)
"""The names of kinds of actions, by their numbers."""


def columns_of(value: object, part: str = "") -> Columns:
    """Returns the columns of a part of a value, the first one for "".

    Raises InputError for a part that it does not have, and for a value that has no tables.
    """
    makers = _makers(value)
    if part and part not in makers:
        raise InputError(
            "there is no table {part} here; those that there are: {parts}",
            part=part,
            parts=listed(makers, limit=40),
        )
    return makers[part or next(iter(makers))]()


def _makers(value: object) -> Mapping[str, Callable[[], Columns]]:
    if isinstance(value, Layout):
        names = [kind.name for kind in value.kinds]
        return {
            "all": lambda: _groups(value, names),
            **{name: lambda name=name: _groups(value, [name]) for name in names},  # type: ignore[misc]
        }
    if isinstance(value, MeasuredSchedule):
        return {"actions": lambda: _actions(value), "idle": lambda: _idle(value)}
    if isinstance(value, JobPlan):
        return {
            "memory": lambda: _memory(value),
            "traffic": lambda: _rows(plan_document(value)["traffic"]),
            "time": lambda: {
                "part": list(value.parts),
                "seconds": np.array(list(value.parts.values())),
            },
        }
    if isinstance(value, Trace):
        return {
            "spans": lambda: _spans(value),
            "ranks": lambda: _rows(map(_flat, stats_document(value, measure(value))["ranks"])),
            "steps": lambda: _rows(stats_document(value, measure(value))["steps"]),
        }
    if isinstance(value, Diagnosis):
        return {"findings": lambda: _findings(value), "waiting": lambda: _waiting(value)}
    raise InputError(
        "a {type} has no tables; layouts, schedules, plans, traces and diagnoses have",
        type=type(value).__name__,
    )


def _groups(layout: Layout, kinds: Sequence[str]) -> Columns:
    made = [layout.groups(kind) for kind in kinds]
    numbers = [np.repeat(np.arange(len(each)), each.sizes) for each in made]
    # Ranks of a group are numbered as they ascend, whatever order its framework lists them in.
    places = []
    for groups, number in zip(made, numbers, strict=True):
        order = np.lexsort((groups.members, number))
        place = np.empty(len(number), dtype=np.int64)
        place[order] = np.arange(len(number)) - groups.bounds[:-1][number]
        places.append(place)
    return {
        "kind": [kind for kind, each in zip(kinds, numbers, strict=True) for _ in range(len(each))],
        "group": np.concatenate(numbers),
        "position": np.concatenate(places),
        "rank": np.concatenate([np.asarray(each.members, np.int64) for each in made]),
    }


def _actions(measured: MeasuredSchedule) -> Columns:
    schedule, simulation = measured.schedule, measured.simulation
    number = simulation.ticks.number
    first = np.asarray(schedule.first)[np.asarray(schedule.rank)]
    return {
        "rank": np.asarray(schedule.rank, np.int64),
        "place": np.arange(len(schedule.code)) - first,
        "action": [str(schedule.action(entry)) for entry in range(len(schedule.code))],
        "stage": np.asarray(schedule.stage, np.int64),
        "kind": KINDS[np.asarray(schedule.kind)].tolist(),
        "microbatch": np.asarray(schedule.microbatch, np.int64),
        "start": np.array([float(number(each)) for each in simulation.start]),
        "end": np.array([float(number(each)) for each in simulation.end]),
    }


def _idle(measured: MeasuredSchedule) -> Columns:
    found = list(measured.idle)
    return {
        "rank": np.array([each.rank for each in found], np.int64),
        "start": np.array([float(each.start) for each in found]),
        "end": np.array([float(each.end) for each in found]),
        "cause": [each.cause.words for each in found],
        "waits_for": [str(each.waits_for) if each.waits_for else None for each in found],
    }


def _memory(plan: JobPlan) -> Columns:
    rows = plan_document(plan)["memory"]
    names = list(dict.fromkeys(name for row in rows for name in row["items"]))
    kept = ("pp_rank", "stages", "first_rank", "parameters")
    return {
        **_rows({name: row[name] for name in kept} for row in rows),
        **{
            f"{name.replace(' ', '_')}_bytes": np.array(
                [row["items"].get(name, 0) for row in rows], np.int64
            )
            for name in names
        },
        "total_bytes": np.array([row["total"] for row in rows], np.int64),
        "card_bytes": np.array([row["card"] for row in rows], np.int64),
        "fits": np.array([row["fits"] for row in rows]),
        "moment": [row["moment"] for row in rows],
    }


def _spans(trace: Trace) -> Columns:
    columns = dict(trace.spans.columns())
    return {**columns, "kind": KINDS[columns["kind"]].tolist()}


def _findings(diagnosis: Diagnosis) -> Columns:
    rows = diagnosis_document(diagnosis)["findings"]
    kept = ("class", "kind", "ranks", "verdict", "confidence", "cost", "groups", "chain", "cures")
    found = {name: [row[name] for row in rows] for name in kept}
    return {**found, "confidence": np.array(found["confidence"], np.float64)}


def _waiting(diagnosis: Diagnosis) -> Columns:
    rows = [row for each in diagnosis_document(diagnosis)["findings"] for row in each["waiting"]]
    return {
        "rank": np.array([row["rank"] for row in rows], np.int64),
        "waits_for": [row["waits_for"] for row in rows],
        "what": [row["what"] for row in rows],
        "directly": np.array([row["directly"] for row in rows], np.bool_),
    }


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a row whose mappings ``idle_us: {cause: …}`` are columns ``idle_cause_us``."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            stem, _, unit = name.rpartition("_")
            flat |= {f"{stem}_{key.replace(' ', '_')}_{unit}": each for key, each in value.items()}
        else:
            flat[name] = value
    return flat


def _rows(rows: Iterable[Mapping[str, Any]]) -> Columns:
    """Returns rows as columns: numbers as arrays, others as lists."""
    listed_rows = list(rows)
    names = list(dict.fromkeys(name for row in listed_rows for name in row))
    columns = {name: [row.get(name) for row in listed_rows] for name in names}
    return {name: _typed(values) for name, values in columns.items()}


def _typed(values: list[Any]) -> Any:
    is_number = all(isinstance(each, int | float) for each in values)
    return np.array(values) if values and is_number else values
