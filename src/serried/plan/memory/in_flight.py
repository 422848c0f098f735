"""Activations in flight, by walking a rank's list of actions, or by closed forms that equal it.

    1F1B, p = 4, stage 0     0F0 0F1 0F2 0F3 0B0 0F4 0B1 …
    held before a backward                    4       4        x kept

A forward adds what its stage keeps of a microbatch, a backward lets it go. Of a backward in halves
the first lets go of all but what weights' gradients are made of, the second of that. The most is
before a backward, where what that works with stands beside it, or after a forward.

The closed forms count chunks of microbatches that wait for a backward, and those between its two
halves. They are exact where the last column says; elsewhere they are no less than what is held.

    gpipe, looped-bfs     v m                                                always
    1f1b                  min(m, p - i)                                      always
    eager-1f1b            min(m, 2 (p - i) - 1)                              always
    interleaved-1f1b      min(v m, min(p, m) (v - 1) + 2 (p - i) - 1)        p divides m, or m < p
    zb-h1                 p - i, and i between halves                        m >= 2 p
    zb-h2                 2 (p - i) - 1, and 2 i between halves              m >= 2 p
    zbv                   2 p chunks                                         m >= 2 p
    1f1b-v, v-half        2 (2 p // 3 + 1) and 2 (p // 2 + 1) chunks         m >= 2 p
    dualpipe, dualpipev   p + 1 stages, and 2 p + 1 chunks                   m >= 2 p
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from serried.action import ActionKind
from serried.errors import InputError, listed
from serried.pipeline import Schedule
from serried.pipeline.packed import Numbers
from serried.pipeline.request import ScheduleRequest


@dataclass(frozen=True)
class StageHolds:
    """Holds bytes that the actions of one stage add to its rank, of one microbatch."""

    kept: float
    """From the forward to the end of the backward, or of its input half."""
    between: float = 0.0
    """From the input half to the weight half."""
    forward_work: float = 0.0
    """What stands beside what is held when a forward has just run."""
    backward_work: float = 0.0
    """What stands beside it while a backward runs, or its input half."""
    end_work: float = 0.0
    """What stands beside the rest when a backward is through its layers, such as the gradient of
    the embedding."""


@dataclass(frozen=True)
class FullestMoment:
    """Holds what a rank holds at its fullest, and at which action of its list that is."""

    held: float
    """Bytes that forwards left behind."""
    work: float
    action: str
    """As the schedule writes it, such as 0B0."""

    @property
    def total(self) -> float:
        """All of it."""
        return self.held + self.work


def fullest_moment(schedule: Schedule, rank: int, holds: Mapping[int, StageHolds]) -> FullestMoment:
    """Returns the fullest moment of a rank, by walking through its actions.

    >>> from serried.pipeline import Request, generate
    >>> holds = {stage: StageHolds(kept=1.0, backward_work=0.5) for stage in range(4)}
    >>> fullest_moment(generate("1f1b", Request(4, 8)), 0, holds)
    FullestMoment(held=4.0, work=0.5, action='0B0')
    """
    part = slice(int(schedule.first[rank]), int(schedule.first[rank + 1]))
    kind, stage = schedule.kind[part], schedule.stage[part]
    changes, before, after = _changes(kind, stage, holds)
    held = np.cumsum(changes)
    # Work stands beside what was held before a backward, and beside what an action has left.
    moments = np.maximum(held - changes + before, held + after)
    at = int(np.argmax(moments))
    is_before = bool(held[at] - changes[at] + before[at] >= held[at] + after[at])
    return FullestMoment(
        held=float(held[at] - changes[at] if is_before else held[at]),
        work=float(before[at] if is_before else after[at]),
        action=schedule.texts(rank)[at],
    )


def _changes(
    kind: Numbers, stage: Numbers, holds: Mapping[int, StageHolds]
) -> tuple[Any, Any, Any]:
    """Returns what each action adds, what stands beside it before, and what after."""
    num_stages = max(holds) + 1
    kept, between, forward, backward, end = (np.zeros(num_stages) for _ in range(5))
    for number, each in holds.items():
        kept[number], between[number] = each.kept, each.between
        forward[number], backward[number] = each.forward_work, each.backward_work
        end[number] = each.end_work
    changes = np.zeros(len(kind))
    before, after = np.zeros(len(kind)), np.zeros(len(kind))
    is_forward, is_whole = kind == ActionKind.F, kind == ActionKind.B
    is_input, is_weight = kind == ActionKind.I, kind == ActionKind.W
    changes += np.where(is_forward, kept[stage], 0) - np.where(is_whole, kept[stage], 0)
    changes += np.where(is_input, between[stage] - kept[stage], 0)
    changes -= np.where(is_weight, between[stage], 0)
    before += np.where(is_whole | is_input, backward[stage], 0)
    after += np.where(is_forward, forward[stage], 0)
    after += np.where(is_whole | is_input, end[stage], 0)
    return changes, before, after


@lru_cache(maxsize=512)
def schedule_of(
    name: str, pp: int, microbatches: int, chunks: int, group: int | None = None
) -> Schedule:
    """Returns a schedule by its name; one rank's is the same whatever it is called.

    Raises InputError for sizes that the schedule cannot have.
    """
    if pp == 1 and chunks == 1:
        return ScheduleRequest("1f1b", stages=1, microbatches=microbatches).schedule()
    asked = ScheduleRequest(
        name,
        stages=pp,
        microbatches=microbatches,
        chunks=chunks if chunks > 1 else None,
        group=group,
    )
    return asked.schedule()


# ----------------------------------------------------------------------- closed forms

Form = Callable[[Any, Any, Any, Any], tuple[Any, Any]]


def _interleaved(p: Any, m: Any, v: Any, i: Any) -> tuple[Any, Any]:
    return np.minimum(v * m, np.minimum(p, m) * (v - 1) + 2 * (p - i) - 1), 0


FORMS: Mapping[str, Form] = {
    "gpipe": lambda p, m, v, i: (v * m + 0 * i, 0),
    "looped-bfs": lambda p, m, v, i: (v * m + 0 * i, 0),
    "1f1b": lambda p, m, v, i: (np.minimum(m, p - i), 0),
    "eager-1f1b": lambda p, m, v, i: (np.minimum(m, 2 * (p - i) - 1), 0),
    "interleaved-1f1b": _interleaved,
    "zb-h1": lambda p, m, v, i: (p - i, i),
    "zb-h2": lambda p, m, v, i: (2 * (p - i) - 1, 2 * i),
    "zbv": lambda p, m, v, i: (2 * p + 0 * i, 0),
    "1f1b-v": lambda p, m, v, i: (2 * (2 * p // 3 + 1) + 0 * i, 0),
    "v-half": lambda p, m, v, i: (2 * (p // 2 + 1) + 0 * i, 0),
    "dualpipe": lambda p, m, v, i: (p + 1 + 0 * i, 0),
    "dualpipev": lambda p, m, v, i: (2 * p + 1 + 0 * i, 0),
}
"""What p ranks, m microbatches and v chunks a rank leave on rank i: numbers or arrays of them."""


def chunks_in_flight(
    name: str, pp: Any, microbatches: Any, chunks: Any, rank: Any
) -> tuple[Any, Any]:
    """Returns chunks of microbatches that a rank holds at most, and those between two halves.

    Sizes are numbers or arrays, for as many answers at once.

    >>> [int(each) for each in chunks_in_flight("zb-h1", 4, 8, 1, 1)]
    [3, 1]

    Raises InputError for a schedule without a closed form.
    """
    if name not in FORMS:
        raise InputError(
            "schedule '{name}' has no closed form of what is in flight; those that have: {known}",
            name=name[:40],
            known=listed(FORMS, limit=len(FORMS)),
        )
    return FORMS[name](pp, microbatches, chunks, rank)
