"""A simulated schedule as documents that other programs read: JSON values and a Chrome trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from serried.action import ActionKind
from serried.pipeline import Refusal, critical_path, planned_spans
from serried.pipeline.costs import Number
from serried.pipeline.measured import MeasuredSchedule
from serried.views.finding_document import told, told_in_each


def schedule_document(
    measured: MeasuredSchedule, *, summary: bool = False, lang: str = "en"
) -> dict[str, Any]:
    """Returns the ``serried.schedule/1`` document; ``summary`` leaves the lists out."""
    simulation, schedule = measured.simulation, measured.schedule
    numbers = measured.bubble
    document: dict[str, Any] = {
        "schema": "serried.schedule/1",
        "name": schedule.name,
        "ranks": schedule.num_ranks,
        "microbatches": schedule.num_microbatches,
        "stages_per_rank": schedule.placement.stages_per_rank,
        "group": schedule.group,
    }
    if not summary:
        document["actions"] = [schedule.texts(rank) for rank in range(schedule.num_ranks)]
    document |= {
        "makespan": _plain(simulation.makespan),
        "bubble": {
            "makespan": _plain(numbers.of_makespan),
            "over_ideal": _plain(numbers.over_ideal),
            "window": _plain(numbers.longest_window),
        },
        "peak_activations": {
            "to_weight": measured.peaks.to_weight.tolist(),
            "to_input": measured.peaks.to_input.tolist(),
        },
        "work": [_plain(simulation.ticks.number(ticks)) for ticks in simulation.work],
        "idle": {
            "total": _plain(measured.idle.total()),
            "causes": {
                cause.words: _plain(time) for cause, time in measured.idle.by_cause().items()
            },
        },
        "closed_forms": [
            {
                "quantity": form.quantity.value,
                "value": _plain(form.value),
                "formula": form.formula,
                "region": form.region,
            }
            for form in measured.closed_forms
        ],
        "findings": [refusal_value(each) | told(each.finding, lang) for each in measured.refusals],
    }
    if not summary:
        document |= _lists(measured)
    return document


def refusal_value(refusal: Refusal) -> dict[str, Any]:
    """Returns who refuses a schedule's sizes, who runs them, and the sentences by language."""
    runner, finding = refusal.runner, refusal.finding
    return {
        "kind": finding.kind,
        "package": runner.package,
        "version": runner.version,
        "where": runner.where,
        "run_by": list(refusal.run_by),
        "nearest": {size: list(near) for size, near in refusal.nearest.items()},
        "in": told_in_each(finding),
    }


def _lists(measured: MeasuredSchedule) -> dict[str, Any]:
    """Returns what a summary leaves out beside the actions."""
    return {
        "latency_adds": measured.latency_adds,
        "critical_path": [
            {
                "rank": step.rank,
                "action": str(step.action),
                "message": step.is_message,
                "start": _plain(step.start),
                "end": _plain(step.end),
            }
            for step in critical_path(measured.simulation)
        ],
        "idle_intervals": [
            {
                "rank": interval.rank,
                "start": _plain(interval.start),
                "end": _plain(interval.end),
                "cause": interval.cause.words,
                "waits_for": str(interval.waits_for) if interval.waits_for else None,
            }
            for interval in measured.idle
        ],
    }


def schedules_document(
    several: Sequence[MeasuredSchedule], *, summary: bool = False, lang: str = "en"
) -> dict[str, Any]:
    """Returns one schedule's document, or that of several side by side."""
    documents = [schedule_document(each, summary=summary, lang=lang) for each in several]
    if len(documents) == 1:
        return documents[0]
    return {"schema": "serried.schedules/1", "schedules": documents}


def chrome_document(measured: MeasuredSchedule) -> dict[str, Any]:
    """Returns the plan in Chrome's trace format, a unit of time as a millisecond.

    A rank is a process, and the halves of overlapped pairs are drawn below one another.
    """
    events: list[dict[str, Any]] = []
    for rank in range(measured.schedule.num_ranks):
        args = {"name": f"rank {rank}"}
        events.append({"ph": "M", "pid": rank, "name": "process_name", "args": args})
        events.append({"ph": "M", "pid": rank, "name": "process_sort_index",
                       "args": {"sort_index": rank}})  # fmt: skip
    ends: dict[int, int] = {}
    for span in planned_spans(measured.simulation):
        below = span.start_ns < ends.get(span.rank, 0)
        ends[span.rank] = max(span.end_ns, ends.get(span.rank, 0))
        events.append(
            {
                "ph": "X",
                "pid": span.rank,
                "tid": 2 if below else 1,
                "name": str(span.action),
                "cat": span.action.kind.name,
                "ts": span.start_ns / 1000,
                "dur": span.duration_ns / 1000,
                "args": _args(span.action.stage, span.action.microbatch, span.action.kind),
            }
        )
    return {"displayTimeUnit": "ms", "traceEvents": events}


def _args(stage: int, microbatch: int, kind: ActionKind) -> dict[str, int]:
    if kind == ActionKind.OPTIMIZER:
        return {}
    return {"stage": stage} | ({"microbatch": microbatch} if microbatch >= 0 else {})


def _plain(number: Number) -> int | float:
    """Returns a number that JSON has: a whole one as an integer, a fraction as its float."""
    value = float(number)
    return int(number) if number == int(number) else value
