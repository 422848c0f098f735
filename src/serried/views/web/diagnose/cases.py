"""The diagnosis of what lies in a place: as a document, and as a state of each rank on the map.

state of a rank     0 heard of, and not in it     2 waits for a culprit itself
                    1 waits through others        3 a culprit
NaN                 nothing is known of it
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serried.diagnose.diagnosis import Cause, Diagnosis
from serried.diagnose.gather import gather
from serried.diagnose.gathered import Evidence
from serried.diagnose.reason import diagnosed
from serried.diagnose.steps.long_run import LongRun
from serried.errors import InputError
from serried.trace.model.progress import Listener, unheard
from serried.trace.model.record import TracedJob
from serried.trace.model.trace import Trace
from serried.views.diagnose.document import diagnosis_document
from serried.views.sentences import LANGUAGES, say
from serried.views.web.diagnose.drawing import drawing
from serried.views.web.diagnose.summary import summary
from serried.views.web.trace.payload import question_of
from serried.views.web.wire.payload import pack
from serried.views.web.wire.query import Words, read_count

APART, INDIRECT, DIRECT, CULPRIT = 0.0, 1.0, 2.0, 3.0
NAMES = {APART: "apart", INDIRECT: "indirect", DIRECT: "direct", CULPRIT: "culprit"}
COLOURS = {
    "light": ["#e3e8ee", "#a8894a", "#d97a00", "#b3261e"],
    "dark": ["#333c48", "#8d7440", "#e0952c", "#ff6b60"],
}
"""The four states have these; who is in it stands out of the ground, who is not is quiet."""
States = NDArray[np.float64]
MOST_CULPRITS = 1024
"""Culprits of a finding that a page is told by number; the map has the state of all."""


@dataclass(frozen=True, eq=False)
class NamedCase:
    """Holds what the page shows of one diagnosis."""

    name: str
    diagnosis: Diagnosis
    question: Mapping[str, Any]
    """The words that ask for the job's layout; all ranks as replicas where none is known."""
    world_size: int
    place: Path | None = None
    """Where its evidence lies and may change; None where it was written down, or is a copy."""
    read_at: float | None = None
    """When its evidence was read, in seconds since 1970; None where that is not known."""
    revision: int = 0
    """How often its evidence was read again and told something else."""

    @cached_property
    def told(self) -> dict[str, dict[str, Any]]:
        """What the page shows of it at once, in each language; who waits comes with the states."""
        return {lang: _told(self.diagnosis, lang) for lang in LANGUAGES}

    @property
    def whole(self) -> dict[str, dict[str, Any]]:
        """All of the diagnosis, in each language."""
        return {lang: diagnosis_document(self.diagnosis, lang) for lang in LANGUAGES}


def read_case(path: Path, name: str = "", listener: Listener = unheard) -> NamedCase:
    """Gathers what lies at ``path`` and diagnoses it; raises InputError as ``gather`` does."""
    read_at = time.time()  # what comes while it is read may be missed
    evidence = gather([path], listener)
    diagnosis = diagnosed(evidence)
    recorded = _recorded(evidence)
    said = [each for each in (diagnosis.world_size, recorded and recorded.world_size) if each]
    world = max((*said, *(rank + 1 for rank in _named(diagnosis))), default=1)
    job = recorded
    if job is None or job.world_size < world:
        job = _job(evidence, world)
    question = question_of(job)
    called = name or path.name or str(path)
    return NamedCase(called, diagnosis, question, world, place=path, read_at=read_at)


def cases_answer(cases: Sequence[NamedCase]) -> dict[str, Any]:
    """Returns every diagnosis in each language, with the words that ask for its layout."""
    return {"schema": "serried.cases/1", "cases": [case_answer(case) for case in cases]}


def case_answer(case: NamedCase) -> dict[str, Any]:
    """Returns one diagnosis in each language, each finding with its summary and its drawing."""
    return {
        "name": case.name,
        "question": case.question,
        "read_at": case.read_at,
        "revision": case.revision,
        "is_followed": case.place is not None,
        "in": case.told,
    }


def whole_answer(cases: Sequence[NamedCase], words: Words) -> dict[str, Any]:
    """Returns all of one diagnosis in each language; raises InputError where there is none."""
    return {"schema": "serried.case/1", "in": _chosen(cases, words).whole}


def _told(diagnosis: Diagnosis, lang: str) -> dict[str, Any]:
    """Returns a diagnosis as the page lists it, without what a hundred thousand ranks wait in."""
    brief = replace(
        diagnosis,
        causes=tuple(
            replace(cause, ranks=cause.ranks and cause.ranks[:MOST_CULPRITS], waiting=())
            for cause in diagnosis.causes
        ),
        ranks_heard=(),
    )
    document = diagnosis_document(brief, lang)
    found = [
        {name: value for name, value in told.items() if name != "waiting"}
        | {
            "summary": [say(line, lang) for line in summary(cause)],
            "drawing": drawing(cause, lang),
        }
        for cause, told in zip(diagnosis.causes, document["findings"], strict=True)
    ]
    kept = ("missing_evidence", "notes", "world_size")
    top = document if not found else {name: document[name] for name in kept}
    return top | {"findings": found}


def case_payload(cases: Sequence[NamedCase], words: Words) -> bytes:
    """Returns the state of every rank under one finding, in the form of a trace's figures.

    Beside it stands for whom each rank waits: the first of them, -1 where it waits for nobody, and
    whether that is a culprit. Raises InputError for a case or a finding that there is not.
    """
    case = _chosen(cases, words)
    number = read_count(words, "finding") or 0
    causes = case.diagnosis.causes
    if number >= max(1, len(causes)):
        raise InputError(
            "there is no finding {number} here; {count} were made, numbered from 0",
            number=number,
            count=len(causes),
        )
    cause = causes[number] if causes else None
    values = states_of(case, cause)
    header = {
        "kind": "heat",
        "figure": "waits",
        "figures": ["waits"],
        "unit": "state",
        "colours": COLOURS,
        "least": APART,
        "median": APART,
        "most": CULPRIT,
        "farthest": [],
        "counts": rank_counts(values),
    }
    return pack(header, {"value": values, **_waits(case, cause)})


def _waits(case: NamedCase, cause: Cause | None) -> dict[str, NDArray[np.generic]]:
    """Returns whom each rank waits for, and whether directly, by rank."""
    target = np.full(case.world_size, -1, dtype=np.int32)
    directly = np.zeros(case.world_size, dtype=np.uint8)
    for waiting in cause.waiting if cause else ():
        if waiting.waits_for:
            target[waiting.rank] = waiting.waits_for[0]
            directly[waiting.rank] = waiting.directly
    return {"target": target, "directly": directly}


def states_of(case: NamedCase, cause: Cause | None) -> States:
    """Returns the state of each rank, by rank."""
    values = np.full(case.world_size, np.nan)
    values[list(case.diagnosis.ranks_heard)] = APART
    for waiting in cause.waiting if cause else ():
        values[waiting.rank] = DIRECT if waiting.directly else INDIRECT
    values[list(cause.ranks or ()) if cause else []] = CULPRIT
    return values


def rank_counts(values: States) -> dict[str, int]:
    """Returns how many ranks are in each state, and of how many nothing is known."""
    known = {name: int((values == state).sum()) for state, name in NAMES.items()}
    return known | {"not_heard": int(np.isnan(values).sum())}


def _chosen(cases: Sequence[NamedCase], words: Words) -> NamedCase:
    number = read_count(words, "case") or 0
    if number >= len(cases):
        raise InputError(
            "there is no diagnosis {number} here; {count} are open, numbered from 0",
            number=number,
            count=len(cases),
        )
    return cases[number]


def _named(diagnosis: Diagnosis) -> set[int]:
    """Returns every rank that a diagnosis speaks of."""
    culprits = {rank for cause in diagnosis.causes for rank in cause.ranks or ()}
    waiting = {each.rank for cause in diagnosis.causes for each in cause.waiting}
    return culprits | waiting | {*diagnosis.ranks_heard}


def _recorded(evidence: Evidence) -> TracedJob | None:
    """Returns the job of the run that serried recorded, None where none or several were."""
    match evidence.recordings:
        case (Trace() as trace,):
            return trace.job
        case (LongRun() as long,):
            return long.run.trace.job
    return None


def _job(evidence: Evidence, world: int) -> TracedJob:
    layout, state = evidence.layout, evidence.state
    per_node = (state.gpus_per_node if state else None) or 8
    if layout is None or layout.world_size < world:
        sizes, order = _split(state.axes if state else (), world)
        return TracedJob("megatron", world, sizes, order, "", 0, gpus_per_node=per_node)
    return TracedJob(
        layout.framework,
        layout.world_size,
        layout.sizes,
        layout.order,
        "",
        0,
        gpus_per_node=per_node,
        options={key: value for key, value in layout.settings.items() if key != "zero"},
    )


def _split(axes: Sequence[tuple[str, int]], world: int) -> tuple[dict[str, int], str]:
    """Returns how a job's groups split it, and in which order; as replicas where none say so."""
    sizes = dict(axes)
    if not sizes or prod(sizes.values()) != world or not {*sizes} <= {"tp", "cp", "dp", "pp"}:
        return {"dp": world}, ""
    return sizes, "-".join(sizes)
