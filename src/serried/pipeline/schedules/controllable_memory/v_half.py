"""V-Half: a V schedule at half of 1F1B's activations.

    slots of one microbatch, p = 4      rank 0  F0 at 0, F1 at 10, B1 at 14, B0 at 25
                                        rank 3  F0 at 6, F1 at 7,  B1 at 20, B0 at 22

Two chunks a rank, placed down and up again; the passes down take two slots a rank, those up one.
Where p is even the backwards start three slots later, or they would collide with the forwards.
(p + 2) // 2 microbatches of activations. Free of idle slots in the steady phase for
w + 2i >= 2f and w + 2f >= 2i. Rule: arXiv 2405.15362.
"""

from __future__ import annotations

from serried.pipeline.placement import zigzag
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.controllable_memory.building_block import Block, halved
from serried.pipeline.schedules.sizes import some_of_each


def v_half(num_ranks: int, num_microbatches: int) -> Schedule:
    """Returns the schedule for any number of microbatches.

    >>> print(*v_half(2, 2)[1])
    1F0 2F0 1F1 2F1 2I0 2W0 1I0 1W0 2I1 2W1 1I1 1W1
    """
    some_of_each("v-half", num_ranks, num_microbatches)
    ranks = halved([_block(rank, num_ranks) for rank in range(num_ranks)], num_microbatches)
    return Schedule.of("v-half", zigzag(num_ranks), num_microbatches, ranks)


def _block(r: int, p: int) -> Block:
    pause = 3 if p % 2 == 0 else 0
    return 2 * r, 3 * p - 2 - r, 3 * p + pause - 1 + 2 * r, 6 * p + pause - 2 - r
