"""Pipeline schedules: one file each, from sizes to each rank's list of actions, and their times."""

from serried.schedule.action_lists import from_actions, read_csv, to_csv
from serried.schedule.bubble import Bubble, bubble
from serried.schedule.closed_form import ClosedForm, closed_forms
from serried.schedule.costs import Costs, Extra, Links
from serried.schedule.critical_path import Step, critical_path
from serried.schedule.fit import fit
from serried.schedule.idle import Cause, Idle, IdleIntervals, idle
from serried.schedule.in_flight import Peaks, peaks
from serried.schedule.placement import Placement
from serried.schedule.registry import ENTRIES, Entry, Request, generate, known
from serried.schedule.runners import Refusal, refusals
from serried.schedule.schedule import Schedule
from serried.schedule.schedules.auto import Memory
from serried.schedule.schedules.one_f_one_b import ideal_bubble, one_f_one_b
from serried.schedule.sensitivity import latency_adds
from serried.schedule.simulate import Simulation, simulate
from serried.schedule.spans import planned_spans
from serried.schedule.validate import faults, validate

__all__ = [
    "ENTRIES",
    "Bubble",
    "Cause",
    "ClosedForm",
    "Costs",
    "Entry",
    "Extra",
    "Idle",
    "IdleIntervals",
    "Links",
    "Memory",
    "Peaks",
    "Placement",
    "Refusal",
    "Request",
    "Schedule",
    "Simulation",
    "Step",
    "bubble",
    "closed_forms",
    "critical_path",
    "faults",
    "fit",
    "from_actions",
    "generate",
    "ideal_bubble",
    "idle",
    "known",
    "latency_adds",
    "one_f_one_b",
    "peaks",
    "planned_spans",
    "read_csv",
    "refusals",
    "simulate",
    "to_csv",
    "validate",
]
