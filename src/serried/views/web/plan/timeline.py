"""The planned step of the job in view, as a trace that the page draws beside those that ran.

trace/window?trace=plan&world_size=16&tp=2&model=llama3-8b…      instead of trace=0
             └─ planned_step makes the trace that these words mean, and keeps the newest few

A large job's is that of one replica, or of one pipeline, whose like all others run.
"""

from __future__ import annotations

from functools import lru_cache

from serried.mesh.sizes import TABLE
from serried.plan.planned_trace import planned_trace
from serried.views.web.plan.query import FIELDS, read_plan_request
from serried.views.web.trace.payload import NamedTrace
from serried.views.web.wire.query import Words, read_query

PLAN = "plan"
"""What a question names the planned step by, where others have the number of a trace."""
CUT_ABOVE = 100_000
"""Spans above which one replica stands for all; so many are sent whole, and answer at once."""
_ASKED = (*TABLE, *FIELDS, "framework", "set")
_KEPT = 4


def planned_step(words: Words) -> NamedTrace:
    """Returns the planned step that the words of a job and its plan ask for.

    Raises InputError as the plan itself, and for a schedule that cannot have the job's sizes.
    """
    asked = ((name, tuple(words[name])) for name in _ASKED if words.get(name))
    return _made(tuple(sorted(asked)))


@lru_cache(maxsize=_KEPT)
def _made(asked: tuple[tuple[str, tuple[str, ...]], ...]) -> NamedTrace:
    words = dict(asked)
    query = read_query(words)
    request = read_plan_request(query, words)
    trace = planned_trace(request, query.layout, query.placement, cut_above=CUT_ABOVE)
    return NamedTrace(trace.run, trace)
