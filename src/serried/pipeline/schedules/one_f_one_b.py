"""1F1B: each rank warms up, then alternates one forward with one backward, then drains.

    p = 4 ranks, m = 8 microbatches, forward 1 slot, backward 2 (drawn as two cells)

    rank 0  0 1 2 3 . . . . . . 0 0 4 1 1 5 2 2 6 3 3 7 4 4 . 5 5 . 6 6 . 7 7
    rank 1  . 0 1 2 . . . . 0 0 3 1 1 4 2 2 5 3 3 6 4 4 7 5 5 . 6 6 . 7 7 . .
    rank 2  . . 0 1 . . 0 0 2 1 1 3 2 2 4 3 3 5 4 4 6 5 5 7 6 6 . 7 7 . . . .
    rank 3  . . . 0 0 0 1 1 1 2 2 2 3 3 3 4 4 4 5 5 5 6 6 6 7 7 7 . . . . . .

Warm-up of rank r: p - 1 - r forwards. Every rank is idle for (p - 1)(f + b), as in GPipe,
but keeps at most p - r activations. Rule: PipeDream-flush (arXiv 2006.09503), DAPPLE
(2007.01045), and Megatron's ``forward_backward_pipelining_without_interleaving``, which
runs any m; PyTorch's ``Schedule1F1B`` refuses m < p.
"""

from __future__ import annotations

from fractions import Fraction

from serried.action import ActionKind
from serried.pipeline.packed import work
from serried.pipeline.placement import loop
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.sizes import some_of_each
from serried.pipeline.schedules.turns import one_each


def one_f_one_b(num_ranks: int, num_microbatches: int) -> Schedule:
    """Returns the schedule; stage r sits on rank r.

    >>> [" ".join(map(str, actions)) for actions in one_f_one_b(2, 3)]
    ['0F0 0F1 0B0 0F2 0B1 0B2', '1F0 1B0 1F1 1B1 1F2 1B2']

    Raises InputError when a size is below one.
    """
    some_of_each("1f1b", num_ranks, num_microbatches)
    m = range(num_microbatches)
    ranks = [
        one_each(work(ActionKind.F, r, m), work(ActionKind.B, r, m), warmup=num_ranks - 1 - r)
        for r in range(num_ranks)
    ]
    return Schedule.of("1f1b", loop(num_ranks), num_microbatches, ranks)


def ideal_bubble(num_ranks: int, num_microbatches: int) -> Fraction:
    """Returns the idle share of the makespan with equal stages and free messages.

    (p - 1) / (m + p - 1), p ranks and m microbatches; exact for 1F1B and GPipe
    (arXiv 2104.04473, section 2.2, given there over the ideal time as (p - 1) / m).

    >>> ideal_bubble(4, 8)
    Fraction(3, 11)
    """
    some_of_each("1f1b", num_ranks, num_microbatches)
    return Fraction(num_ranks - 1, num_microbatches + num_ranks - 1)
