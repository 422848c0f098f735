"""1F1B: each stage warms up, then alternates one forward with one backward, then drains.

    p = 4 ranks, m = 8 microbatches, forward 1 slot, backward 2 (drawn as two cells)

    rank 0  0 1 2 3 . . . . . . 0 0 4 1 1 5 2 2 6 3 3 7 4 4 . 5 5 . 6 6 . 7 7
    rank 1  . 0 1 2 . . . 0 0 3 1 1 4 ...            warm-up: p - 1 - r forwards
    rank 2  . . 0 1 . 0 0 2 1 1 3 ...
    rank 3  . . . 0 0 0 1 1 1 2 ...                  idle: (p - 1) (f + b) on every rank

Rule: PipeDream-flush (arXiv 2006.09503), DAPPLE (2007.01045), and Megatron's
``forward_backward_pipelining_without_interleaving``, which runs any m.
"""

from __future__ import annotations

from fractions import Fraction

from serried.errors import InputError
from serried.span import Action, ActionKind


def one_f_one_b(num_ranks: int, num_microbatches: int) -> list[list[Action]]:
    """Returns each rank's actions in order; stage r sits on rank r.

    >>> [" ".join(map(str, actions)) for actions in one_f_one_b(2, 3)]
    ['0F0 0F1 0B0 0F2 0B1 0B2', '1F0 1B0 1F1 1B1 1F2 1B2']

    Raises InputError when a size is below one.
    """
    _check(num_ranks, num_microbatches)
    return [_rank_actions(rank, num_ranks, num_microbatches) for rank in range(num_ranks)]


def _rank_actions(rank: int, p: int, m: int) -> list[Action]:
    """Returns the actions of one of ``p`` ranks for ``m`` microbatches."""
    warmup = min(m, p - 1 - rank)
    actions = [Action(ActionKind.F, rank, i) for i in range(warmup)]
    for i in range(m - warmup):
        actions.append(Action(ActionKind.F, rank, warmup + i))
        actions.append(Action(ActionKind.B, rank, i))
    return actions + [Action(ActionKind.B, rank, i) for i in range(m - warmup, m)]


def ideal_bubble(num_ranks: int, num_microbatches: int) -> Fraction:
    """Returns the idle share of the makespan with equal stages and free messages.

    (p - 1) / (m + p - 1), p ranks and m microbatches; exact for 1F1B and GPipe
    (arXiv 2104.04473, section 2.2, given there over the ideal time as (p - 1) / m).

    >>> ideal_bubble(4, 8)
    Fraction(3, 11)
    """
    _check(num_ranks, num_microbatches)
    return Fraction(num_ranks - 1, num_microbatches + num_ranks - 1)


def _check(num_ranks: int, num_microbatches: int) -> None:
    for name, value in (("ranks", num_ranks), ("microbatches", num_microbatches)):
        if value < 1:
            raise InputError(
                "1F1B with {value} {name} cannot be; it needs at least 1", value=value, name=name
            )
