"""GPipe: all forwards, then all backwards.

    p = 4 ranks, m = 4 microbatches, forward 1 slot, backward 2 (drawn as two cells)

    rank 0  0 1 2 3 . . . . . . . . . 0 0 1 1 2 2 3 3
    rank 1  . 0 1 2 3 . . . . . . 0 0 1 1 2 2 3 3 . .
    rank 2  . . 0 1 2 3 . . . 0 0 1 1 2 2 3 3 . . . .
    rank 3  . . . 0 1 2 3 0 0 1 1 2 2 3 3 . . . . . .

Every rank is idle for (p - 1)(f + b) and keeps m activations. Rule: arXiv 1811.06965;
backwards in ascending order, as in PyTorch's ``ScheduleGPipe``.
"""

from __future__ import annotations

from serried.action import ActionKind
from serried.pipeline.packed import Codes, chain, work
from serried.pipeline.placement import loop
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.sizes import some_of_each


def gpipe(num_ranks: int, num_microbatches: int) -> Schedule:
    """Returns the schedule for any number of microbatches.

    >>> [" ".join(map(str, actions)) for actions in gpipe(2, 2)]
    ['0F0 0F1 0B0 0B1', '1F0 1F1 1B0 1B1']
    """
    some_of_each("gpipe", num_ranks, num_microbatches)
    ranks = [_rank(rank, num_microbatches) for rank in range(num_ranks)]
    return Schedule.of("gpipe", loop(num_ranks), num_microbatches, ranks)


def _rank(rank: int, m: int) -> Codes:
    return chain(work(ActionKind.F, rank, range(m)), work(ActionKind.B, rank, range(m)))
