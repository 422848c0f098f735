"""The course of a step: what each rank does on its own between its waits, and whom it waits for.

    rank 0   own 9 ─ send ─ own 12 ─────── all-reduce ─ …     a receive ends when its sender has
    rank 1           receive ─ own 14 ─────┘                  sent, a collective begins when the
    rank 2   own 11 ────────── all-reduce ─ …                 last of its group has come

Run again with other times of its own, each rank comes later or earlier to whom it meets, in any
layout: pipelines of any schedule, tensor and data parallel groups, and all of them together. Where
no message of a pipeline was recorded, the order of its computations stands in for them.

How long a meeting takes once all are there is told by the shortest stay, so by own clocks alone.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from serried.diagnose.stragglers.course_spans import Waits, waits_of
from serried.trace.model.pairs import packed
from serried.trace.model.trace import Trace

MOST_WAITS = 60_000
"""How many waits of a step are replayed; a step of more is not."""
MOST_STEPS = 64
LEAST_STEPS = 5
_OF_A_MEDIAN = np.pi / 2
"""How much more than a mean's the variance of a normal law's median is."""
_USUAL = 0.5
"""The share of steps that must have the order of waits that is the usual one."""

Table = NDArray[np.float64]
"""Nanoseconds: one row per wait, one column per step."""


@dataclass(frozen=True, eq=False)
class Course:
    """Holds the waits of a step, which meet, and how long ranks took before and in them."""

    own: Table
    """What the rank of each wait did before it, since its wait before."""
    held: Table
    """How long each lasts once all that meet are there."""
    rank: NDArray[np.int64]
    """The place of each wait's rank in ``ranks``."""
    ranks: tuple[int, ...]
    steps: NDArray[np.int64]
    alike: tuple[NDArray[np.int64], ...]
    """Waits of ranks that do the same in the same order: one row per rank."""
    repeated: tuple[NDArray[np.int64], ...]
    """Waits before which a rank does the same, microbatch by microbatch."""
    order: tuple[tuple[tuple[int, ...], int], ...]
    """Waits that begin together, each behind what it needs; and the send that they need, or -1."""

    @classmethod
    def of(cls, trace: Trace, steps: NDArray[np.int64]) -> Course | None:
        """Returns the course of ``steps``; None where it cannot be told, or is too long."""
        if trace.waits_inside or trace.missing:
            return None
        waits = waits_of(trace, steps)
        if waits is None:
            return None
        table = _usual_steps(waits, steps)
        if table is None or len(table.rows) > MOST_WAITS:
            return None
        return _course(waits, table)

    def seconds(self, own: Table | None = None) -> NDArray[np.float64]:
        """Returns how long each step takes with ``own`` times, by default as recorded."""
        own = self.own if own is None else own
        clocks = np.zeros((len(self.ranks), own.shape[1]))
        sent = dict[int, NDArray[np.float64]]()
        for together, needs in self.order:
            places = self.rank[list(together)]
            comes = clocks[places] + own[list(together)]
            begun = comes.max(axis=0)
            if needs >= 0:
                begun = np.maximum(begun, sent[needs])
            if together[0] in self._sends:
                sent[together[0]] = begun
            clocks[places] = begun + self.held[list(together)]
        return np.asarray(clocks.max(axis=0) / 1e9)

    @cached_property
    def _sends(self) -> frozenset[int]:
        return frozenset(needs for _, needs in self.order if needs >= 0)

    @cached_property
    def usual(self) -> Table:
        """Every rank's own times at their medians, together as long as its median step.

        A step that is longer for all ranks stays so: no rank kept the others waiting in it.
        """
        middle = self._medians[:, None]
        whole = self.of_ranks(self.own)
        median = np.median(whole, axis=1, keepdims=True)
        factor = np.ones_like(median)
        np.divide(median, self.of_ranks(middle), out=factor, where=self.of_ranks(middle) > 0)
        shares = np.ones_like(whole)
        np.divide(whole, median, out=shares, where=median > 0)
        return np.asarray(middle * factor[self.rank] * np.median(shares, axis=0))

    @cached_property
    def _medians(self) -> NDArray[np.float64]:
        """The medians of own times, nearer to one another where the work is the same.

        What medians of few steps differ by is partly chance, and whoever waits meets the longest of
        them. So those of a rank's microbatches, and then those of ranks that do the same, are drawn
        together by the part that chance explains (James and Stein 1961).
        """
        middle = np.median(self.own, axis=1)
        chance = _OF_A_MEDIAN * self.own.var(axis=1) / self.own.shape[1]
        for rows in (*self.repeated, *self.alike):
            if len(rows) < 2:
                continue
            common = middle[rows].mean(axis=0)
            apart = float(((middle[rows] - common) ** 2).sum()) * len(rows) / (len(rows) - 1)
            kept = max(0.0, 1 - float(chance[rows].sum()) / apart) if apart else 0.0
            middle[rows] = common + kept * (middle[rows] - common)
            chance[rows] *= kept + (1 - kept) / len(rows)
        return middle

    def of_ranks(self, own: Table) -> Table:
        """Returns the sums of ``own`` times by rank."""
        sums = np.zeros((len(self.ranks), own.shape[1]))
        np.add.at(sums, self.rank, own)
        return sums


@dataclass(frozen=True, eq=False)
class _Steps:
    """Holds which row of the waits each wait is in each step, rank by rank in its order."""

    rows: NDArray[np.int64]
    """One row per wait, one column per step."""
    steps: NDArray[np.int64]


def _usual_steps(waits: Waits, steps: NDArray[np.int64]) -> _Steps | None:
    """Returns the waits of steps in which every rank has its usual ones in its usual order."""
    edges = np.flatnonzero(np.diff(waits.rank * (waits.step.max() + 1) + waits.step, prepend=-1))
    runs = dict[tuple[int, int], NDArray[np.int64]]()
    for rows in np.split(np.arange(len(waits)), edges[1:]):
        runs[int(waits.rank[rows[0]]), int(waits.step[rows[0]])] = rows
    usual = dict[int, bytes]()
    for rank in range(int(waits.rank.max()) + 1):
        mine = Counter(waits.name[rows].tobytes() for (of, _), rows in runs.items() if of == rank)
        if not mine:
            return None
        usual[rank] = mine.most_common(1)[0][0]
    kept = [
        step
        for step in steps.tolist()
        if all(
            (rank, step) in runs and waits.name[runs[rank, step]].tobytes() == usual[rank]
            for rank in usual
        )
    ]
    if len(kept) < max(LEAST_STEPS, _USUAL * len(steps)):
        return None
    at = np.unique(np.linspace(0, len(kept) - 1, min(MOST_STEPS, len(kept))).astype(int))
    chosen = [kept[place] for place in at.tolist()]
    columns = [np.concatenate([runs[rank, step] for rank in usual]) for step in chosen]
    return _Steps(np.stack(columns, axis=1), np.array(chosen, dtype=np.int64))


def _course(waits: Waits, table: _Steps) -> Course | None:
    one = table.rows[:, 0]
    rank, name = waits.rank[one], waits.meeting[one]
    meets = _meetings(rank, name, waits.size[one])
    sender = _senders(waits, one)
    order = _order(rank, meets, sender)
    if order is None:
        return None
    begin, end = waits.begin[table.rows], waits.end[table.rows]
    held = end - begin
    for together in meets:
        held[list(together)] = held[list(together)].min(axis=0)
    receives = np.flatnonzero(sender >= 0)
    # What a receive waited for its sender is not its own time.
    left = end[receives] - np.maximum(begin[receives], begin[sender[receives]])
    held[receives] = np.clip(left, 0, held[receives])
    return Course(
        alike=_alike(rank, waits.work[one]),
        repeated=_repeated(rank, waits.place[one]),
        own=waits.own[table.rows].astype(np.float64),
        held=held.astype(np.float64),
        rank=rank,
        ranks=tuple(waits.ranks.tolist()),
        steps=table.steps,
        order=order,
    )


def _meetings(
    rank: NDArray[np.int64], name: NDArray[np.int64], size: NDArray[np.int64]
) -> list[tuple[int, ...]]:
    """Returns the waits that meet: the n-th of a name on each rank, if all of a group have it."""
    turns = Counter[tuple[int, int]]()
    found = dict[tuple[int, int], list[int]]()
    for at, (of, named) in enumerate(zip(rank.tolist(), name.tolist(), strict=True)):
        if named >= 0:
            found.setdefault((named, turns[of, named]), []).append(at)
            turns[of, named] += 1
    return [tuple(each) for each in found.values() if len(each) == size[each[0]]]


def _alike(rank: NDArray[np.int64], work: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Returns the waits of ranks that do the same work, a table for each kind of rank."""
    found = dict[bytes, list[NDArray[np.int64]]]()
    for rows in np.split(np.arange(len(rank)), np.flatnonzero(np.diff(rank)) + 1):
        found.setdefault(work[rows].tobytes(), []).append(rows)
    return tuple(np.stack(each) for each in found.values())


def _repeated(rank: NDArray[np.int64], place: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Returns the waits of each rank that end what begins and ends alike but for its microbatch."""
    before = np.where(np.diff(rank, prepend=-1) != 0, -1, np.roll(place, 1))
    _, of = np.unique(packed([rank, before, place]), return_inverse=True)
    order = np.argsort(of, kind="stable")
    return tuple(np.split(order, np.cumsum(np.bincount(of))[:-1]))


def _senders(waits: Waits, one: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns for each wait of a step the send that it is the receive of, -1 for others."""
    place_of = np.full(len(waits), -1, dtype=np.int64)
    place_of[one] = np.arange(len(one))
    sender = waits.sender[one]
    return np.where(sender >= 0, place_of[sender], -1)


def _order(
    rank: NDArray[np.int64], meets: Sequence[tuple[int, ...]], sender: NDArray[np.int64]
) -> tuple[tuple[tuple[int, ...], int], ...] | None:
    """Returns the waits in an order in which each can begin; None where they wait in a circle."""
    count = len(rank)
    of = {each: together for together in meets for each in together}
    is_last = np.diff(rank, append=-1) != 0
    receiver = {int(send): at for at, send in enumerate(sender.tolist()) if send >= 0}
    lacks = {together[0]: len(together) for together in meets}
    is_reached, is_sent = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    ready = deque(np.flatnonzero(np.diff(rank, prepend=-1) != 0).tolist())
    order = list[tuple[tuple[int, ...], int]]()
    done = 0
    while ready:
        at = ready.popleft()
        is_reached[at] = True
        together = of.get(at, (at,))
        if len(together) > 1:
            lacks[together[0]] -= 1
            if lacks[together[0]]:
                continue
        needs = int(sender[at])
        if needs >= 0 and not is_sent[needs]:
            continue
        order.append((together, needs))
        done += len(together)
        for each in together:
            is_sent[each] = True
            waiting = receiver.get(each, -1)
            if waiting >= 0 and is_reached[waiting]:
                ready.append(waiting)
            if not is_last[each]:
                ready.append(each + 1)
    return tuple(order) if done == count else None
