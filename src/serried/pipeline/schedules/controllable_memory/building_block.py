"""Building blocks: the slots of one microbatch, repeated, then tightened at the same memory.

    block of V-Min, p = 4     rank 0  F0 . . . . . . F1 B1 . . . . . . B0      slots of one
                              rank 1  . F0 . . . . F1 . . B1 . . . . B0 .      microbatch
                              rank 2  . . F0 . . F1 . . . . B1 . . B0 . .      (0 down the
                              rank 3  . . . F0 F1 . . . . . . B1 B0 . . .       ranks, 1 up)

Every 6 slots the next microbatch begins; the remainders by 6 are chosen so that the blocks never
meet, which leaves the two weight halves the free slots. The time from a forward to its weight
half, counted in blocks, is the memory, so a tight block is a lean schedule. Before the first
microbatch is through and after the last has come in, less is in flight than in between: there
work moves to earlier free slots as long as no rank exceeds the peak. Rule: "Pipeline Parallelism
with Controllable Memory", arXiv 2405.15362.

    repeated     block after block, 6 slots apart
    Board        the fill and the drain move to earlier free slots at the same peak
    squeezed     what is left of gaps closes, each rank keeping its order
    Drain        the drain once more, its weight halves free to fall into any gap
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from serried.action import ActionKind
from serried.pipeline.packed import Codes, chain, work

F0, F1, B1, B0, W = range(5)
"""Kinds of work in the order in which one microbatch meets them; W is of no chunk yet."""

Slots = list[list[int]]
"""One rank's slots by kind, then by microbatch."""

PERIOD = 6
"""Slots from one microbatch to the next: two forwards, two input halves, two weight halves."""

Block = tuple[int, int, int, int]
"""The slots of microbatch 0 on one rank: F0, F1, B1, B0."""


def repeated(block: Block, num_microbatches: int) -> Slots:
    """Returns the slots of all microbatches on one rank."""
    return [[at + PERIOD * k for k in range(num_microbatches)] for at in block]


def halved(blocks: list[Block], num_microbatches: int) -> list[Codes]:
    """Returns each rank's list when the weight halves are work of their own."""
    # Whenever free slots have changed, the weight halves are taken out ([:W]) and placed anew.
    board = Board([with_weights(repeated(block, num_microbatches)) for block in blocks])
    board.tighten()
    drain = Drain([slots[:W] for slots in squeezed(board.slots)])
    drain.tighten()
    final = [slots[:W] for slots in squeezed([with_weights(slots) for slots in drain.slots])]
    return [
        _listed(rank, len(blocks), [*slots, *split_weights(slots)], _HALVED)
        for rank, slots in enumerate(final)
    ]


def whole(blocks: list[Block], num_microbatches: int) -> list[Codes]:
    """Returns each rank's list when a backward is two slots of one piece."""
    board = Board([repeated(block, num_microbatches) for block in blocks], width=2)
    board.tighten(all_of_it=True)
    return [_listed(rank, len(blocks), slots, _WHOLE) for rank, slots in enumerate(board.slots)]


_HALVED = tuple(zip("FFIIWW", (0, 1, 1, 0, 1, 0), strict=True))
_WHOLE = tuple(zip("FFBB", (0, 1, 1, 0), strict=True))


def _listed(rank: int, num_ranks: int, slots: Slots, columns: Iterable[tuple[str, int]]) -> Codes:
    stages = (rank, 2 * num_ranks - 1 - rank)
    codes = [
        work(ActionKind[kind], stages[chunk], range(len(of_kind)))
        for (kind, chunk), of_kind in zip(columns, slots, strict=True)
    ]
    return chain(*codes)[np.argsort(np.concatenate([np.array(of_kind) for of_kind in slots]))]


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
        # An activation is held from its forward's slot to the last slot of what lets it go: of the
        # weight half, or of a backward in one piece.
        change = [0] * (1 + self.width + max(max(of_kind) for of_kind in slots))
        for kind, of_kind in enumerate(slots):
            for at in of_kind:
                if kind in (F0, F1):
                    change[at] += 1
                elif kind == W or self.width == 2:
                    change[at + self._width(kind) - 1] -= 1
        return list(accumulate(change))

    def _width(self, kind: int) -> int:
        return self.width if kind in (B1, B0) else 1

    def tighten(self, *, all_of_it: bool = False) -> None:
        """Moves work of the fill and the drain, or all, to earlier free slots at no more memory."""
        taken: list[set[int]] = [set() for _ in self.slots]
        backwards: list[list[int]] = [[] for _ in self.slots]
        for phase, (old, rank, kind, microbatch) in phases(self.slots):
            # The steady phase stays as the blocks repeat. A forward moves only as far as its
            # activation fits under the peak; a backward lets one go, so it may move to wherever
            # its inputs are there.
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
        # Work only moves to earlier slots: a forward then holds its activation for longer, a weight
        # half or whole backward for less, and an input half changes nothing.
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
    # A piece comes after the microbatch before it, after the neighbour's piece that sends to it,
    # and after what this rank itself has done with the microbatch.
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
                # The first free slot may not do: a move changes which slots behind it take weight
                # halves.
                new = next((at for at in free if self._moved(rank, old, at)), old)
                self.slots[rank][kind][microbatch] = new

    def _moved(self, rank: int, old: int, new: int) -> bool:
        """Moves what is at ``old`` to ``new`` unless a peak would rise; says whether it did."""
        # Moving a piece changes which free slots take weight halves from there on, so the rest of
        # the strip is walked anew, until past the old place all is as it was before.
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
    # Slot by slot: a backward leaves a weight half to do, a free slot does one. What is left when
    # the rank's own work ends follows it without a gap.
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
        # A weight half follows its backward by the rank's own order and waits for nobody else.
        if kind != W:
            at = max(at, ready(result, rank, kind, microbatch, 1, []))
        result[rank][kind].append(at)
        clock[rank] = at + 1
    return result
