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
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from serried.action import ActionKind
from serried.pipeline.packed import Codes, chain, work
from serried.pipeline.schedules.tighten import (
    Board,
    Drain,
    Slots,
    W,
    split_weights,
    squeezed,
    with_weights,
)

PERIOD = 6
"""Slots from one microbatch to the next: two forwards, two input halves, two weight halves."""

Block = tuple[int, int, int, int]
"""The slots of microbatch 0 on one rank: F0, F1, B1, B0."""


def repeated(block: Block, num_microbatches: int) -> Slots:
    """Returns the slots of all microbatches on one rank."""
    return [[at + PERIOD * k for k in range(num_microbatches)] for at in block]


def halved(blocks: list[Block], num_microbatches: int) -> list[Codes]:
    """Returns each rank's list when the weight halves are work of their own."""
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
    return chain(*codes)[np.argsort(np.concatenate([np.array(each) for each in slots]))]
