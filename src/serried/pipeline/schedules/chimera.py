"""Chimera: two 1F1B pipelines in opposite directions fill each other's gaps.

    p = 4 ranks, m = 4, two each way; direction 1 is marked by a comma, all times one slot

    rank 0  0F  .  1F ,0F ,0B ,1F ,1B  0B  .  1B           its own slots of direction 0:
    rank 1   .  0F ,0F 1F ,1F ,0B  0B ,1B  1B  .           forward  i at 2i + r
    rank 2   . ,0F  0F ,1F 1F  0B ,0B  1B ,1B  .           backward i at 2i + 2p - 1 - r
    rank 3  ,0F .  ,1F 0F  0B  1F  1B ,0B  .  ,1B          and of direction 1, mirrored

With p even the two never meet in a slot: on one rank their slots differ in parity. This is
figure 3 of arXiv 2107.06925 (D = N = 4: two idle slots a rank instead of 1F1B's six). A step
of m > p microbatches is m / p such units one after another, each 2p slots long; backward and
forward halves of neighbouring units fit into each other.

Idle (p - 2)(max(f, b) + (m/p - 1)|f - b|), for f = b the paper's (p - 2)/(2m + p - 2); two
copies of the parameters a rank.
"""

from __future__ import annotations

import numpy as np

from serried.action import ActionKind
from serried.pipeline.packed import Codes, chain, work
from serried.pipeline.placement import both_ways
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.sizes import multiple_of, some_of_each


def chimera(num_ranks: int, num_microbatches: int) -> Schedule:
    """Returns the schedule for an even number of ranks that divides the microbatches.

    >>> print(*chimera(2, 2)[0])
    0:0F0 1:1F0 1:1B0 0:0B0
    """
    some_of_each("chimera", num_ranks, num_microbatches)
    multiple_of("chimera", "ranks", num_ranks, 2)
    multiple_of("chimera", "microbatches", num_microbatches, num_ranks)
    ranks = [_rank(rank, num_ranks, num_microbatches // 2) for rank in range(num_ranks)]
    return Schedule.of("chimera", both_ways(num_ranks), num_microbatches, ranks)


def _rank(rank: int, p: int, each_way: int) -> Codes:
    # Each stage's work gets its slot by the formulas above; sorted by slot it is the rank's list.
    unit, turn = np.divmod(np.arange(each_way), p // 2)
    begin = unit * 2 * p + 2 * turn
    codes, slots = [], []
    for direction, stage in ((0, rank), (1, p - 1 - rank)):
        for kind, slot in ((ActionKind.F, stage), (ActionKind.B, 2 * p - 1 - stage)):
            codes.append(work(kind, stage, range(each_way), direction))
            slots.append(begin + slot)
    return chain(*codes)[np.argsort(chain(*slots))]
