"""Pipeline schedules: one file each, from sizes to each rank's list of actions, and their times."""

from serried.pipeline.action_lists import from_actions, read_csv, to_csv
from serried.pipeline.bubble import Bubble, bubble
from serried.pipeline.closed_form import ClosedForm, closed_forms
from serried.pipeline.costs import Costs, Extra, Links
from serried.pipeline.critical_path import Step, critical_path, latency_adds
from serried.pipeline.idle import Idle, IdleCause, IdleIntervals, idle
from serried.pipeline.in_flight import Peaks, peaks
from serried.pipeline.placement import StagePlacement
from serried.pipeline.registry import ENTRIES, Request, ScheduleEntry, generate, known
from serried.pipeline.runners import Refusal, refusals
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.one_f_one_b import ideal_bubble, one_f_one_b
from serried.pipeline.schedules.zero_bubble.auto import Memory
from serried.pipeline.simulate import Simulation, simulate
from serried.pipeline.spans import fit, planned_spans
from serried.pipeline.validate import faults, validate

__all__ = [
    "ENTRIES",
    "Bubble",
    "ClosedForm",
    "Costs",
    "Extra",
    "Idle",
    "IdleCause",
    "IdleIntervals",
    "Links",
    "Memory",
    "Peaks",
    "Refusal",
    "Request",
    "Schedule",
    "ScheduleEntry",
    "Simulation",
    "StagePlacement",
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
