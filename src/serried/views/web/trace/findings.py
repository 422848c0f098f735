"""What the page says of a run before anything else: the verdict, then a card for each finding.

    verdict     what ``serried trace stats`` prints first, and a command to run next, if it is not
                the one that opened the page
    cards       who is slow and what it costs (``diagnose``), the longest waits with their causes
                (``measure.path.gaps``), the bubble beside the plan's; each says where it is seen

Of a large trace they are of its last steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from serried.action import Action
from serried.diagnose.diagnosis import Cause
from serried.diagnose.stragglers.of_trace import trace_causes
from serried.errors import InputError, listed
from serried.finding import Sentence, said
from serried.trace.measure.analysis import Analysis
from serried.trace.measure.overlay import Overlay
from serried.trace.measure.path.gaps import Gap, gap_before
from serried.trace.measure.verdict import run_verdict
from serried.trace.model.trace import Trace
from serried.views.sentences import LANGUAGES, phrase, say
from serried.views.trace.gaps import gap_document, gap_head, gap_sentences, way_sentences
from serried.views.trace.verdict import next_command, verdict_lines
from serried.views.trace.words import CAUSES
from serried.views.web.trace.payload import NamedTrace
from serried.views.web.trace.table import TraceTable
from serried.views.web.wire.query import Words, read_word

_CAUSES_TOLD = 3
_LEAST_SHARE = 0.005


def findings_answer(named: NamedTrace) -> dict[str, Any]:
    """Returns verdict and cards as ``serried.trace-findings/1``, in every language.

    What never ran, and a profile of GPUs, which has a verdict of its own, have none.
    """
    schema = "serried.trace-findings/1"
    if named.gpus is not None or named.trace.is_planned:
        return {"schema": schema, "verdict": None, "cards": []}
    return {"schema": schema, **named.kept("findings", lambda: _found(named))}


def _found(named: NamedTrace) -> dict[str, Any]:
    trace, analysis = named.answers.judged
    verdict = run_verdict(trace, analysis)
    places = [named.given or named.place or named.name]
    lines = {
        lang: verdict_lines(trace, analysis, verdict, places=places, lang=lang)
        for lang in LANGUAGES
    }
    is_open_already = next_command(trace, verdict, places).startswith("serried serve ")
    shown = -1 if is_open_already else None
    return {
        "trouble": verdict.trouble.value,
        "verdict": {lang: told[:shown] for lang, told in lines.items()},
        "cards": [
            *(_of_cause(each) for each in trace_causes(trace)),
            *(_of_gap(each, named.shown.table) for each in analysis.gaps),
            *_of_bubble(analysis),
        ],
    }


def _of_cause(cause: Cause) -> dict[str, Any]:
    ranks = list(cause.ranks or ())
    return {
        "kind": "slow",
        "head": None,
        "lines": _said([cause.verdict, *cause.chain]),
        "more": _said(cause.cures),
        "share": cause.cost,
        "ranks": ranks,
        "shows": {"rank": ranks[0]} if ranks else None,
    }


def _of_gap(gap: Gap, table: TraceTable) -> dict[str, Any]:
    row = _row_of(table.trace, gap)
    return {
        "kind": "gap",
        "head": _said([gap_head(gap)]),
        "lines": _said(gap_sentences(gap)),
        "more": _said(way_sentences(gap)),
        "share": None,
        "ranks": [gap.rank],
        "shows": {
            "rank": gap.rank,
            "slice": int(table.ids(np.array([row]))[0]),
            "from_ns": gap.start_ns,
            "to_ns": gap.end_ns,
        },
    }


def _row_of(trace: Trace, gap: Gap) -> int:
    """Returns the row of what the rank did after a gap, or waited in."""
    action, spans = Action.parse(gap.action), trace.spans
    mine = (spans.rank == gap.rank) & (spans.step == gap.step) & (spans.kind == action.kind)
    mine &= (spans.stage == action.stage) & (spans.microbatch == action.microbatch)
    rows = np.flatnonzero(mine)
    return int(rows[np.argmin(np.abs(spans.start_ns[rows] - gap.end_ns))])


def _of_bubble(analysis: Analysis) -> Iterator[dict[str, Any]]:
    found, planned = analysis.statistics, analysis.planned
    if found.bubbles is None or not found.has_pipeline:
        return
    share = found.bubbles.of_makespan
    told = [said("the bubble is {share:.1%} of a step", share=share)]
    if planned is not None:
        own = planned.own_times or planned.uniform
        told = [
            said(
                "the bubble is {share:.1%} of a step; {schedule} itself has {planned:.1%}",
                share=share,
                schedule=said("{what}", what=planned.schedule),
                planned=own.of_makespan,
            )
        ]
    causes = sorted(found.bubbles.causes.items(), key=lambda each: -each[1])
    yield {
        "kind": "bubble",
        "head": None,
        "lines": {lang: [*_said(told)[lang], _causes(causes, lang)] for lang in LANGUAGES},
        "more": {lang: [] for lang in LANGUAGES},
        "share": share,
        "ranks": [],
        "shows": {"heat": "idle"},
    }


def _causes(causes: list[tuple[str, float]], lang: str) -> str:
    largest = [each for each in causes[:_CAUSES_TOLD] if each[1] >= _LEAST_SHARE]
    names = [
        said("{cause} {share:.1%}", cause=phrase(CAUSES[name], lang), share=share)
        for name, share in largest
    ]
    return say(said("ranks were idle for: {causes}", causes=listed(names)), lang)


def why_answer(named: NamedTrace, words: Words) -> dict[str, Any]:
    """Returns why a span began when it did, as ``serried.trace-why/1``.

    The gap before it is None where its rank did not wait. Raises InputError for a span that is
    not there.
    """
    table, text = named.shown.table, read_word(words, "slice")
    if not (text.isascii() and text.isdecimal() and len(text) < 12 and int(text) < len(table)):
        raise InputError(
            "{name}={value} is not there; they are numbered from 0 to {last}",
            name="slice",
            value=text[:40],
            last=len(table) - 1,
        )
    (row,) = table.rows(np.array([int(text)])).tolist()
    gap = gap_before(named.trace, row, _plan(named))
    if gap is None:
        return {"schema": "serried.trace-why/1", "gap": None}
    return {"schema": "serried.trace-why/1", "gap": gap_document(gap)}


def _plan(named: NamedTrace) -> Overlay | None:
    try:
        return named.answers.overlay
    except InputError:
        return None


def _said(sentences: Iterable[Sentence]) -> dict[str, list[str]]:
    told = list(sentences)
    return {lang: [say(each, lang) for each in told] for lang in LANGUAGES}
