"""Eager 1F1B: 1F1B with twice the warm-up, which hides the time of messages.

    p = 4 ranks, m = 8: rank r warms up with 2 (p - 1 - r) forwards instead of p - 1 - r

    rank 0  F0 F1 F2 F3 F4 F5 F6 B0 F7 B1 B2 ...    keeps min(m, 2 (p - r) - 1) activations
    rank 3  F0 B0 F1 B1 ...                         as 1F1B

At no latency it is exactly as fast as 1F1B. With a latency c a hop, 1F1B pays about 2c in
every steady step, eager 1F1B only 2 (p - 1) c in all (exact while 2c <= f + b). It is what
PyTorch's ``ScheduleInterleaved1F1B`` runs with one stage a rank.
"""

from __future__ import annotations

from serried.action import ActionKind
from serried.pipeline.packed import work
from serried.pipeline.placement import loop
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.sizes import some_of_each
from serried.pipeline.schedules.turns import one_each


def eager_one_f_one_b(num_ranks: int, num_microbatches: int) -> Schedule:
    """Returns the schedule for any number of microbatches.

    >>> [" ".join(map(str, actions)) for actions in eager_one_f_one_b(2, 3)]
    ['0F0 0F1 0F2 0B0 0B1 0B2', '1F0 1B0 1F1 1B1 1F2 1B2']
    """
    some_of_each("eager-1f1b", num_ranks, num_microbatches)
    m = range(num_microbatches)
    ranks = [
        one_each(work(ActionKind.F, r, m), work(ActionKind.B, r, m), warmup=2 * (num_ranks - 1 - r))
        for r in range(num_ranks)
    ]
    return Schedule.of("eager-1f1b", loop(num_ranks), num_microbatches, ranks)
