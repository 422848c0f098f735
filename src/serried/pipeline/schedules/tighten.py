"""Tightening: work moves to earlier free slots as long as no rank holds more than the peak.

Slots are whole numbers; one rank's are kept by kind of work and by microbatch. ``building_block``
says where they come from.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass, field

F0, F1, B1, B0, W = range(5)
"""Kinds of work in the order in which one microbatch meets them; W is of no chunk yet."""

Slots = list[list[int]]
"""One rank's slots by kind, then by microbatch."""

_STEP = {F0: -1, F1: 1, B1: -1, B0: 1}
"""Where the producer of each kind of work sits, in ranks from the consumer."""


@dataclass
class Board:
    """Holds the slots of every rank while they are tightened.

    ``width`` is the slots of a backward: 1 where its weight half is work of its own, else 2.
    """

    slots: list[Slots]
    width: int = 1
    held: list[list[int]] = field(init=False)
    """Activations held on each rank after each slot."""
    peak: int = field(init=False)

    def __post_init__(self) -> None:
        self.held = [self._held(slots) for slots in self.slots]
        self.peak = max(max(held) for held in self.held)

    def _held(self, slots: Slots) -> list[int]:
        change = [0] * (1 + self.width + max(max(of_kind) for of_kind in slots))
        for kind, of_kind in enumerate(slots):
            for at in of_kind:
                if kind in (F0, F1):
                    change[at] += 1
                elif kind == W or self.width == 2:
                    change[at + self._width(kind) - 1] -= 1
        held, now = [], 0
        for each in change:
            now += each
            held.append(now)
        return held

    def _width(self, kind: int) -> int:
        return self.width if kind in (B1, B0) else 1

    def tighten(self, *, all_of_it: bool = False) -> None:
        """Moves work of the fill and the drain, or all, to earlier free slots at no more memory."""
        taken: list[set[int]] = [set() for _ in self.slots]
        backwards: list[list[int]] = [[] for _ in self.slots]
        for phase, (old, rank, kind, microbatch) in phases(self.slots):
            new = old
            if all_of_it or phase != STEADY:
                earliest = ready(self.slots, rank, kind, microbatch, self.width, backwards[rank])
                if kind in (F0, F1):
                    earliest = max(earliest, self._room(rank, old))
                new = self._free(taken[rank], earliest, old, self._width(kind))
                self._move(rank, kind, microbatch, new)
            taken[rank].update(range(new, new + self._width(kind)))
            if kind in (B1, B0):
                insort(backwards[rank], new)

    def _room(self, rank: int, old: int) -> int:
        """Returns the first slot from which on one activation more fits under the peak."""
        held = self.held[rank]
        while old and held[old - 1] < self.peak:
            old -= 1
        return old

    @staticmethod
    def _free(taken: set[int], earliest: int, old: int, width: int) -> int:
        """Returns the first free place from ``earliest`` on, at the latest the old one."""
        for at in range(earliest, old):
            if at not in taken and (width == 1 or (at + 1 not in taken and at + 1 != old)):
                return at
        return old

    def _move(self, rank: int, kind: int, microbatch: int, new: int) -> None:
        old = self.slots[rank][kind][microbatch]
        self.slots[rank][kind][microbatch] = new
        last = self._width(kind) - 1
        if kind in (F0, F1):
            for at in range(new, old):
                self.held[rank][at] += 1
        elif kind == W or self.width == 2:
            for at in range(new + last, old + last):
                self.held[rank][at] -= 1


FILL, STEADY, DRAIN = range(3)

Place = tuple[int, int, int, int]
"""Slot, rank, kind and microbatch of one piece of work."""


def in_order(board: list[Slots]) -> list[Place]:
    """Returns all work, earliest first."""
    return sorted(
        (at, rank, kind, microbatch)
        for rank, slots in enumerate(board)
        for kind, of_kind in enumerate(slots)
        for microbatch, at in enumerate(of_kind)
    )


def phases(board: list[Slots]) -> Iterator[tuple[int, Place]]:
    """Returns all work in order, each with its phase.

    The fill ends when the first microbatch is through, the drain begins when the last is in.
    """
    phase, last = FILL, len(board[0][F0]) - 1
    for place in in_order(board):
        _, rank, kind, microbatch = place
        if phase == FILL and kind == B0 and rank == 0:
            phase = STEADY
        yield phase, place
        if phase == STEADY and kind == F0 and microbatch == last:
            phase = DRAIN


def ready(
    board: list[Slots], rank: int, kind: int, microbatch: int, width: int, backwards: list[int]
) -> int:
    """Returns the first slot after all that a piece of work needs.

    ``backwards`` are the slots of the rank's backwards so far; the k-th weight half waits for
    the k-th of them.
    """
    slots = board[rank]
    after = slots[kind][microbatch - 1] + 1 if microbatch else 0
    if kind == W:
        return max(after, backwards[microbatch] + 1)
    beside = rank + _STEP[kind]
    if 0 <= beside < len(board):
        after = max(after, board[beside][kind][microbatch] + (width if kind in (B1, B0) else 1))
    if kind > F0:
        after = max(after, slots[kind - 1][microbatch] + (width if kind == B0 else 1))
    return after


class Drain:
    """Tightens the drain once more, with the weight halves free to fall into any gap.

    A rank's slots are read as a strip of 0 (free), +1 (forward) and -1 (input half): a free slot
    takes a weight half, if one is left to do, and lets an activation go.
    """

    def __init__(self, board: list[Slots]) -> None:
        self.slots = board
        self._strip = [self._read(slots) for slots in board]
        self._before = [self._walk(strip) for strip in self._strip]
        self.peak = max(held for before in self._before for held, _ in before)

    @staticmethod
    def _read(slots: Slots) -> list[int]:
        strip = [0] * (1 + max(of_kind[-1] for of_kind in slots))
        for kind, of_kind in enumerate(slots):
            for at in of_kind:
                strip[at] = 1 if kind in (F0, F1) else -1
        return strip

    @staticmethod
    def _walk(strip: list[int]) -> list[tuple[int, int]]:
        """Returns the activations held and the weight halves left to do before each slot."""
        states = [(0, 0)]
        for what in strip:
            states.append(_after(states[-1], what))
        return states

    def tighten(self) -> None:
        """Moves work of the drain to its earliest free slot at no more memory."""
        for phase, (old, rank, kind, microbatch) in phases(self.slots):
            if phase == DRAIN:
                earliest = ready(self.slots, rank, kind, microbatch, 1, [])
                strip = self._strip[rank]
                free = (at for at in range(earliest, old) if not strip[at])
                new = next((at for at in free if self._moved(rank, old, at)), old)
                self.slots[rank][kind][microbatch] = new

    def _moved(self, rank: int, old: int, new: int) -> bool:
        """Moves what is at ``old`` to ``new`` unless a peak would rise; says whether it did."""
        strip, before = self._strip[rank], self._before[rank]
        strip[new], strip[old] = strip[old], 0
        states = [before[new]]
        for at in range(new, len(strip)):
            states.append(_after(states[-1], strip[at]))
            if states[-1][0] > self.peak:
                strip[old], strip[new] = strip[new], 0
                return False
            if at > old and states[-1] == before[at + 1]:
                break
        before[new : new + len(states)] = states
        return True


def _after(state: tuple[int, int], what: int) -> tuple[int, int]:
    held, to_do = state
    if what > 0:
        return held + 1, to_do
    if what < 0:
        return held, to_do + 1
    return (held - 1, to_do - 1) if to_do else state


def with_weights(slots: Slots) -> Slots:
    """Returns one rank's slots with its weight halves in the free ones, of no chunk yet."""
    of_stage_1, of_stage_0 = split_weights(slots)
    return [*slots, sorted(of_stage_1 + of_stage_0)]


def split_weights(slots: Slots) -> tuple[list[int], list[int]]:
    """Returns the slots of the weight halves: those of stage 1 first wherever both could go."""
    kind_at = {at: kind for kind, of_kind in enumerate(slots) for at in of_kind}
    last = max(kind_at)
    to_do = [0, 0]
    found: tuple[list[int], list[int]] = ([], [])
    at = 0
    while at <= last or any(to_do):
        kind = kind_at.get(at)
        if kind in (B1, B0):
            to_do[kind - B1] += 1
        elif kind is None and any(to_do):
            chunk = 0 if to_do[0] else 1
            to_do[chunk] -= 1
            found[chunk].append(at)
        at += 1
    return found


def squeezed(board: list[Slots]) -> list[Slots]:
    """Returns the slots when every rank runs the same order with no gap but for dependencies."""
    result: list[Slots] = [[[] for _ in slots] for slots in board]
    clock = [0] * len(board)
    for _, rank, kind, microbatch in in_order(board):
        at = clock[rank]
        if kind != W:
            at = max(at, ready(result, rank, kind, microbatch, 1, []))
        result[rank][kind].append(at)
        clock[rank] = at + 1
    return result
