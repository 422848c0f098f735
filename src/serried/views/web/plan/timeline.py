"""The planned step of the job in view, as a trace that the page draws beside those that ran.

trace/window?trace=plan&world_size=16&tp=2&model=llama3-8b…      instead of trace=0
                        └─ step_words ─┘ whatever else is asked    ──> planned_step

A large job's is that of one replica, or of one pipeline, whose like all others run.
"""

from __future__ import annotations

from serried.mesh.sizes import TABLE
from serried.plan.planned_trace import planned_trace
from serried.trace.model.trace import Trace
from serried.views.web.plan.query import read_plan_request
from serried.views.web.wire.plan_words import ALL
from serried.views.web.wire.query import Words, read_query

PLAN = "plan"
"""What a question names the planned step by, where others have the number of a trace."""
CUT_ABOVE = 100_000
"""Spans above which one replica stands for all; so many are sent whole, and answer at once."""
_ASKED = (*TABLE, *ALL, "framework", "set")

StepWords = tuple[tuple[str, tuple[str, ...]], ...]
"""Words of a job and its plan, by name: the same for the same step, whatever is asked of it."""


def step_words(words: Words) -> StepWords:
    """Returns those of a question's words that say of what job and plan the step is.

    >>> step_words({"tp": ["2"], "slice": ["7"], "model": ["llama3-8b"]})
    (('model', ('llama3-8b',)), ('tp', ('2',)))
    """
    asked = ((name, tuple(words[name])) for name in _ASKED if words.get(name))
    return tuple(sorted(asked))


def planned_step(asked: StepWords) -> Trace:
    """Returns the planned step that the words of a job and its plan ask for.

    Raises InputError as the plan itself, and for a schedule that cannot have the job's sizes.
    """
    words = dict(asked)
    query = read_query(words)
    request = read_plan_request(query, words)
    return planned_trace(request, query.layout, query.placement, cut_above=CUT_ABOVE)
