"""What the page shows of a job without a pipeline in place of a bubble: every rank's period."""

from __future__ import annotations

from typing import Any

from serried.views.trace.periods import by_own_time, periods_document
from serried.views.trace.words import host_text
from serried.views.web.trace.payload import NamedTrace


def period_answer(named: NamedTrace) -> dict[str, Any]:
    """Returns periods as ``serried.trace-period/1``; None where there is a pipeline.

    Of a large trace they are of its last steps, as many as are measured in some seconds.
    """
    schema = "serried.trace-period/1"
    trace, analysis = named.answers.judged
    if analysis.periods is None:
        return {"schema": schema, "periods": None}
    late = {each.rank: each.waited_for_ns for each in analysis.paces}
    periods = periods_document(analysis.periods)
    assert periods is not None  # there are some
    rows = {each["rank"]: each for each in periods["ranks"]}
    # The page draws rows as they come: those first that wait least.
    periods["ranks"] = [
        {
            **rows[each.rank],
            "host": host_text(trace, each.rank),
            "waited_for_us": max(0.0, late.get(each.rank) or 0.0) / 1e3,
        }
        for each in by_own_time(analysis.periods)
    ]
    return {"schema": schema, "periods": periods}
