"""The binomial tree: in each step everybody who has it sends it on, twice as many as before.

    broadcast over 8 ranks from rank 0; the farthest first, so that nodes are crossed early

    step 0   0 ───────────────> 4
    step 1   0 ─────> 2         4 ─────> 6
    step 2   0 > 1    2 > 3     4 > 5    6 > 7

Places count from the root, so that any rank can be it: place v is position root + v modulo n. A
scatter sends along the same tree only what lies below, blocks v to the end of v's subtree; n need
be no power of two, a subtree that the ranks do not fill is smaller. Backwards a broadcast is a
reduce and a scatter a gather.

⌈log2 n⌉ steps: the fewest there can be, but the root of a broadcast sends S in each of them, so
that large buffers do better in a chain.

Source: Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005, MPICH's choice for small messages.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from serried.collective.algorithm import Collective
from serried.collective.entry import AlgorithmEntry, CollectiveRequest, others
from serried.collective.step import CollectiveStep, CollectiveSteps, Integers


def binomial_broadcast(num_ranks: int, root: int) -> CollectiveSteps:
    """Returns ⌈log2 n⌉ steps over one block, from position ``root`` to all.

    >>> [step.target.tolist() for step in binomial_broadcast(6, 0)]
    [[4], [2], [1, 3, 5]]
    """

    def step(index: int) -> CollectiveStep:
        place, far = _senders(num_ranks, index)
        source = (root + place) % num_ranks
        return CollectiveStep.of(source, (source + far) % num_ranks, 0)

    return CollectiveSteps(_rounds(num_ranks), step)


def binomial_scatter(num_ranks: int, root: int) -> CollectiveSteps:
    """Returns ⌈log2 n⌉ steps over n blocks, from position ``root``; block p goes to position p.

    >>> [(step.first.tolist(), step.count.tolist()) for step in binomial_scatter(6, 0)]
    [([4], [2]), ([2], [2]), ([1, 3, 5], [1, 1, 1])]
    """

    def step(index: int) -> CollectiveStep:
        place, far = _senders(num_ranks, index)
        source, target = ((root + each) % num_ranks for each in (place, place + far))
        return CollectiveStep.of(
            source, target, target, count=np.minimum(far, num_ranks - place - far)
        )

    return CollectiveSteps(_rounds(num_ranks), step)


def _senders(num_ranks: int, index: int) -> tuple[Integers, int]:
    """Returns the places that send in a step, and how far."""
    far = 1 << (_rounds(num_ranks) - 1 - index)
    return np.arange(0, num_ranks - far, 2 * far, dtype=np.int64), far


def _rounds(num_ranks: int) -> int:
    """Returns the base-2 logarithm, rounded up."""
    return (num_ranks - 1).bit_length()


def _make(asked: CollectiveRequest) -> Collective:
    n = asked.group.size
    if asked.name in ("broadcast", "reduce"):
        blocks, steps = 1, binomial_broadcast(n, asked.root)
        steps = steps if asked.name == "broadcast" else steps.backwards()
    else:
        blocks, steps = n, binomial_scatter(n, asked.root)
        steps = steps if asked.name == "scatter" else steps.turned()
    return Collective(asked.name, asked.algorithm, asked.group, blocks, steps, asked.root)


def _share_of_gather(made: Collective) -> Fraction:
    # The two largest subtrees below the root: the last one, which ranks may not fill, and the next.
    n, power = made.group.size, 1 << (_rounds(made.group.size) - 1)
    return Fraction(max(n - power, power // 2), n)


def _num_steps(made: Collective) -> int:
    return _rounds(made.group.size)


_SOURCE = "Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005"

ENTRIES = (
    AlgorithmEntry(
        collective="broadcast",
        name="tree",
        make=_make,
        about="Every rank that has the buffer sends it on, to twice as many in each step.",
        formula="⌈log2 n⌉ S by the root, ⌈log2 n⌉ steps",
        share_sent=lambda made: Fraction(_rounds(made.group.size)),
        num_steps=_num_steps,
        source=_SOURCE,
    ),
    AlgorithmEntry(
        collective="reduce",
        name="tree",
        make=_make,
        about="Pairs of sums become one in each step, until the root has the only one.",
        formula="S, ⌈log2 n⌉ steps",
        share_sent=lambda made: Fraction(1),
        num_steps=_num_steps,
        source=_SOURCE,
    ),
    AlgorithmEntry(
        collective="scatter",
        name="tree",
        make=_make,
        about="Each rank sends half of what it has to the rank half as far away.",
        formula="(n - 1) / n S by the root, ⌈log2 n⌉ steps",
        share_sent=others,
        num_steps=_num_steps,
        source=_SOURCE,
    ),
    AlgorithmEntry(
        collective="gather",
        name="tree",
        make=_make,
        about="Each rank hands all that it has gathered to the rank above it, the root last.",
        formula="S / 2 where n is a power of two, else below S / 2; ⌈log2 n⌉ steps",
        share_sent=_share_of_gather,
        num_steps=_num_steps,
        source=_SOURCE,
    ),
)
