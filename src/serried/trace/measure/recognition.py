"""Recognition: which schedule a recorded order is, by making all there are and comparing.

    recorded   0F0 0F1 0B0 0F2 0B1 …     1f1b          100 % of the order matches
                                         gpipe          71 %, departs on rank 0 after 2 actions

An order is looked up among the schedules of ``schedule.registry`` with the recorded number of
ranks, microbatches and stages. The share is that of the longest part which both lists have in
the same order (a common subsequence), so one late action does not make all behind it differ.
``auto`` is left out: it is searched for given times, and no order of its own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from serried.action import ActionKind
from serried.errors import InputError
from serried.pipeline import ENTRIES, Request, Schedule, generate
from serried.pipeline.packed import JOINED, Codes, kind_of, unpack, work
from serried.trace.model.recorded_order import RecordedOrder

_SEARCHED = ("auto",)
_BOTH_WAYS = ("dualpipe", "chimera")
"""Schedules whose two directions number their microbatches from 0 each."""

_MOST_ACTIONS = 1 << 18
"""Beyond that a comparison with every schedule takes longer than it is worth."""

_RANKS_COMPARED = 8
"""How many ranks, evenly spread, an order that is no schedule's own is compared on."""


@dataclass(frozen=True)
class Departure:
    """Says where an order first leaves a schedule; an action is None past the end of a list."""

    rank: int
    place: int
    """How many actions are alike before it."""
    recorded: str | None
    planned: str | None


@dataclass(frozen=True)
class Likeness:
    """Says how far a recorded order is that of one schedule."""

    name: str
    share: float
    """The share of the actions; 1 where every rank has the schedule's order."""
    departure: Departure | None


@dataclass(frozen=True, eq=False)
class Recognition:
    """Holds the schedules that have the sizes of a recorded order, the likest first."""

    likenesses: tuple[Likeness, ...]
    """Only those that are the order itself, where there are any."""
    schedule: Schedule
    """The likest, made with the recorded sizes."""

    @property
    def best(self) -> Likeness:
        """The likest of all; of equal ones the first in the registry."""
        return self.likenesses[0]

    @property
    def is_exact(self) -> bool:
        """Whether every rank has the order of the likest."""
        return self.best.departure is None

    @property
    def equals(self) -> tuple[str, ...]:
        """The names of all whose order is the recorded one; at some sizes several are one."""
        return tuple(each.name for each in self.likenesses if each.departure is None)


def recognise(order: RecordedOrder) -> Recognition | None:
    """Returns which schedules ``order`` is like; None where none has its sizes."""
    if order.num_actions > _MOST_ACTIONS:
        return None
    found = [(_likeness(order, made), made) for made in _candidates(order)]
    # How alike two orders are takes longer to tell than where they part, and is asked only where
    # none is the order itself.
    exact = [each for each in found if each[0].departure is None]
    found = exact or [(replace(each, share=_share(order, made)), made) for each, made in found]
    found.sort(key=lambda each: -each[0].share)
    return Recognition(tuple(each for each, _ in found), found[0][1]) if found else None


def _candidates(order: RecordedOrder) -> Iterator[Schedule]:
    """Yields every schedule of the order's sizes whose halves of backwards are whole as its are."""
    num_ranks = len(order.codes)
    chunks, rest = divmod(order.num_stages, num_ranks)
    for entry in ENTRIES.values():
        both_ways = entry.name in _BOTH_WAYS
        held = 1 if both_ways else chunks
        if entry.name in _SEARCHED or rest or (entry.chunks or held) != held + both_ways:
            continue
        microbatches = order.num_microbatches * (2 if both_ways else 1)
        asked = Request(num_ranks, microbatches, None if both_ways or held == 1 else held)
        made: dict[int | None, Schedule] = {}
        for group in (None, _group(order)) if entry.takes_group else (None,):
            try:
                one = generate(entry.name, replace(asked, group=group))
            except InputError:
                continue  # a schedule that cannot have these sizes
            if _splits(order.codes) == _splits((one.code,)):
                made.setdefault(one.group, one)
        yield from made.values()


def _splits(codes: tuple[Codes, ...]) -> bool:
    """Tells whether backwards are done in two halves."""
    return any(bool((kind_of(code) == ActionKind.W).any()) for code in codes)


def _group(order: RecordedOrder) -> int:
    """Returns how many forwards of its first stage the first rank begins with."""
    first = order.codes[0]
    like = first == work(ActionKind.F, 0, np.arange(len(first)))
    return int(np.argmin(like)) if not like.all() else len(first)


def _planned(schedule: Schedule, place: int) -> Codes:
    """Returns what one rank of a schedule does, with directions and pairs taken off."""
    of_rank = schedule.code[schedule.first[place] : schedule.first[place + 1]]
    return of_rank & ~(JOINED | work(ActionKind.F, 0, 0, 1) - work(ActionKind.F, 0, 0))


def _likeness(order: RecordedOrder, schedule: Schedule) -> Likeness:
    departures = []
    for place, recorded in enumerate(order.codes):
        planned = _planned(schedule, place)
        # A list that ends early leaves the other where it ends.
        shorter = min(len(recorded), len(planned))
        differs = np.flatnonzero(recorded[:shorter] != planned[:shorter])
        if len(differs) or len(recorded) != len(planned):
            at = int(differs[0]) if len(differs) else shorter
            rank = int(order.ranks[place])
            departures.append(Departure(rank, at, _text(recorded, at), _text(planned, at)))
    first = min(departures, key=lambda each: (each.place, each.rank), default=None)
    return Likeness(schedule.name, float(first is None), first)


def _text(codes: Codes, at: int) -> str | None:
    if at >= len(codes):
        return None
    return str(unpack(codes[at : at + 1])[0])


def _share(order: RecordedOrder, schedule: Schedule) -> float:
    """Returns what part of the actions stands in the same order in both."""
    places = np.unique(np.linspace(0, len(order.codes) - 1, _RANKS_COMPARED).astype(int))
    alike = whole = 0
    for place in places.tolist():
        planned = _planned(schedule, place)
        alike += _common(order.codes[place], planned)
        whole += max(len(order.codes[place]), len(planned))
    return alike / whole


def _common(one: Codes, other: Codes) -> int:
    """Returns the length of the longest list that both contain in this order.

    >>> _common(np.array([1, 2, 3, 4]), np.array([2, 1, 3, 4]))
    3
    """
    # Every action that both have becomes its place in the other list. The longest ascending part
    # of these places is found by patience sorting, in n log n; a table would take n squared.
    place = {code: at for at, code in enumerate(other.tolist())}
    ends: list[int] = []
    for at in (place[code] for code in one.tolist() if code in place):
        where = bisect_left(ends, at)
        ends[where : where + 1] = [at]
    return len(ends)
