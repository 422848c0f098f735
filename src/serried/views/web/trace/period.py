"""What the page shows of a job without a pipeline in place of a bubble: verdict, ranks' periods."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from serried.trace.measure.analysis import analyse_periods
from serried.trace.measure.verdict import run_verdict
from serried.trace.model.trace import Trace
from serried.views.sentences import LANGUAGES
from serried.views.trace.periods import by_own_time, periods_document
from serried.views.trace.verdict import verdict_lines
from serried.views.trace.words import host_text
from serried.views.web.trace.payload import NamedTrace
from serried.views.web.trace.sample import SPANS


def period_answer(named: NamedTrace) -> dict[str, Any]:
    """Returns periods and verdict as ``serried.trace-period/1``; None where there is a pipeline.

    Of a large trace they are of its last steps, as many as are measured in some seconds.
    """
    schema = "serried.trace-period/1"
    trace = last_steps(named.answers.trace)
    analysis = None if trace.has_pipeline else analyse_periods(trace)
    if analysis is None or analysis.periods is None:
        return {"schema": schema, "periods": None, "verdict": None}
    verdict = run_verdict(trace, analysis)
    lines = {
        lang: verdict_lines(trace, analysis, verdict, places=[named.name], lang=lang)
        for lang in LANGUAGES
    }
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
    # What to run next in a terminal is no part of a page.
    return {"schema": schema, "periods": periods, "verdict": {k: v[:-1] for k, v in lines.items()}}


def last_steps(trace: Trace) -> Trace:
    """Returns the trace itself, or of one with more than SPANS its last steps of so many spans."""
    spans = trace.spans
    if len(spans) <= SPANS:
        return trace
    steps, counts = np.unique(spans.step, return_counts=True)
    # A period needs the step before, so that steps must follow one another; two at least.
    kept = max(2, int((np.cumsum(counts[::-1]) <= SPANS).sum()))
    return replace(trace, spans=spans.where(np.isin(spans.step, steps[-kept:])))
