"""What the page may ask of one trace: each question by its address below ``api/``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from serried.views.web.trace.findings import findings_answer, why_answer
from serried.views.web.trace.heat import heat_payload
from serried.views.web.trace.links import links_payload, span_payload
from serried.views.web.trace.measured import measured_payload
from serried.views.web.trace.overview import overview_payload
from serried.views.web.trace.payload import (
    NamedTrace,
    rows_payload,
    scale_answer,
    statistics_answer,
    trace_payload,
)
from serried.views.web.trace.plan import late_answer, plan_payload
from serried.views.web.trace.statistics import (
    gpus_answer,
    period_answer,
    sharding_of_trace,
    whole_answer,
)
from serried.views.web.trace.stretch import found_answer, stretch_answer
from serried.views.web.trace.window import window_payload
from serried.views.web.wire.query import Words, read_word

Answer = Callable[[NamedTrace, Words], bytes | dict[str, Any]]
"""A payload, or a document that goes out as JSON."""

ANSWERS: dict[str, Answer] = {
    "trace": lambda named, _: trace_payload(named),
    "trace/window": lambda named, words: window_payload(named.shown, words),
    "trace/overview": lambda named, _: overview_payload(named.shown),
    "trace/rows": lambda named, words: rows_payload(named, read_word(words, "by")),
    "trace/statistics": lambda named, _: whole_answer(named),
    "trace/bubble": lambda named, _: statistics_answer(named),
    "trace/findings": lambda named, _: findings_answer(named),
    "trace/why": why_answer,
    "trace/period": lambda named, _: period_answer(named),
    "trace/scale": lambda named, words: scale_answer(named, read_word(words, "of")),
    "trace/links": lambda named, words: links_payload(named.shown, words),
    "trace/span": lambda named, words: span_payload(named.shown, words),
    "trace/heat": lambda named, words: heat_payload(named.answers, words),
    "trace/plan": lambda named, _: plan_payload(named.answers),
    "trace/measured": lambda named, words: measured_payload(named, words),
    "trace/sharding": sharding_of_trace,
    "trace/late": lambda named, words: late_answer(named.answers, words),
    "trace/gpus": gpus_answer,
    "trace/found": lambda named, words: found_answer(named.answers, named.shown.table, words),
    "trace/stretch": lambda named, words: stretch_answer(named.answers, words),
}
