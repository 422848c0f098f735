"""A simulated schedule as a payload: its actions rank by rank, its idle time, its critical path.

    bounds      entries bounds[r] .. bounds[r + 1] are those of rank r, in the order it runs them
    start, end  in ticks, header.ticks_per_unit of them in a unit of time; in units where that is 1
                and times are no fractions
    held        activations on the rank once the entry has run, counted to W and to I
    source      the entry on another rank whose message it waits for, -1 for none
    idle:…      every interval in which a rank does nothing, with its cause
    path:…      the pieces of the critical path, one after another

An overlapped pair is two entries of one time; the first is marked ``joined``.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serried.action import Action, ActionKind
from serried.pipeline import ENTRIES, IdleCause, Schedule, Simulation
from serried.pipeline.costs import Number
from serried.pipeline.critical_path import Step, critical_path
from serried.pipeline.in_flight import held
from serried.pipeline.measured import MeasuredSchedule
from serried.pipeline.packed import JOINED, work
from serried.pipeline.request import ScheduleRequest
from serried.views.colours import ACTIONS
from serried.views.schedule.document import refusal_value
from serried.views.web.wire.payload import Column, pack

KINDS = (ActionKind.F, ActionKind.B, ActionKind.I, ActionKind.W)
SENSITIVE = 50_000
"""Up to so many actions the view also says what latency adds, which takes a second simulation."""
_WHOLE = 1 << 31


def schedules_answer() -> dict[str, Any]:
    """Returns what the view offers: every schedule, and the colours of the kinds of work."""
    return {
        "schema": "serried.schedule-names/1",
        "schedules": [
            {
                "name": each.name,
                "source": each.source,
                "chunks": each.chunks,
                "takes_group": each.takes_group,
            }
            for each in ENTRIES.values()
        ],
        "kinds": [
            {"number": int(kind), "name": kind.name, "colour": ACTIONS[kind]} for kind in KINDS
        ],
        "causes": [each.name for each in IdleCause],
    }


def schedule_payload(asked: ScheduleRequest) -> bytes:
    """Returns the payload that answers ``asked``; raises InputError where there is no answer."""
    measured = asked.measured()
    parts = asked.parts(measured.schedule)
    # A rank's only stage has all of the rank's time, so the shorter command asks for the same.
    told = asked if parts > 1 else replace(asked, is_of_rank=False)
    header, columns = columns_of(measured, critical_path(measured.simulation))
    header |= {
        "kind": "schedule",
        "parts": parts,
        "options": shlex.join(told.options()),
        "latency": _number(asked.costs.links.latency),
        "findings": [refusal_value(each) for each in measured.refusals],
    }
    return pack(header, columns)


def columns_of(
    measured: MeasuredSchedule, critical: list[Step]
) -> tuple[dict[str, Any], dict[str, Column]]:
    """Returns what the header says of the times of a schedule, and its columns."""
    simulation = measured.simulation
    path = _Path(measured.schedule, critical)
    header = {
        **_sizes(measured.schedule),
        "ticks_per_unit": _per_unit(simulation),
        **_numbers(measured),
    }
    return header, _entries(simulation, path) | _idle(measured) | path.columns


def _sizes(schedule: Schedule) -> dict[str, Any]:
    placement = schedule.placement
    return {
        "name": schedule.name,
        "num_ranks": schedule.num_ranks,
        "num_microbatches": schedule.num_microbatches,
        "num_stages": placement.num_stages,
        "num_directions": placement.num_directions,
        "stages_per_rank": placement.stages_per_rank,
        "group": schedule.group,
        "num_actions": int(len(schedule.code) - schedule.joined.sum()),
        "stages_of": [
            [stage for _, stage in placement.stages_of(rank)] for rank in range(schedule.num_ranks)
        ],
    }


def _numbers(measured: MeasuredSchedule) -> dict[str, Any]:
    """Returns what the simulation tells, as the command line does."""
    bubble, idle = measured.bubble, measured.idle
    simulation = measured.simulation
    work_of = [simulation.ticks.number(ticks) for ticks in simulation.work]
    is_small = len(measured.schedule.code) <= SENSITIVE
    return {
        "makespan": float(simulation.makespan),
        "work": [float(min(work_of)), float(max(work_of))],
        "bubble": {
            "makespan": float(bubble.of_makespan),
            "over_ideal": float(bubble.over_ideal),
            "window": float(bubble.longest_window),
        },
        "peak": {
            "to_weight": int(measured.peaks.to_weight.max()),
            "to_input": int(measured.peaks.to_input.max()),
        },
        "limit": None if measured.memory_limit is None else _number(measured.memory_limit),
        "latency_adds": measured.latency_adds if is_small else None,
        "idle": {
            "total": float(idle.total()),
            "causes": {cause.name: float(time) for cause, time in idle.by_cause().items()},
        },
        "closed_forms": [
            {
                "quantity": form.quantity.name,
                "formula": form.formula,
                "value": float(form.value),
                "region": form.region,
            }
            for form in measured.closed_forms
        ],
    }


def _number(exact: object) -> int | float:
    """Returns a number as JSON holds it; a latency that is typed is one for all links."""
    assert isinstance(exact, int | float | Fraction)
    return int(exact) if exact == int(exact) else float(exact)


def _entries(simulation: Simulation, path: _Path) -> dict[str, Column]:
    schedule = simulation.schedule
    to_weight, to_input = held(schedule), held(schedule, ActionKind.I)
    columns: dict[str, Column] = {
        "bounds": schedule.first.astype(np.int32),
        "start": _times(simulation, simulation.start),
        "end": _times(simulation, simulation.end),
        "stage": _small(schedule.stage),
        "microbatch": _small(schedule.microbatch),
        "kind": schedule.kind.astype(np.uint8),
        "joined": schedule.joined.astype(np.uint8),
        "critical": path.marks,
        "source": simulation.source.astype(np.int32),
        "held:to_weight": _small(to_weight),
        "held:to_input": _small(to_input),
    }
    if schedule.placement.num_directions > 1:
        columns["direction"] = schedule.direction.astype(np.uint8)
    return columns


def _idle(measured: MeasuredSchedule) -> dict[str, Column]:
    idle, schedule = measured.idle, measured.schedule
    return {
        "idle:bounds": np.searchsorted(idle.rank, np.arange(schedule.num_ranks + 1)).astype(
            np.int32
        ),
        "idle:start": _times(measured.simulation, idle.start),
        "idle:end": _times(measured.simulation, idle.end),
        "idle:cause": idle.cause.astype(np.uint8),
        "idle:source": idle.waits_for.astype(np.int32),
    }


@dataclass(frozen=True, eq=False)
class _Path:
    """Holds the critical path, as columns and as marks on the entries it runs through."""

    schedule: Schedule
    steps: list[Step]

    @property
    def columns(self) -> dict[str, Column]:
        """The pieces, times in units."""
        return {
            "path:rank": np.array([step.rank for step in self.steps], np.int32),
            "path:start": np.array([float(step.start) for step in self.steps], np.float64),
            "path:end": np.array([float(step.end) for step in self.steps], np.float64),
            "path:message": np.array([step.is_message for step in self.steps], np.uint8),
            "path:entry": self.entries.astype(np.int32),
        }

    @cached_property
    def entries(self) -> NDArray[np.int64]:
        """The entry of each piece; of a message, that of the action which sent it."""
        codes = self.schedule.code & ~np.int64(JOINED)
        # Actions do not stand in order of their codes, so codes are searched through a sorted view.
        order = np.argsort(codes, kind="stable")
        wanted = np.array([_code(step.action) for step in self.steps], np.int64)
        found: NDArray[np.int64] = order[np.searchsorted(codes, wanted, sorter=order)]
        return found

    @property
    def marks(self) -> Column:
        """A 1 for every entry on the path."""
        marks = np.zeros(len(self.schedule.code), np.uint8)
        runs = [not step.is_message for step in self.steps]
        marks[self.entries[runs]] = 1
        return marks


def _code(action: Action) -> int:
    return work(action.kind, action.stage, action.microbatch, max(action.direction, 0))


def _per_unit(simulation: Simulation) -> int:
    """Returns the ticks of a unit on the wire; 1 where times are sent in units."""
    return simulation.ticks.per_unit or 1 if _is_whole(simulation) else 1


def _is_whole(simulation: Simulation) -> bool:
    # Ticks that end below 2**31 fit whole numbers of 32 bits.
    return simulation.ticks.per_unit is not None and bool(simulation.rank_end.max() < _WHOLE)


def _times(simulation: Simulation, ticks: NDArray[Any]) -> Column:
    """Returns ticks as whole numbers of 32 bits, or as units where they are too many for that."""
    if _is_whole(simulation):
        return ticks.astype(np.int32)
    per_unit: Number = simulation.ticks.per_unit or 1
    units: Column = (ticks / per_unit).astype(np.float64)
    return units


def _small(numbers: NDArray[np.int64]) -> Column:
    """Returns whole numbers in the fewest bytes that hold them."""
    most = numbers.max(initial=0)
    return numbers.astype(np.uint8 if most < 1 << 8 else np.uint16 if most < 1 << 16 else np.int32)
