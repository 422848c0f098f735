"""ZB-H2: ZB-H1 with twice the warm-up and twice the delay, at twice the memory.

    p = 3, m = 5, all times one slot

    rank 0  F0 F1 F2 F3 F4 I0 W0 I1 W1 I2 W2 I3 W3 I4 W4
    rank 1   . F0 F1 F2 I0 F3 I1 F4 I2 W0 I3 W1 I4 W2 W3 W4
    rank 2   .  . F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 W0 W1 W2 W3 W4

No rank is idle between its first and its last action when f = i = w and messages are free:
the schedule is a parallelogram. The makespan still has p - 1 idle slots a rank, so ZB-H2 is
free of bubbles only where no rank waits for the others at the end of the step. Window idle
(p - 1)(f + i - 2w) for w <= min(f, i) where that is positive. Rule: arXiv 2401.10241.
"""

from __future__ import annotations

from serried.action import ActionKind
from serried.pipeline.packed import work
from serried.pipeline.placement import loop
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.sizes import at_least, some_of_each
from serried.pipeline.schedules.turns import late_weights


def zb_h2(num_ranks: int, num_microbatches: int) -> Schedule:
    """Returns the schedule; raises InputError for fewer than 2p - 1 microbatches.

    >>> [" ".join(map(str, actions)) for actions in zb_h2(2, 3)]
    ['0F0 0F1 0F2 0I0 0W0 0I1 0W1 0I2 0W2', '1F0 1I0 1F1 1I1 1F2 1I2 1W0 1W1 1W2']
    """
    some_of_each("zb-h2", num_ranks, num_microbatches)
    at_least("zb-h2", "microbatches", num_microbatches, 2 * num_ranks - 1)
    ranks = [
        late_weights(
            *(work(kind, rank, range(num_microbatches)) for kind in _HALVES),
            warmup=2 * (num_ranks - 1 - rank),
            delay=2 * rank,
        )
        for rank in range(num_ranks)
    ]
    return Schedule.of("zb-h2", loop(num_ranks), num_microbatches, ranks)


_HALVES = (ActionKind.F, ActionKind.I, ActionKind.W)
