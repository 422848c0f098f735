"""A clock that went back: steps of one rank that seem to begin before those that came first.

    rank 3   step 4 ├──────┤ step 5 ├──────┤
             step 6 ├──────┤                     set back by what is between the begins

Every rank begins its steps one after another, whatever overlaps within them. Between hosts, a
clock that was set is found by the others' (``align``); a host alone has only its steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from serried.action import Spans
from serried.errors import listed
from serried.finding import Finding, said
from serried.trace.model.pairs import packed
from serried.units import duration_text


class Setback(NamedTuple):
    """Says that a rank seems to have begun a step before the one that comes before it."""

    rank: int
    step: int
    back_ns: int


def clocks_gone_back(spans: Spans) -> tuple[Finding, ...]:
    """Returns a finding for each step that ranks began before the one that comes before it.

    >>> rank, step, times = np.full(2, 3), np.array([4, 5]), np.array([90, 20])
    >>> one = np.zeros(2, dtype=np.int64)
    >>> found = clocks_gone_back(Spans(rank, one, one, one, step, one, times, times + 5))
    >>> str(found[0].evidence[0]).partition(";")[0]
    'the clock of rank 3 went back by 70 ns or more before step 5'
    """
    if not len(spans):
        return ()
    code = packed([spans.rank.astype(np.int64), spans.step.astype(np.int64)])
    order = np.lexsort((spans.start_ns, code))
    # The first span of each rank's step: a step begins when that does.
    first = order[np.diff(code[order], prepend=-1) != 0]
    rank, step, begun = spans.rank[first], spans.step[first], spans.start_ns[first]
    back = np.diff(begun)
    is_back = (back < 0) & (np.diff(rank) == 0)
    columns = (rank[1:], step[1:], -back)
    return told(map(Setback, *(column[is_back].tolist() for column in columns)))


def told(setbacks: Iterable[Setback]) -> tuple[Finding, ...]:
    """Returns a finding for each step that any rank began too early, by step."""
    by_step: dict[int, list[Setback]] = {}
    for each in setbacks:
        by_step.setdefault(each.step, []).append(each)
    return tuple(
        _finding(sorted(each.rank for each in mine), step, max(each.back_ns for each in mine))
        for step, mine in sorted(by_step.items())
    )


def _finding(ranks: list[int], step: int, back_ns: int) -> Finding:
    evidence = said(
        "the clock of rank {ranks} went back by {back} or more before step {step}; its later spans "
        "stand too early",
        ranks=listed(ranks, limit=16),
        back=duration_text(back_ns),
        step=step,
    )
    return Finding("clock", (evidence,), tuple(ranks))
