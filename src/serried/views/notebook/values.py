"""Any value as a notebook draws it and as a table: what ``serried.shown`` asks of views."""

from __future__ import annotations

from typing import Any

from serried.diagnose.diagnosis import Diagnosis
from serried.errors import InputError
from serried.mesh import Layout
from serried.pipeline.measured import MeasuredSchedule
from serried.plan.job_plan import JobPlan
from serried.trace.model.trace import Trace
from serried.views.notebook.diagnosis import diagnosis_drawn
from serried.views.notebook.drawn import Drawn
from serried.views.notebook.frame import frame
from serried.views.notebook.layout import layout_drawn
from serried.views.notebook.plan import layout_of, plan_drawn
from serried.views.notebook.schedule import schedule_drawn
from serried.views.notebook.tables import columns_of
from serried.views.notebook.trace import trace_drawn
from serried.views.sentences import environment_language


def drawn(
    value: object,
    *,
    layout: Layout | None = None,
    kind: str = "",
    lang: str | None = None,
    gpus_per_node: int = 8,
) -> Drawn:
    """Returns what is drawn of a value; ``layout`` says which ranks a place in a pipeline has.

    Raises InputError for a value that has no picture.
    """
    lang = lang or environment_language()
    if isinstance(value, Layout):
        return layout_drawn(value, kind, lang, gpus_per_node)
    if isinstance(value, MeasuredSchedule):
        return schedule_drawn(value, layout, lang)
    if isinstance(value, JobPlan):
        return plan_drawn(value, layout, lang)
    if isinstance(value, Trace):
        return trace_drawn(value, lang)
    if isinstance(value, Diagnosis):
        return diagnosis_drawn(value, lang)
    raise InputError(
        "a {type} has no view; layouts, schedules, plans, traces and diagnoses have",
        type=type(value).__name__,
    )


def layout_beneath(value: object) -> Layout | None:
    """Returns the layout of a value's ranks, where it knows one."""
    if isinstance(value, Layout):
        return value
    if isinstance(value, JobPlan):
        return layout_of(value)
    return value.layout if isinstance(value, Trace) else None


def mime_bundle(value: object) -> dict[str, str]:
    """Returns a value as text and as HTML."""
    found = drawn(value)
    return {"text/plain": found.text(), "text/html": found.html()}


def table_of(value: object, part: str, into: str | None) -> Any:
    """Returns a part of a value as a data frame."""
    return frame(columns_of(value, part), into)
