"""What the Plan panel asks for, read from the words of an address: a job, its model and batch.

world_size=16 tp=2 pp=4      model=llama3-8b cluster=h100 sequence=8192 global_batch=64
└─ the layout in view ─┘     └─ the words of ``serried plan``, names alone: no file is read ─┘
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace

from serried.errors import SerriedError
from serried.finding import Sentence
from serried.plan.asked import option_of, plan_request
from serried.plan.catalog import cluster_named
from serried.plan.request import PlanRequest
from serried.plan.training_settings import SETTINGS
from serried.views.web.plan.models import resolved
from serried.views.web.wire.plan_words import ALL, MORE, given, settings_of
from serried.views.web.wire.query import Query, Words

BY_WORDING = {
    "global batch of": "global_batch",
    "is not recomputed": "recompute",
    "matrices are not multiplied": "compute",
    "has no {format} figure": "compute",
    "steps in fp32": "compute",
    "there is no schedule": "schedule",
}
"""Fields of refusals whose values name none, by what their sentences say."""


def read_plan_request(query: Query, words: Words) -> PlanRequest:
    """Returns the plan that is asked of a job; raises InputError as ``serried plan`` does.

    Models and clusters are known by name alone: no address opens a file.
    """
    told, settings = given(words), settings_of(words)
    request = replace(query.request, settings={**query.request.settings, **settings})
    return plan_request(request, named_words(told))


def named_words(told: Mapping[str, str]) -> dict[str, str]:
    """Returns the words, a model that was opened by its file.

    Raises InputError where a model or a cluster is not known by name.
    """
    found = resolved(told)
    if "cluster" in told:
        cluster_named(told["cluster"])
    return found


def command(query: Query, words: Words) -> str:
    """Returns the command line that prints the same plan."""
    options = [part for name, text in given(words).items() for part in (option_of(name), text)]
    layout = shlex.split(query.command([]))[2:]  # without: serried groups
    sets = [part for each in settings_of(words).items() for part in ("--set", "=".join(each))]
    return shlex.join(["serried", "plan", *options, *layout, *sets])


def field_of(error: SerriedError) -> str:
    """Returns the field that a refused word was typed into, "" where it is none."""
    values = error.values
    said = [values.get(key, "") for key in ("what", "option", "name")]
    texts = [each.template if isinstance(each, Sentence) else str(each) for each in said]
    words = [text.removeprefix("--").replace("-", "_") for text in texts]
    words = ["more" if word in (*MORE, *SETTINGS) else word for word in words]
    named = (word for word in words if word in ALL)
    worded = (field for part, field in BY_WORDING.items() if part in error.template)
    return next(named, "") or next(worded, "")
