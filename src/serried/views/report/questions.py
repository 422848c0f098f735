"""The questions that a report answers: all that the page asks as it opens each of its tabs.

    the job in view   layout, ranks, plan, links, matrix, terms, schedules
    a run             its spans, rows, overview, findings, figures on the map, bubble, period
    evidence, checks  the states of ranks, the times of groups

A page finds an answer by its key: the question without its language, its words in order and those
that are empty left out, so that Python and the page need not write them alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from serried.mesh.sizes import PLACES, SIZES
from serried.pipeline.registry import ENTRIES
from serried.views.learn.cards import card_keys
from serried.views.web.layout.form import OPENS_WITH
from serried.views.web.plan.heat import FIGURES
from serried.views.web.wire.plan_words import PLANNED

RANKS = 64
"""Ranks whose details are kept; of larger jobs only those of the rank in view."""
SIMULATED = {
    "microbatches": "8",
    "forward": "1",
    "input_grad": "1",
    "weight_grad": "1",
    "latency": "0",
    "of": "rank",
}
"""How a page simulates schedules where its address says no other (static/schedule/state.js)."""
NAMES = "1f1b,zb-h1,zbv"
OF_SCHEDULES = ("stages", "chunks", "group", "memory_limit", *SIMULATED)
OF_PLANS = (*PLANNED, "compute", "schedule", "chunks", "account_for", "more")
OF_JOBS = ("framework", *SIZES, *PLACES, "nvlink_domain", "set")
OF_VIEWS = ("dims", "kind", "arrange", "cube")

State = Mapping[str, str]
"""The words of a page's address; a field of several values has one a line."""


def key_of(question: str) -> str:
    """Returns what a question is found by, as ``static/base/kept.js`` does.

    >>> key_of("layout?lang=en&tp=2&pp=&dims=dp%2Ctp")
    'layout?dims=dp%2Ctp&tp=2'
    """
    asked = urlsplit(question)
    pairs = [(name, value) for name, value in parse_qsl(asked.query) if name != "lang"]
    return f"{asked.path}?{urlencode(sorted(pairs), quote_via=quote)}"


def full_state(state: State) -> dict[str, str]:
    """Returns a state with what a page opens with where it says nothing of a field.

    >>> full_state({"pp": "1"})["pp"], full_state({"pp": "1"})["tp"]
    ('1', '2')
    """
    usual = {name: str(size.default) for name, size in SIZES.items() if size.default is not None}
    places = {name: str(size.default) for name, size in PLACES.items() if size.default is not None}
    start = {name: str(size) for name, size in OPENS_WITH.items()}
    return {"framework": "megatron", "dims": "dp,tp,pp", **usual, **places, **start, **state}


def opening_questions(lang: str) -> Iterator[str]:
    """Returns what every page asks, whatever it shows."""
    yield from (f"words?lang={lang}", f"page?lang={lang}")
    yield from ("cases", "traces", "checks", "openings", "schedules", "plans")


def job_questions(state: State, lang: str, num_ranks: int) -> Iterator[str]:
    """Returns what is asked of the job in view, and of its plan and schedules."""
    job = _words(state, OF_JOBS)
    shown = [*job, *_words(state, OF_VIEWS)]
    yield _question("layout", shown, lang)
    some = map(str, range(num_ranks)) if num_ranks <= RANKS else ()
    for rank in dict.fromkeys([*some, state.get("rank", "")]):
        yield from [_question("rank", [("rank", rank), *shown], lang)] if rank else []
    planned = _words(plan_state(state), OF_PLANS)
    yield _question("plan", [*planned, *shown], lang)
    yield _question("plan/matrix", [*planned, *shown], lang)
    yield _question("plan/links", [*planned, *job], lang)
    for figure in FIGURES:
        yield _question("plan/heat", [("figure", figure), *planned, *shown], lang)
    for term in card_keys():
        yield _question("term", [("term", term), *planned, *shown], lang)
    for name in state.get("name", NAMES).split(","):
        asked = {"stages": state["pp"], **SIMULATED, **_filled(state)}
        # The page asks no schedule for what it has but one of (static/schedule/state.js).
        entry = ENTRIES.get(name)
        fixed = {"chunks": entry and entry.chunks, "group": entry and not entry.takes_group}
        words = [(each, text) for each, text in _words(asked, OF_SCHEDULES) if not fixed.get(each)]
        yield _question("schedule", [("name", name), *words], lang)


def plan_state(state: State) -> dict[str, str]:
    """Returns the words of a state's plan, under the names that a question has for them.

    >>> plan_state({"plan_chunks": "2", "chunks": "4", "plan_more": "lora=16"})["chunks"]
    '2'
    """
    # "chunks" are those of the Schedule tab.
    more = {"chunks": state.get("plan_chunks", ""), "more": state.get("plan_more", "")}
    return {**PLANNED, **state, **more}


def run_questions(number: int, groupings: list[str], figures: list[str]) -> Iterator[str]:
    """Returns what is asked of a run that is in view."""
    of_run = ("trace", "overview", "findings", "growth", "bubble", "period", "plan", "gpus")
    for name in of_run:
        yield f"{name if name == 'trace' else f'trace/{name}'}?trace={number}"
    for by in groupings:
        yield f"trace/rows?trace={number}&by={by}"
    for figure in ("", *figures):
        yield f"trace/heat?trace={number}&figure={quote(figure)}"


def evidence_questions(
    cases: list[tuple[int, int]], checks: list[tuple[int, str]]
) -> Iterator[str]:
    """Returns what is asked of diagnoses by number and finding, of checks by number and figure."""
    yield from (f"case/whole?case={number}" for number in dict(cases))
    yield from (f"case/states?case={number}&finding={finding}" for number, finding in cases)
    yield from (f"check/heat?check={number}&figure={figure}" for number, figure in checks)


def _filled(state: State) -> dict[str, str]:
    return {name: value for name, value in state.items() if value}


def _words(state: State, names: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(name, line) for name in names for line in state.get(name, "").splitlines() if line]


def _question(name: str, words: list[tuple[str, str]], lang: str) -> str:
    return f"{name}?{urlencode([('lang', lang), *words], quote_via=quote)}"


def words_of_state(state: State) -> dict[str, list[str]]:
    """Returns a state as the words of a question, each with its values.

    >>> words_of_state({"tp": "2", "set": "a=1\\nb=2", "order": ""})
    {'tp': ['2'], 'set': ['a=1', 'b=2']}
    """
    return {name: value.splitlines() for name, value in state.items() if value}


def state_of(question: Mapping[str, Any]) -> dict[str, str]:
    """Returns words of a job as a state: a field of several values has one a line."""
    return {
        name: "\n".join(value) if isinstance(value, list) else str(value)
        for name, value in question.items()
    }
