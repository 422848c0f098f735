"""DualPipeV: DualPipe cut in half; two stages a rank, placed down and up again.

    p = 2 ranks, m = 4; rank 0 has stages 0 and 3, rank 1 has 1 and 2

    rank 0  0F0 0F1 0F2 3F0 3I0 3W0 3F1 (0F3;3B1) (3F2;0B0) 3B2 (3F3;0B1) 3B3 0I2 0W2 0I3 0W3
    rank 1  1F0 2F0 1F1 2F1 1F2 2B0 (2F2;1B0) (1F3;2B1) (2F3;1B1) 2B2 1B2 2I3 1I3 2W3 1W3

The mirror half of DualPipe is folded onto the same ranks, so one copy of the parameters is
enough. Idle (p - 1)(FB + b - 3w), FB the time of an overlapped pair; 2p + 1 chunks. Rule:
PyTorch's ``ScheduleDualPipeV`` and deepseek-ai/DualPipe; works for odd p too.
"""

from __future__ import annotations

from serried.pipeline.placement import zigzag
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.dual import eight_steps
from serried.pipeline.schedules.sizes import at_least, some_of_each


def dualpipev(num_ranks: int, num_microbatches: int) -> Schedule:
    """Returns the schedule for at least as many microbatches as stages, 2p.

    >>> print(*dualpipev(1, 2)[0])
    0F0 1F0 0F1 1B0 (1F1;0B0)OVERLAP_F_B 1B1 0I1 0W1
    """
    some_of_each("dualpipev", num_ranks, num_microbatches)
    at_least("dualpipev", "microbatches", num_microbatches, 2 * num_ranks)
    ranks = [
        eight_steps(
            before_turn=num_ranks - 1 - rank,
            after_start=rank,
            microbatches=num_microbatches,
            lanes=((rank, 0), (2 * num_ranks - 1 - rank, 0)),
        )
        for rank in range(num_ranks)
    ]
    return Schedule.of("dualpipev", zigzag(num_ranks), num_microbatches, ranks)
