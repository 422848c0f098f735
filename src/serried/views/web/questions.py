"""Every question that the page asks, by its address below ``api/``, and the answer as a document.

layout?tp=2&pp=4        payload: a header and columns        serve sends it as bytes
rank?tp=2&rank=3        document                             serve --ask prints either as JSON
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

from serried.errors import InputError, listed
from serried.limits import SEVERAL_ASKED, SEVERAL_BYTES
from serried.views.web.check.heat import NamedCheck, check_heat_payload, checks_answer
from serried.views.web.collective.payload import CHOICES, OFFERS, collective_payload
from serried.views.web.diagnose.cases import (
    NamedCase,
    case_answer,
    case_payload,
    cases_answer,
    whole_answer,
)
from serried.views.web.diagnose.example import EXAMPLE, example_case
from serried.views.web.edition import STATIC
from serried.views.web.layout.beside import beside_payload
from serried.views.web.layout.fitted import fitted_answer
from serried.views.web.layout.payload import layout_payload, page_answer, rank_answer
from serried.views.web.layout.written import written_answer
from serried.views.web.learn.answer import learn_answer, term_answer
from serried.views.web.opening.desk import OpeningDesk
from serried.views.web.opening.opening import openings_answer
from serried.views.web.plan.answer import compared_answer, plan_answer, plan_offers
from serried.views.web.plan.heat import plan_heat_payload
from serried.views.web.plan.links import even_links_payload, links_payload
from serried.views.web.plan.matrix import matrix_answer
from serried.views.web.plan.search import search_answer
from serried.views.web.plan.sharding import sharding_answer
from serried.views.web.plan.timeline import PLAN, StepWords, planned_step, step_words
from serried.views.web.schedule.payload import schedule_payload, schedules_answer
from serried.views.web.schedule.query import read_schedule_query
from serried.views.web.trace.live import STILL, LiveRuns
from serried.views.web.trace.payload import NamedTrace, traces_answer
from serried.views.web.trace.routes import ANSWERS
from serried.views.web.trace.routes import Answer as TraceAnswer
from serried.views.web.wire.payload import unpack
from serried.views.web.wire.query import Words, read_language, read_query, read_rank

Answer: TypeAlias = bytes | dict[str, Any]
"""A payload, or a document that goes out as JSON."""
Answering = Callable[[Words], Answer]
WAIT_S = 2.0
"""How long an answer that was asked to wait does so; the page asks again."""
PLANNED_KEPT = 4
"""Planned steps that are kept, the newest, with what was worked out of them."""


def questions(desk: OpeningDesk) -> dict[str, Answering]:
    """Returns what answers each question about jobs, and about what is open on a desk."""
    answers = {
        **_of_jobs(),
        **_of_traces(desk),
        **_of_checks(desk.checks),
        **_of_cases(desk.cases),
        "openings": lambda _: openings_answer(desk.openings),
    }
    # One question for several at once: a page that opens asks for them in one go.
    return {**answers, "several": lambda words: _several(answers, words)}


def answer_document(address: str, answers: Mapping[str, Answering]) -> dict[str, Any]:
    """Returns the answer to a question as a document; columns are lists, None for what is unknown.

    ``address`` is what stands behind ``api/``, or all of it. Raises InputError for a question that
    there is not, and as the answer does.
    """
    return _document(answer_to(address, answers))


def _document(answer: Answer) -> dict[str, Any]:
    if isinstance(answer, dict):
        return answer
    header, columns = unpack(answer)
    return header | {"columns": {name: _known(column.tolist()) for name, column in columns.items()}}


def answer_to(address: str, answers: Mapping[str, Answering]) -> Answer:
    """Returns the answer to a question as the page gets it; raises as ``answer_document``."""
    asked = urlsplit(address)
    name = asked.path.rpartition("api/")[2]
    if name not in answers:
        raise InputError(
            "the page asks no '{name}'; it asks {questions}",
            name=name[:40],
            questions=listed(answers, limit=len(answers)),
        )
    return answers[name](parse_qs(asked.query, keep_blank_values=True))


def _known(values: list[float]) -> list[float | None]:
    """Returns values as JSON can hold them."""
    return [None if isinstance(each, float) and math.isnan(each) else each for each in values]


def _of_jobs() -> dict[str, Answering]:
    """Returns what is answered without any trace: layouts, ranks, words, plans, schedules."""
    return {
        "words": lambda words: page_words(read_language(words)),
        "page": lambda words: {
            **page_answer(read_language(words)),
            "collectives": OFFERS,
            "collective_choices": CHOICES,
        },
        "layout": lambda words: layout_payload(read_query(words), read_language(words)),
        "rank": lambda words: rank_answer(
            read_query(words), read_rank(words), read_language(words)
        ),
        "sharding": lambda words: sharding_answer(read_query(words), words, read_language(words)),
        "learn": lambda words: learn_answer(read_language(words)),
        "term": lambda words: term_answer(read_query(words), words, read_language(words)),
        "plans": lambda _: plan_offers(),
        "plan": lambda words: plan_answer(read_query(words), words, read_language(words)),
        "plan/links": lambda words: links_payload(read_query(words), words),
        "plan/heat": lambda words: plan_heat_payload(read_query(words), words),
        "layout/links": lambda words: even_links_payload(read_query(words)),
        "layout/fitted": fitted_answer,
        "layout/written": lambda words: written_answer(read_query(words)),
        "layout/beside": lambda words: beside_payload(words, read_language(words)),
        "plan/matrix": lambda words: matrix_answer(read_query(words), words, read_language(words)),
        "plan/compare": lambda words: compared_answer(words, read_language(words)),
        "search": lambda words: search_answer(read_query(words), words, read_language(words)),
        "schedules": lambda _: schedules_answer(),
        "schedule": lambda words: schedule_payload(read_schedule_query(words)),
        "collective": lambda words: collective_payload(words, read_language(words)),
    }


def _several(answers: Mapping[str, Answering], words: Words) -> dict[str, Any]:
    """Returns the documents that answer several questions, by the question; raises InputError."""
    asked = dict.fromkeys(words.get("ask", ()))
    if len(asked) > SEVERAL_ASKED.most:
        raise InputError(
            "{count} questions are asked at once; at most {limit} are answered together",
            count=len(asked),
            limit=SEVERAL_ASKED.most,
        )
    found, size = {}, 0
    for ask in asked:
        answer = answer_to(ask, answers)
        size += len(answer if isinstance(answer, bytes) else json.dumps(answer))
        if size > SEVERAL_BYTES.most:
            raise InputError(
                "the answers have more than {limit} MB together; ask for '{question}' by itself",
                limit=SEVERAL_BYTES.most >> 20,
                question=ask[:60],
            )
        found[ask] = _document(answer)
    return found


@cache
def page_words(lang: str) -> dict[str, Any]:
    """Returns the sentences of the page in a language, by their keys."""
    text = (STATIC / "i18n" / f"{lang}.json").read_text(encoding="utf-8")
    words: dict[str, Any] = json.loads(text)
    return words


def _of_traces(desk: OpeningDesk) -> dict[str, Answering]:
    def of_trace(ask: TraceAnswer) -> Answering:
        return lambda words: ask(_chosen(desk.traces, words), words)

    def traces(words: Words) -> Answer:
        if words.get("wait"):
            desk.settle(WAIT_S)
        # Before the traces: what is read meanwhile is told the next time.
        of_runs = [each for each in desk.openings if each.tab in ("run", None)]
        reading = [each.name for each in of_runs if each.state == "reading"]
        problems = [each.problem for each in of_runs if each.problem]
        return traces_answer(desk.traces, reading, problems)

    live = LiveRuns(desk.traces)

    def growth(words: Words) -> Answer:
        named = _chosen(desk.traces, words)
        # A planned step is none of the list, and never grows.
        return live.look(desk.traces.index(named)) if named in desk.traces else STILL

    of_traces = {name: of_trace(ask) for name, ask in ANSWERS.items()}
    return {"traces": traces, "trace/growth": growth, **of_traces}


def _of_checks(checks: Sequence[NamedCheck]) -> dict[str, Answering]:
    return {
        "checks": lambda _: checks_answer(checks),
        "check/heat": lambda words: check_heat_payload(checks, words),
    }


@lru_cache(maxsize=PLANNED_KEPT)
def _planned(asked: StepWords) -> NamedTrace:
    """Returns a planned step as any trace; the newest few are kept, with what was worked out."""
    trace = planned_step(asked)
    return NamedTrace(trace.run, trace)


def _of_cases(cases: Sequence[NamedCase]) -> dict[str, Answering]:
    return {
        "cases": lambda _: cases_answer(cases),
        "case/example": lambda _: case_answer(example_case()),
        "case/states": lambda words: case_payload(*_case(cases, words)),
        "case/whole": lambda words: whole_answer(*_case(cases, words)),
    }


def _case(cases: Sequence[NamedCase], words: Words) -> tuple[Sequence[NamedCase], Words]:
    """Returns diagnoses and the words that choose one by its number, or the example by its name."""
    if words.get("case") == [EXAMPLE]:
        return [example_case()], {**words, "case": ["0"]}
    return cases, words


def _chosen(traces: Sequence[NamedTrace], words: Words) -> NamedTrace:
    text = next(iter(words.get("trace", ())), "0")
    if text == PLAN:
        return _planned(step_words(words))
    # isdecimal alone also takes digits of other scripts.
    if not (text.isascii() and text.isdecimal() and int(text) < len(traces)):
        raise InputError(
            "there is no trace {number} here; {count} are open, numbered from 0",
            number=text[:40],
            count=len(traces),
        )
    return traces[int(text)]
