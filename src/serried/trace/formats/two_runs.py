"""Signs that one file holds two runs, whose spans would stand on the same ranks.

    rank 0, step 3   0F0 0F1 0B0 0B1 · · · 0F0 0F1 0B0 0B1      no rank does a step twice
                     0F0 0F1 …                                  nor two of one action at a time
                       0F0 0F1 …

A job in pieces (Paddle's chunks) names its action several times too, one piece after another;
so what counts is a forward that comes again after others, or before it has ended.
"""

from __future__ import annotations

import numpy as np

from serried.action import Action, ActionKind, Spans
from serried.finding import Finding, Sentence, said
from serried.trace.model.pairs import packed

_MOST = 0.5
"""How many of a rank's forwards in a step come again where a second run is in it."""


def two_runs(spans: Spans) -> Finding | None:
    """Returns what is to be said of the first step that some rank seems to have done twice.

    >>> none = np.zeros(0, dtype=np.int32)
    >>> two_runs(Spans(*[none] * 6, none.astype(np.int64), none.astype(np.int64))) is None
    True
    """
    forwards = spans.where(spans.kind == ActionKind.F)
    order = np.lexsort((forwards.end_ns, forwards.start_ns, forwards.step, forwards.rank))
    forwards = forwards.where(order)
    if len(forwards) < 2:
        return None
    step_of = packed([forwards.rank.astype(np.int64), forwards.step.astype(np.int64)])
    named = (step_of, forwards.stage.astype(np.int64), forwards.microbatch.astype(np.int64))
    _, action = np.unique(packed(list(named)), return_inverse=True)
    by_action = np.argsort(action, kind="stable")
    is_again = np.diff(action[by_action], prepend=-1) == 0
    before, after = by_action[np.flatnonzero(is_again) - 1], by_action[is_again]
    overlaps = forwards.start_ns[after] < forwards.end_ns[before]
    # Pieces of one forward follow each other directly and do not overlap, so they count for
    # none; with other forwards between, or at the same time, it is a second run.
    real = after[(after - before > 1) | overlaps]
    _, place = np.unique(step_of, return_inverse=True)
    again, whole = np.bincount(place[real], minlength=1 + place[-1]), np.bincount(place)
    found = np.flatnonzero((again > 0) & (again >= _MOST * (whole - again)))
    if not len(found):
        return None
    row = int(real[place[real] == found[0]][0])
    return _told(forwards, row)


def _told(forwards: Spans, row: int) -> Finding:
    rank = int(forwards.rank[row])
    stage, microbatch = int(forwards.stage[row]), int(forwards.microbatch[row])
    evidence = said(
        "rank {rank} does {action} twice in step {step}, and other forwards too: the files hold "
        "two runs, whose times are mixed",
        rank=rank,
        action=str(Action(ActionKind.F, stage, microbatch)),
        step=int(forwards.step[row]),
    )
    return of_two_runs(evidence, rank)


def of_two_runs(evidence: Sentence, *ranks: int) -> Finding:
    """Returns the finding that a file holds two runs, for which ``evidence`` says why."""
    return Finding("two runs", (evidence,), ranks, cure=said("give each run a file of its own"))
