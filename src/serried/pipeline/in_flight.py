"""In-flight activations: how many forwards a rank holds whose backwards are still to come.

A whole backward lets its activation go. Of one in halves it depends: the input half frees most of
it, the weight half the rest, so both counts are given; the zero-bubble papers count to W.

    ZB-H1, p = 4     counted to W  4 4 4 4      counted to I  4 3 2 1
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serried.action import ActionKind
from serried.pipeline.costs import Number
from serried.pipeline.longest_path import Times
from serried.pipeline.packed import Numbers
from serried.pipeline.schedule import Schedule

Weights = tuple[Number, Number, Number]
"""What F, I and W each add to the memory of their rank."""
TO_WEIGHT: Weights = (1, 0, -1)
"""Counts activations, until the weight half has run."""


@dataclass(frozen=True, eq=False)
class Peaks:
    """Holds each rank's most activations at a time, one for a microbatch of a stage."""

    to_weight: Numbers
    to_input: Numbers


def peaks(schedule: Schedule) -> Peaks:
    """Counts the peaks; they follow from the lists alone, whatever the times.

    >>> from serried.pipeline.schedules.one_f_one_b import one_f_one_b
    >>> peaks(one_f_one_b(4, 8)).to_weight.tolist()
    [4, 3, 2, 1]
    """
    first = schedule.first[:-1]
    return Peaks(
        np.maximum.reduceat(held(schedule, ActionKind.W), first),
        np.maximum.reduceat(held(schedule, ActionKind.I), first),
    )


def held(schedule: Schedule, until: ActionKind = ActionKind.W) -> Numbers:
    """Returns how many activations its rank holds once each entry has run.

    ``until`` is the half of a backward that lets go of one, I or W.
    """
    kind = schedule.kind
    change = (kind == ActionKind.F).astype(np.int64)
    change -= (kind == ActionKind.B) | (kind == until)
    # Every rank ends with none, so one sum runs over all of them.
    return np.cumsum(change)


def occupied(schedule: Schedule, weights: Weights) -> Times:
    """Returns the memory that its rank occupies once each entry has run, exact.

    >>> from serried.pipeline.schedules.zero_bubble.zb_h1 import zb_h1
    >>> schedule = zb_h1(1, 2)
    >>> schedule.texts(0), occupied(schedule, (2, -1, -1)).tolist()
    (['0F0', '0I0', '0W0', '0F1', '0I1', '0W1'], [2, 1, 0, 2, 1, 0])
    """
    forward, inputs, weight = weights
    is_whole = all(isinstance(each, int) for each in weights)
    change: Times = np.zeros(len(ActionKind) + 1, np.int64 if is_whole else np.object_)
    change[ActionKind.F], change[ActionKind.B] = forward, inputs + weight
    change[ActionKind.I], change[ActionKind.W] = inputs, weight
    total: Times = np.cumsum(change[schedule.kind])
    # What a rank is left with is not the next one's.
    first = schedule.first[:-1]
    left = np.concatenate([[0], total[schedule.first[1:-1] - 1]])
    each: Times = total - np.repeat(left, np.diff(np.append(first, len(total))))
    return each
