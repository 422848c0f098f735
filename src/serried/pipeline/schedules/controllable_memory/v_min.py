"""V-Min: the leanest of the V schedules, about a third of 1F1B's activations.

    slots of one microbatch, p = 4      rank 0  F0 at 0, F1 at 7, B1 at 8,  B0 at 15
                                        rank 3  F0 at 3, F1 at 4, B1 at 11, B0 at 12

Two chunks a rank, placed down and up again; each of the four passes through the ranks follows
the one before it at once, which is as soon as it can be. Where 3 divides p the passes down and
up would collide; there the backwards start two slots later. (p + 4) // 3 microbatches of
activations; idle and latency are the price. Rule: arXiv 2405.15362.
"""

from __future__ import annotations

from serried.pipeline.placement import zigzag
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.controllable_memory.building_block import Block, halved
from serried.pipeline.schedules.sizes import some_of_each


def v_min(num_ranks: int, num_microbatches: int) -> Schedule:
    """Returns the schedule for any number of microbatches.

    >>> print(*v_min(2, 2)[1])
    1F0 2F0 2I0 1I0 1F1 2F1 2W0 1W0 2I1 1I1 2W1 1W1
    """
    some_of_each("v-min", num_ranks, num_microbatches)
    ranks = halved([_block(rank, num_ranks) for rank in range(num_ranks)], num_microbatches)
    return Schedule.of("v-min", zigzag(num_ranks), num_microbatches, ranks)


def _block(r: int, p: int) -> Block:
    pause = 2 if p % 3 == 0 else 0
    return r, 2 * p - 1 - r, 2 * p + pause + r, 4 * p + pause - 1 - r
