"""Recursive doubling and halving: partners twice as far away, and twice the bytes, each step.

    all-gather, 8 ranks             what position 0 holds
    step 0   0-1 2-3 4-5 6-7        0 1
    step 1   0-2 1-3 4-6 5-7        0 1 2 3
    step 2   0-4 1-5 2-6 3-7        0 1 2 3 4 5 6 7

Reduce-scatter is the same backwards (halving), and all-reduce both (Rabenseifner): the bytes of a
ring, (n - 1) / n S or 2 (n - 1) / n S, in log2 n or 2 log2 n steps. Half of the bytes go the
farthest way, and partners across nodes exchange them all at once.

Where n is no power of two, an all-gather goes as Bruck's does: position p hands what it has
gathered to p - 1, then p - 2, p - 4, …, and the last step carries what is left.

    5 ranks, what position 0 holds    step 0  0 1    step 1  0 1 2 3    step 2  0 1 2 3 4

All-reduce then folds: of the first positions so many pairs become one that a power of two is
left, which costs their first ranks another S, and two more steps.

    6 ranks     1 adds to 0, 3 adds to 2    0 2 4 5 go on as four    0 tells 1, 2 tells 3

Sources: Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005; Bruck et al., IEEE TPDS 8(11), 1997.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from serried.collective.algorithm import Collective
from serried.collective.entry import AlgorithmEntry, CollectiveRequest, others
from serried.collective.placed_group import PlacedGroup
from serried.collective.step import CollectiveStep, CollectiveSteps, Integers


def recursive_all_gather(group: PlacedGroup) -> CollectiveSteps:
    """Returns ⌈log2 n⌉ steps over n blocks, by doubling or as Bruck's where n is no power of two.

    >>> [step.target.tolist() for step in recursive_all_gather(PlacedGroup.first(4))]
    [[1, 0, 3, 2], [2, 3, 0, 1]]
    >>> [step.count.tolist() for step in recursive_all_gather(PlacedGroup.first(3))]
    [[1, 1, 1], [1, 1, 1]]
    """
    ranks = np.arange(group.size)
    return _doubling(ranks) if _is_power_of_two(group.size) else _bruck(ranks)


def rabenseifner(group: PlacedGroup) -> CollectiveSteps:
    """Returns an all-reduce over as many blocks as the power of two that n reaches.

    >>> len(rabenseifner(PlacedGroup.first(8))), len(rabenseifner(PlacedGroup.first(9)))
    (6, 8)
    """
    power = _power_within(group.size)
    folded = 2 * np.arange(group.size - power)
    rest = np.arange(2 * len(folded), group.size)
    halves = _doubling(np.concatenate([folded, rest]))
    both = halves.backwards().then(halves)
    if not len(folded):
        return both
    tell = CollectiveSteps.listed([CollectiveStep.of(folded, folded + 1, 0, count=power)])
    return tell.backwards().then(both).then(tell)


def _doubling(ranks: Integers) -> CollectiveSteps:
    """Returns the steps by which ``ranks``, a power of two of them, gather a block of each."""
    place = np.arange(len(ranks))

    def step(index: int) -> CollectiveStep:
        many = 1 << index
        return CollectiveStep.of(ranks, ranks[place ^ many], place & -many, count=many)

    return CollectiveSteps(_log2(len(ranks)), step)


def _bruck(ranks: Integers) -> CollectiveSteps:
    n = len(ranks)

    def step(index: int) -> CollectiveStep:
        far = 1 << index
        return CollectiveStep.of(ranks, (ranks - far) % n, ranks, count=min(far, n - far))

    return CollectiveSteps(_log2(n), step)


def _power_within(number: int) -> int:
    """Returns the largest power of two that is not above ``number``."""
    return 1 << (number.bit_length() - 1)


def _is_power_of_two(number: int) -> bool:
    return _power_within(number) == number


def _log2(number: int) -> int:
    """Returns the base-2 logarithm, rounded up."""
    return (number - 1).bit_length()


def _all_reduce(asked: CollectiveRequest) -> Collective:
    blocks = _power_within(asked.group.size)
    return Collective(asked.name, asked.algorithm, asked.group, blocks, rabenseifner(asked.group))


def _all_gather(asked: CollectiveRequest) -> Collective:
    gather = recursive_all_gather(asked.group)
    steps = gather if asked.name == "all-gather" else gather.backwards()
    return Collective(asked.name, asked.algorithm, asked.group, asked.group.size, steps)


def _share_of_all_reduce(made: Collective) -> Fraction:
    power, n = _power_within(made.group.size), made.group.size
    return 2 * Fraction(power - 1, power) + (power < n)


def _steps_of_all_reduce(made: Collective) -> int:
    power = _power_within(made.group.size)
    return 2 * _log2(power) + 2 * (power < made.group.size)


_SOURCE = "Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005; Bruck et al., IEEE TPDS 8(11), 1997"

ENTRIES = (
    AlgorithmEntry(
        collective="all-reduce",
        name="recursive",
        make=_all_reduce,
        about="Partners halve the distance and the bytes to sum, then double them to tell.",
        formula=(
            "2 (n - 1) / n S, 2 log2 n steps; with p < n < 2p for a power of two p, "
            "2 (p - 1) / p S + S and 2 log2 p + 2 steps"
        ),
        share_sent=_share_of_all_reduce,
        num_steps=_steps_of_all_reduce,
        source=_SOURCE,
    ),
    AlgorithmEntry(
        collective="all-gather",
        name="recursive",
        make=_all_gather,
        about="Partners exchange all that they have, twice as far away each step.",
        formula="(n - 1) / n S, ⌈log2 n⌉ steps",
        share_sent=others,
        num_steps=lambda made: _log2(made.group.size),
        source=_SOURCE,
    ),
    AlgorithmEntry(
        collective="reduce-scatter",
        name="recursive",
        make=_all_gather,
        about="Partners exchange half of what is left to sum, half as far away each step.",
        formula="(n - 1) / n S, ⌈log2 n⌉ steps",
        share_sent=others,
        num_steps=lambda made: _log2(made.group.size),
        source=_SOURCE,
    ),
)
