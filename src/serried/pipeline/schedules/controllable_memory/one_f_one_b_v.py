"""1F1B-V: two chunks a rank, placed down and up again, with whole backwards.

    slots of one microbatch, p = 4      rank 0  F0 at 0, F1 at 7, B1 at 8-9,   B0 at 28-29
                                        rank 3  F0 at 3, F1 at 4, B1 at 17-18, B0 at 19-20

The forwards pass through the ranks one slot each, the backwards two; after every third backward
three slots are left free, for else the backwards of one microbatch would meet the forwards of
another on the same rank. About two thirds of 1F1B's activations, without splitting backwards.
Rule: arXiv 2405.15362.
"""

from __future__ import annotations

from serried.pipeline.placement import zigzag
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.controllable_memory.building_block import Block, whole
from serried.pipeline.schedules.sizes import some_of_each


def one_f_one_b_v(num_ranks: int, num_microbatches: int) -> Schedule:
    """Returns the schedule for any number of microbatches.

    >>> print(*one_f_one_b_v(2, 2)[1])
    1F0 2F0 1F1 2F1 2B0 1B0 2B1 1B1
    """
    some_of_each("1f1b-v", num_ranks, num_microbatches)
    blocks = [_block(rank, num_ranks) for rank in range(num_ranks)]
    ranks = whole(blocks, num_microbatches)
    return Schedule.of("1f1b-v", zigzag(num_ranks), num_microbatches, ranks)


def _block(r: int, p: int) -> Block:
    start = 2 * p + (3 if p % 3 == 0 else 0)
    # Backward k of a microbatch, counted over both passes, has had so many pauses before it.
    early = (3 - (p + 2) % 3) % 3
    b1, b0 = (start + 2 * k + 3 * ((early + k) // 3) for k in (r, 2 * p - 1 - r))
    return r, 2 * p - 1 - r, b1, b0
