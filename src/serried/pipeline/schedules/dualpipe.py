"""DualPipe: microbatches flow both ways, and forwards overlap backwards of the other way.

    p = 2 ranks, m = 4, two each way; rank 0 has stage 0 of direction 0 and stage 1 of 1

    rank 0  0:0F0 1:1F0 0:0F1 1:1B0 (1:1F1;0:0B0) 1:1B1 0:0I1 0:0W1
    rank 1  1:0F0 0:1F0 1:0F1 0:1B0 (0:1F1;1:0B0) 0:1B1 1:0I1 1:0W1

Idle (p/2 - 1)(FB + b - 3w), FB the time of an overlapped pair; p + 1 activations and two
copies of the parameters a rank. Rule: arXiv 2412.19437, deepseek-ai/DualPipe.
"""

from __future__ import annotations

from serried.pipeline.placement import both_ways
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.dual import eight_steps
from serried.pipeline.schedules.sizes import at_least, multiple_of, some_of_each


def dualpipe(num_ranks: int, num_microbatches: int) -> Schedule:
    """Returns the schedule for an even number of ranks and at least 2p microbatches, also even.

    >>> print(*dualpipe(2, 4)[0])
    0:0F0 1:1F0 0:0F1 1:1B0 (1:1F1;0:0B0)OVERLAP_F_B 1:1B1 0:0I1 0:0W1
    """
    some_of_each("dualpipe", num_ranks, num_microbatches)
    multiple_of("dualpipe", "ranks", num_ranks, 2)
    at_least("dualpipe", "microbatches", num_microbatches, 2 * num_ranks)
    multiple_of("dualpipe", "microbatches", num_microbatches, 2)
    ranks = []
    for rank in range(num_ranks):
        from_end = min(rank, num_ranks - 1 - rank)
        near = int(rank >= num_ranks // 2)
        lanes = [(rank, 0), (num_ranks - 1 - rank, 1)]
        ranks.append(
            eight_steps(
                before_turn=num_ranks // 2 - 1 - from_end,
                after_start=from_end,
                microbatches=num_microbatches // 2,
                lanes=(lanes[near], lanes[1 - near]),
            )
        )
    return Schedule.of("dualpipe", both_ways(num_ranks), num_microbatches, ranks)
