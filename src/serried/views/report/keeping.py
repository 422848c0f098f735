"""What a report keeps of what was opened: the answers to its questions, refusals among them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from serried.errors import InputError, SerriedError
from serried.finding import Sentence, said
from serried.limits import REPORT_SPANS
from serried.views.report.archive import Kept
from serried.views.report.questions import (
    State,
    evidence_questions,
    full_state,
    job_questions,
    key_of,
    opening_questions,
    run_questions,
    state_of,
    words_of_state,
)
from serried.views.sentences import say
from serried.views.web.layout.launch import launch_words
from serried.views.web.opening.desk import OpeningDesk
from serried.views.web.opening.opening import Opening, openings_answer
from serried.views.web.questions import Answering, answer_to, questions
from serried.views.web.trace.payload import NamedTrace, question_of, simulated_of
from serried.views.web.wire.dropped import read_places
from serried.views.web.wire.query import read_query


@dataclass(frozen=True)
class ReportContent:
    """Holds what a report shows first, and every answer that it has."""

    state: Mapping[str, str]
    """The words of the page's address."""
    answers: Mapping[str, Kept]
    """Each by its key."""


def content_of(desk: OpeningDesk, asked: State, lang: str) -> ReportContent:
    """Returns what a report of everything open on a desk holds.

    ``asked`` are words of a page's address, which go before what was opened. Raises what opening
    raised, and InputError where the state makes no layout.
    """
    state = {**opened_state(desk, asked), **asked, "lang": lang}
    # A report is read where nobody asks for windows: every span goes with it.
    desk.traces[:] = [replace(each, whole_below=REPORT_SPANS.most) for each in desk.traces]
    for each in desk.traces:
        _check_spans(each)
    answering = questions(desk)
    full = full_state(state)
    # A report without a layout would show nothing: what is wrong is said now.
    num_ranks = read_query(words_of_state(full)).layout.world_size
    found = _questions(desk, full, num_ranks, lang)
    answers = {key_of(each): _kept(each, answering, lang) for each in found}
    # A page with a server asks how opening goes on, and for launch files; here all is open.
    answers[key_of("openings")] = _written(openings_answer([]))
    return ReportContent(state, answers)


def _check_spans(named: NamedTrace) -> None:
    """Raises InputError for a run that is too long to go into one file."""
    if len(named.trace.spans) > REPORT_SPANS.most:
        raise InputError(
            "{run} has {count:,} spans; a report holds at most {most:,}; serried serve opens it",
            run=named.name,
            count=len(named.trace.spans),
            most=REPORT_SPANS.most,
        )


def opened_state(desk: OpeningDesk, asked: State) -> dict[str, str]:
    """Returns the job and the tab of what was opened first, waiting for what is being read.

    ``asked`` answers what launch files leave open. Raises what opening raised, and InputError for
    what is left open still.
    """
    desk.settle()
    for opening in desk.openings:
        if opening.problem:
            raise opening.problem
    found: dict[str, str] = {}
    for opening in reversed(desk.openings):
        told = _words_of(opening, asked)
        found = _with_job(found, told) | ({"view": opening.tab} if opening.tab else {})
    for check in desk.checks[:1]:
        found = _with_job(found, state_of(check.question))
    for case in desk.cases[:1]:
        found = _with_job(found, state_of(case.question)) | {"diagnosed": case.name}
    if desk.traces:
        job = desk.traces[0].trace.job
        found = _with_job(found, state_of(question_of(job)))
        found |= simulated_of(job) | {"run": desk.traces[0].trace.run}
    return {name: value for name, value in found.items() if value}


def _with_job(state: dict[str, str], told: dict[str, str]) -> dict[str, str]:
    """Returns a state with what one more thing says.

    Where that is of a job of other sizes, no model or batch of the job before it is left.
    """
    if not _is_other_job(state, told):
        return state | told
    return {name: state[name] for name in ("view", "diagnosed") if name in state} | told


def left_out(desk: OpeningDesk, asked: State, state: State) -> list[Sentence]:
    """Returns what was opened of jobs that a report does not show, for it shows one."""
    return [
        said(
            "{file} is of another job, of {count} ranks, and is left out: a report shows one job, "
            "of {ranks} ranks here; make a report of it alone",
            file=opening.name,
            count=told["world_size"],
            ranks=state.get("world_size", ""),
        )
        for opening in desk.openings
        if _is_other_job(state, told := _words_of(opening, asked))
    ]


def _words_of(opening: Opening, asked: State) -> dict[str, str]:
    """Returns the words that a plan, groups or launch files say; none of other things."""
    if not opening.files:
        return state_of(opening.question or {})
    files = read_places(opening.files)
    return state_of(launch_words(files, words_of_state(asked), reads_folders=True))


def _is_other_job(state: State, told: State) -> bool:
    sizes = ("world_size", "tp", "pp", "cp", "ep")
    return bool(told.get("world_size") and state.get("world_size")) and any(
        (state.get(name) or "1") != (told.get(name) or "1") for name in sizes
    )


def _questions(desk: OpeningDesk, state: State, num_ranks: int, lang: str) -> Iterator[str]:
    yield from opening_questions(lang)
    yield from job_questions(state, lang, num_ranks)
    for number, each in enumerate(desk.traces):
        figures = list(each.answers.figures)
        yield from run_questions(number, each.shown.groupings, figures)
    checks = [(n, figure) for n, each in enumerate(desk.checks) for figure in each.figures]
    cases = [
        (n, finding)
        for n, each in enumerate(desk.cases)
        for finding in range(max(1, len(each.diagnosis.causes)))
    ]
    yield from evidence_questions(cases, checks)


def _kept(question: str, answering: Mapping[str, Answering], lang: str) -> Kept:
    """Returns the answer to a question, or the sentence that refuses it."""
    try:
        found = answer_to(question, answering)
    except SerriedError as error:
        refused = {"error": say(error, lang), "field": None}
        return Kept(json.dumps(refused, ensure_ascii=False).encode(), 400)
    if isinstance(found, bytes):
        return Kept(found)
    return _written(found)


def _written(document: dict[str, Any]) -> Kept:
    return Kept(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode())
