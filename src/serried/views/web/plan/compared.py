"""Two plans that are pinned, as the words of their questions, side by side."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from serried.errors import InputError
from serried.plan.job_plan import JobPlan, job_plan
from serried.views.plan.comparison import plans_document
from serried.views.web.plan.query import read_plan_request
from serried.views.web.wire.query import Words, read_query, read_word

PINNED = ("a", "b")


def compared_answer(words: Words, lang: str) -> dict[str, Any]:
    """Returns the ``serried.plans/1`` document of the plans that ``a`` and ``b`` ask for.

    Raises InputError where one of them is missing, and as a plan does.
    """
    a, b = (_plan(name, words) for name in PINNED)
    return plans_document(a, b, lang=lang)


def _plan(name: str, words: Words) -> JobPlan:
    text = read_word(words, name)
    if not text:
        raise InputError(
            "two plans are compared, and {name} is missing; give the words of its question",
            name=name,
        )
    asked = parse_qs(text, keep_blank_values=True)
    return job_plan(read_plan_request(read_query(asked), asked))
