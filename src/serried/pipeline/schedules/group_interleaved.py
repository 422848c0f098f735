"""Group-interleaved: interleaved 1F1B in small groups, which trades idle time for memory.

    every rank repeats F I W; one microbatch group of G in each of v chunks takes 3 G v slots

    forward      of chunk c, microbatch g of group k    3 G (k v + c) + 3 g + r
    input half   of chunk v-1-c                         3 G (k v + c) + 3 g + first(r)
    weight half                                         one slot later
    first(r) = 3 G (v - 1) + r + 3 (p - 1 - r) + 1      once the loss has come back to rank r

On one rank forwards, input halves and weight halves have slots of different remainder by 3, so
nothing collides, and squeezing the gaps out leaves a list. Rank 0 keeps p + G chunks for v = 2,
instead of interleaved 1F1B's 3p - 1. Rule: PipeOffload (arXiv 2503.01328), whose scheduler asks
for ceil(p/2) <= G <= p.
"""

from __future__ import annotations

import numpy as np

from serried.action import ActionKind
from serried.pipeline.packed import Codes, chain, work
from serried.pipeline.placement import loop
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.sizes import at_least, groups_within, some_of_each


def group_interleaved(
    num_ranks: int, num_microbatches: int, chunks: int = 2, *, group: int | None = None
) -> Schedule:
    """Returns the schedule; ``group`` is p by default.

    >>> print(*group_interleaved(2, 2, group=1)[0])
    0F0 2F0 0F1 2I0 2W0 2F1 0I0 0W0 2I1 2W1 0I1 0W1
    """
    name = "group-interleaved"
    some_of_each(name, num_ranks, num_microbatches)
    at_least(name, "chunks", chunks, 1)
    group = num_ranks if group is None else group
    groups_within(name, group, (num_ranks + 1) // 2, num_ranks)
    ranks = [_rank(rank, num_ranks, num_microbatches, chunks, group) for rank in range(num_ranks)]
    return Schedule.of(name, loop(num_ranks, chunks), num_microbatches, ranks, group=group)


def _rank(rank: int, p: int, m: int, chunks: int, group: int) -> Codes:
    # Each chunk's work gets its slot by the formulas above; sorted by slot it is the rank's list.
    cycle, place = np.divmod(np.arange(m), group)
    codes, slots = [], []
    for turn in range(chunks):
        begin = 3 * group * (cycle * chunks + turn) + 3 * place
        first = 3 * group * (chunks - 1) + rank + 3 * (p - 1 - rank) + 1
        last = (chunks - 1 - turn) * p + rank
        codes += [
            work(ActionKind.F, turn * p + rank, range(m)),
            work(ActionKind.I, last, range(m)),
            work(ActionKind.W, last, range(m)),
        ]
        slots += [begin + rank, begin + first, begin + first + 1]
    return chain(*codes)[np.argsort(chain(*slots))]
