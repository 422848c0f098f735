"""A finding in three lines: what is wrong, how sure that is and on what ground, what to do next."""

from __future__ import annotations

from serried.diagnose.diagnosis import Cause
from serried.finding import Sentence, said

SURE, LIKELY = 0.9, 0.6
"""Confidences from which the evidence shows a cause, and makes it likely."""


def summary(cause: Cause) -> list[Sentence]:
    """Returns the lines, the last only where something can be done.

    >>> from serried.diagnose.diagnosis import CauseClass
    >>> from serried.diagnose.evidence.quote import Quote
    >>> cause = Cause(CauseClass.HANG, "x", (2,), said("rank 2 never came"), 0.95,
    ...               quotes=(Quote("rank_2.log", 7, "loading"),), cures=(said("read its log"),))
    >>> for line in summary(cause):
    ...     print(line)
    rank 2 never came
    the evidence shows this: rank_2.log:7
    next: read its log
    """
    sure = _sureness(cause.confidence)
    places = list(dict.fromkeys(quote.place for quote in cause.quotes))
    if len(places) > 1:
        first, more = places[0], len(places) - 1
        ground = said(
            "{sure}: {place}, and {more:,} more places", sure=sure, place=first, more=more
        )
    else:
        ground = said("{sure}: {place}", sure=sure, place=places[0]) if places else sure
    after = [said("next: {cure}", cure=cause.cures[0])] if cause.cures else []
    return [cause.verdict, ground, *after]


def _sureness(confidence: float) -> Sentence:
    if confidence >= SURE:
        return said("the evidence shows this")
    if confidence >= LIKELY:
        return said("the evidence makes this likely")
    return said("the evidence allows this, and does not show it")
