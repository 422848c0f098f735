"""A trace as a payload: its tracks, one rank after another, its steps, and the job it comes from.

A small trace is sent whole, every span in the order of its tracks; of a large one the page asks
for windows (``trace_window``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from serried.action import COMPUTE, ActionKind
from serried.errors import InputError, SerriedError
from serried.finding import Finding
from serried.launch.request import LayoutRequest
from serried.mesh import Layout
from serried.mesh.sizes import COUNTS, SIZES
from serried.plan.step_plan import PLAN_FILE
from serried.trace.gpu.activity import GpuTrace
from serried.trace.gpu.analysis import GpuAnalysis, analyse_gpus
from serried.trace.gpu.timeline import gpu_timeline
from serried.trace.merge.files import PATTERN
from serried.trace.model.record import TracedJob
from serried.trace.model.span_groups import SpanGroup
from serried.trace.model.trace import Trace
from serried.views.colours import ACTIONS
from serried.views.sentences import LANGUAGES, say
from serried.views.web.trace.answers import TraceAnswers
from serried.views.web.trace.shown import WHOLE_BELOW, ShownTrace
from serried.views.web.trace.table import span_columns
from serried.views.web.wire.payload import Column, pack
from serried.views.web.wire.plan_words import simulated_words

SPLITS = tuple(name for name in COUNTS if SIZES[name].default)
"""Sizes that are 1 where nothing says them."""
OWN_RULE = tuple(name for name in COUNTS if name not in (*SPLITS, "dp", "zero"))
"""Sizes that a framework has a rule of its own for."""


@dataclass(frozen=True, eq=False)
class NamedTrace:
    """Holds a trace as the page offers it: with a name to choose it by."""

    name: str
    trace: Trace
    whole_below: int = WHOLE_BELOW
    """A trace of fewer spans is sent whole."""
    place: Path | None = None
    """Where it was read from."""
    given: Path | str | None = None
    """What a user calls it, where it was read from a copy or from links; its place otherwise."""
    gpus: GpuTrace | None = None
    """The profile of GPUs that it draws; None where it is a run that was recorded."""

    @classmethod
    def read(cls, name: str, found: Trace | GpuTrace, place: Path | None = None) -> NamedTrace:
        """Returns what was found at ``place``; a profile of GPUs beside its timeline."""
        if isinstance(found, GpuTrace):
            return cls(name, gpu_timeline(found), place=place, gpus=found)
        return cls(name, found, place=place)

    @cached_property
    def gpu_analysis(self) -> GpuAnalysis:
        """What is measured of the GPUs of a profile."""
        assert self.gpus is not None
        return analyse_gpus(self.gpus)

    def kept(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Returns what ``make`` made of it when ``name`` was first asked for."""
        with self._lock:
            if name not in self._kept:
                self._kept[name] = make()
            return self._kept[name]

    @cached_property
    def _kept(self) -> dict[str, dict[str, Any]]:
        return {}

    @cached_property
    def _lock(self) -> Lock:
        return Lock()

    @property
    def evidence(self) -> Path | None:
        """The folder that serried's ranks recorded to, to be diagnosed; None for anything else."""
        if self.gpus is not None or self.place is None or not self.place.is_dir():
            return None
        return self.place if next(self.place.glob(PATTERN), None) else None

    @property
    def has_step_plan(self) -> bool:
        """Whether the plan of its step lies beside it."""
        return self.place is not None and (self.place / PLAN_FILE).is_file()

    @cached_property
    def answers(self) -> TraceAnswers:
        """What is worked out of it for questions about its ranks and its plan."""
        return TraceAnswers(self.trace)

    @cached_property
    def shown(self) -> ShownTrace:
        """What its timeline is drawn from."""
        return ShownTrace(self.trace, self.answers, self.whole_below)


def traces_answer(
    traces: Sequence[NamedTrace],
    reading: Sequence[str] = (),
    problems: Sequence[SerriedError] = (),
) -> dict[str, Any]:
    """Returns what the page needs to offer the traces: names, jobs, and each job as a question.

    Beside them stand the names of those that are still being read, and what could not be.
    """
    return {
        "schema": "serried.traces/1",
        "traces": [
            {
                "name": each.name,
                "run": each.trace.run,
                "num_spans": len(each.trace.spans),
                "job": asdict(each.trace.job),
                "question": question_of(each.trace.job),
                "simulated": simulated_of(each.trace.job),
                "has_step_plan": each.has_step_plan,
                "has_evidence": each.evidence is not None,
            }
            for each in traces
        ],
        "reading": list(reading),
        "problems": [{lang: say(each, lang) for lang in LANGUAGES} for each in problems],
    }


def question_of(job: TracedJob) -> dict[str, Any]:
    """Returns the words that ask for the job's own layout, all of its split dimensions in view.

    >>> job = TracedJob("megatron", 8, {"tp": 2, "pp": 2, "dp": 2}, "", "1f1b", 4)
    >>> question_of(job)["dims"], question_of(job)["tp"]
    ('dp,tp,pp', '2')
    """
    split = [dim for dim in ("dp", "tp", "pp", "cp") if job.sizes.get(dim, 1) > 1]
    # Axes that are named say their sizes themselves.
    sizes = {} if "axes" in job.options else job.sizes
    asked = {name: sizes.get(name, 1) for name in SPLITS}
    # What the framework's own rule gives anyhow is left out, so that the form does not show it as
    # something that was asked for.
    usual = _usual(job, asked)
    own = {
        name: job.sizes[name]
        for name in OWN_RULE
        if name in job.sizes and not (usual and usual.sizes.get(name) == job.sizes[name])
    }
    return {name: str(size) for name, size in (asked | own).items()} | {
        "framework": job.framework,
        "world_size": str(job.world_size),
        "order": "" if usual and usual.order == job.order else job.order,
        "gpus_per_node": str(job.gpus_per_node),
        "set": [f"{key}={value}" for key, value in job.options.items()],
        "dims": ",".join(split or ["dp"]),
    }


def simulated_of(job: TracedJob) -> dict[str, str]:
    """Returns the words of the Schedule tab that ask for the job's own step.

    >>> simulated_of(TracedJob("megatron", 8, {"tp": 2, "pp": 2, "dp": 2}, "", "1f1b", 4))
    {'microbatches': '4'}
    """
    name = job.schedule if job.sizes.get("pp", 1) > 1 else ""
    return simulated_words(name, job.sizes.get("chunks", 1), job.num_microbatches)


def _usual(job: TracedJob, sizes: Mapping[str, int]) -> Layout | None:
    """Returns the layout when nothing but these sizes is asked for; None where there is none."""
    try:
        sizes = {**sizes, "world_size": job.world_size}
        return LayoutRequest.of(sizes, framework=job.framework, settings=job.options).layout()
    except InputError:
        # The trace's own warning says why its layout cannot be made.
        return None


def trace_payload(named: NamedTrace) -> bytes:
    """Returns the payload of one trace; its warnings in every language, for the page may change."""
    trace, shown = named.trace, named.shown
    table = shown.table
    header = {
        "kind": "trace",
        "name": named.name,
        "job": asdict(trace.job),
        "actions": _actions(),
        "statistics": _statistics(named) if shown.is_whole else None,
        "warnings": {lang: _warnings(trace, lang, torn=False) for lang in LANGUAGES},
        "torn": {lang: _warnings(trace, lang, torn=True) for lang in LANGUAGES},
        "names": list(trace.names),
        "groups": [group_document(group) for group in trace.groups],
        "has_gpus": named.gpus is not None,
        "whole": shown.is_whole,
        "total_ns": table.total_ns,
        "middle": shown.middle,
        "used": np.flatnonzero(np.bincount(trace.spans.kind)).tolist(),
        "classes": shown.colours,
        "groupings": shown.groupings,
        "scales": list(shown.measured),
    }
    columns = table.columns() | shown.steps
    if shown.is_whole:
        columns |= span_columns(table.spans(np.arange(len(table))))
    return pack(header, columns)


def group_document(group: SpanGroup) -> dict[str, Any]:
    """Returns over whom collectives of a span ran: what, how many times, and the ranks as text."""
    return {"collective": group.kind.name, "count": group.count, "ranks": str(group)}


def rows_payload(named: NamedTrace, by: str) -> bytes:
    """Returns the group of each row when they stand under ``by``; sizes, busy shares of groups.

    Raises InputError for what rows cannot stand under.
    """
    grouping = named.shown.grouping(named.shown.require_grouping(by) or "node")
    layout = named.trace.layout
    dims = {} if layout is None else {kind: dim.upper() for dim, kind in layout.dims.items()}
    header = {
        "kind": "rows",
        "by": by,
        "label": dims.get(by, by),
        "has_rest": grouping.has_rest,
    }
    columns: dict[str, Column] = {"of": grouping.of, "size": grouping.size, "busy": grouping.busy}
    return pack(header, columns)


def _actions() -> list[dict[str, Any]]:
    """Returns every kind of action with its number, colour, and whether it computes."""
    return [
        {
            "number": int(kind),
            "name": kind.name,
            "colour": ACTIONS[kind],
            "computes": kind in COMPUTE,
        }
        for kind in ActionKind
    ]


def statistics_answer(named: NamedTrace) -> dict[str, Any]:
    """Returns the bubble of a trace as ``serried.trace-bubble/1``, of a large one by some steps."""
    return {"schema": "serried.trace-bubble/1", **_statistics(named)}


def scale_answer(named: NamedTrace, name: str) -> dict[str, Any]:
    """Returns from what values on the classes of a scale count, as ``serried.trace-scale/1``.

    Raises InputError for what is not measured of this trace.
    """
    return {"schema": "serried.trace-scale/1", "of": name, "edges": named.shown.edges(name)}


def _statistics(named: NamedTrace) -> dict[str, Any]:
    measured = named.answers.statistics
    return {
        "all_steps": len(named.shown.steps["step:number"]),
        "bubble": measured.bubble,
        "ideal": None if measured.ideal is None else float(measured.ideal),
        "num_steps": len(measured.steps),
        "pipeline": measured.has_pipeline,
    }


def _warnings(trace: Trace, lang: str, *, torn: bool) -> list[str]:
    """Returns what is to be said of a trace, or that files of it have no proper end yet."""
    return [_said(each, lang) for each in trace.warnings if (each.kind == "torn") == torn]


def _said(finding: Finding, lang: str) -> str:
    sentences = [*finding.evidence, *([finding.cure] if finding.cure else [])]
    return ("；" if lang == "zh" else "; ").join(say(sentence, lang) for sentence in sentences)
