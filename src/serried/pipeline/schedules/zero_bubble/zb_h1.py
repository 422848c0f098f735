"""ZB-H1: 1F1B with the weight half of each backward put off, at the memory of 1F1B.

    p = 4, m = 4, all times one slot (capital: weight half)

    rank 0  F0 F1 F2 F3  .  .  . I0 W0 I1 W1 I2 W2 I3 W3
    rank 1   . F0 F1 F2  .  . I0 F3 I1 W0 I2 W1 I3 W2 W3
    rank 2   .  . F0 F1  . I0 F2 I1 F3 I2 W0 I3 W1 W2 W3
    rank 3   .  .  . F0 I0 F1 I1 F2 I2 F3 I3 W0 W1 W2 W3

Rank r runs W(k - r) right after I(k): the later a rank sits, the longer its weight halves
wait, so that they fill what would be its cool-down. Idle (p - 1)(f + i - w), exact for
w <= min(f, i) and m >= p. Counted to W every rank keeps min(m, p) activations. Rule: arXiv
2401.10241; equal to PyTorch's ``ScheduleInterleavedZeroBubble`` with one stage a rank.
"""

from __future__ import annotations

from serried.action import ActionKind
from serried.pipeline.packed import work
from serried.pipeline.placement import loop
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.sizes import some_of_each
from serried.pipeline.schedules.turns import late_weights


def zb_h1(num_ranks: int, num_microbatches: int) -> Schedule:
    """Returns the schedule for any number of microbatches.

    >>> [" ".join(map(str, actions)) for actions in zb_h1(2, 2)]
    ['0F0 0F1 0I0 0W0 0I1 0W1', '1F0 1I0 1F1 1I1 1W0 1W1']
    """
    some_of_each("zb-h1", num_ranks, num_microbatches)
    ranks = [
        late_weights(
            *(work(kind, rank, range(num_microbatches)) for kind in _HALVES),
            warmup=num_ranks - 1 - rank,
            delay=rank,
        )
        for rank in range(num_ranks)
    ]
    return Schedule.of("zb-h1", loop(num_ranks), num_microbatches, ranks)


_HALVES = (ActionKind.F, ActionKind.I, ActionKind.W)
