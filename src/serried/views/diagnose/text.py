"""A diagnosis as text: the verdict, the chain, the evidence, what to do, what is missing."""

from __future__ import annotations

from serried.diagnose.diagnosis import Cause, Diagnosis
from serried.finding import said
from serried.views.diagnose.document import no_cause
from serried.views.explain.plain import wrap
from serried.views.sentences import phrase, say

MOST_QUOTES = 8
LONGEST_QUOTE = 400
"""Letters of a line of evidence that a terminal shows; as JSON it stands uncut."""


def diagnosis_lines(diagnosis: Diagnosis, *, lang: str, width: int) -> list[str]:
    """Returns the answer as lines of at most ``width`` columns; lines of a log go beyond."""
    if not diagnosis.causes:
        lines = wrap(say(no_cause(diagnosis), lang), width)
    else:
        lines = _cause(diagnosis.causes[0], lang, width)
        for other in diagnosis.causes[1:]:
            lines += ["", *wrap(say(said("also: {verdict}", verdict=other.verdict), lang), width)]
    lines += _listed("missing", [say(each, lang) for each in diagnosis.missing], lang, width)
    return lines + _listed("notes", [say(each, lang) for each in diagnosis.notes], lang, width)


def _cause(cause: Cause, lang: str, width: int) -> list[str]:
    lines = wrap(say(cause.verdict, lang), width)
    lines += _listed("why", [say(each, lang) for each in cause.chain], lang, width)
    if quotes := [f"  {_short(str(quote))}" for quote in cause.quotes[:MOST_QUOTES]]:
        lines += ["", phrase("evidence", lang), *quotes]
    return lines + _listed("what to do", [say(each, lang) for each in cause.cures], lang, width)


def _listed(title: str, sentences: list[str], lang: str, width: int) -> list[str]:
    if not sentences:
        return []
    return [
        "",
        phrase(title, lang),
        *(row for each in sentences for row in wrap(f"- {each}", width, hanging=2)),
    ]


def _short(quote: str) -> str:
    return quote if len(quote) <= LONGEST_QUOTE else f"{quote[:LONGEST_QUOTE]} …"
