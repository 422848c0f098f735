"""What the page is told of words: a card for the job in view, and the twelve lessons."""

from __future__ import annotations

from typing import Any

from serried.errors import InputError
from serried.plan.job_plan import JobPlan, job_plan
from serried.views.learn.cards import TermCard, card, card_keys
from serried.views.learn.document import card_document, lessons_document
from serried.views.learn.lessons import job_of, lessons
from serried.views.sentences import say, tell
from serried.views.web.learn.pictures import lesson_picture
from serried.views.web.plan.query import read_plan_request
from serried.views.web.wire.plan_words import given
from serried.views.web.wire.query import Query, Words, read_count, read_word


def term_answer(query: Query, words: Words, lang: str) -> dict[str, Any]:
    """Returns the ``serried.card/1`` document of the term, with the numbers of the job in view.

    ``priced`` says for which plan costs are told. Where words ask for one that cannot be,
    ``unplanned`` says why and costs are told by bytes.
    Raises InputError for a term that has no card.
    """
    plan, why = _planned(query, words, lang)
    rank = read_count(words, "rank")
    found = card(
        read_word(words, "term"), query.layout, query.placement, lang=lang, rank=rank, plan=plan
    )
    return card_document(found) | {"unplanned": why, "priced": _priced(plan, lang)}


def learn_answer(lang: str) -> dict[str, Any]:
    """Returns the lessons, what is drawn on each, and of every card how it is called."""
    told = lessons(lang)
    return lessons_document(told) | {
        "pictures": {each.card.key: lesson_picture(each) for each in told},
        "terms": [_named(key, lang) for key in card_keys()],
    }


def _planned(query: Query, words: Words, lang: str) -> tuple[JobPlan | None, str]:
    """Returns the plan that words ask for, or why it cannot be."""
    if not given(words):
        return None, ""
    try:
        return job_plan(read_plan_request(query, words)), ""
    except InputError as error:
        return None, say(error, lang)


def _priced(plan: JobPlan | None, lang: str) -> str:
    if plan is None:
        return ""
    asked = plan.asked
    return tell(
        "for {model} on {cluster}, {batch} sequences of {tokens:,} tokens a step",
        lang,
        model=asked.model.name,
        cluster=asked.cluster.name,
        batch=asked.global_batch,
        tokens=asked.sequence,
    )


def _named(key: str, lang: str) -> dict[str, Any]:
    found: TermCard = card(key, *job_of(key).laid_out(), lang=lang)
    return {
        "key": key,
        "name": found.name,
        "title": found.title,
        "also": list(found.also),
        "text": found.text,
    }
