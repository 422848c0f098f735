"""What the page is told of a plan, or of two: the document of ``serried plan``, with its words.

The names and the colours of items and parts stand beside the document, so that the page draws and
says them as the command line's picture and tables do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from serried.errors import InputError
from serried.finding import Sentence
from serried.plan.catalog import cluster_names, model_names
from serried.plan.job_plan import JobPlan, job_plan
from serried.plan.request import COMPUTE_FORMATS
from serried.plan.search.space import SCHEDULES
from serried.views.plan.comparison import plans_document
from serried.views.plan.document import plan_document
from serried.views.plan.text import job_line
from serried.views.plan.words import COLOURS, MEMORY, TIME, TRAFFIC
from serried.views.sentences import say
from serried.views.web.plan.models import opened_models
from serried.views.web.plan.query import command, read_plan_request
from serried.views.web.wire.query import Query, Words, read_query, read_word

RECOMPUTE = ("none", "selective", "full")
"""What is offered of recomputation; a field takes all that the command line takes."""


def plan_answer(query: Query, words: Words, lang: str) -> dict[str, Any]:
    """Returns the ``serried.plan/1`` document of the job in view, with words and colours.

    Raises InputError as ``serried plan`` does.
    """
    made = job_plan(read_plan_request(query, words))
    return {
        **plan_document(made, lang=lang),
        "job": say(job_line(made), lang),
        "command": command(query, words),
        "words": {
            "memory": _said(MEMORY, lang),
            "time": _said(TIME, lang),
            "traffic": _said(TRAFFIC, lang),
        },
        "colours": COLOURS,
    }


def plan_offers() -> dict[str, Any]:
    """Returns what a plan can be asked for by name."""
    return {
        "models": [*opened_models(), *model_names()],
        "clusters": list(cluster_names()),
        "recompute": list(RECOMPUTE),
        "schedules": list(SCHEDULES),
        # Steps in fp32 are refused, as none were measured.
        "compute": [each for each in COMPUTE_FORMATS if each != "fp32"],
    }


def _said(words: Mapping[str, Sentence], lang: str) -> dict[str, str]:
    return {name: say(word, lang) for name, word in words.items()}


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
