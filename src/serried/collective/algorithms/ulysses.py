"""Ulysses: an all-to-all turns shards of the sequence into sets of heads, and another back.

    2 ranks, a block for each shard s of the sequence and set h of heads, of q, k, v and o

    before      rank 0: q00 q01 k00 k01 v00 v01     rank 1: q10 q11 k10 k11 v10 v11
    step 0      0 ── q01 k01 v01 ──> 1              1 ── q10 k10 v10 ──> 0
    step 1      rank h attends over the whole sequence with its heads: every o_h at once
    step 2      0 ── o10 ──> 1                      1 ── o01 ──> 0

Each rank sends (n - 1) / n^2 of q, k, v and o, so 2 (n - 1) / n^2 S where S is the keys and values:
the bytes fall with n, where a ring's do not. Every rank needs whole heads, so n is at most their
number (of keys and values too, unless they are repeated); all ranks work alike, causal or not.

Source: Jacobs et al., DeepSpeed Ulysses, arXiv 2309.14509.
"""

from __future__ import annotations

import numpy as np

from serried.collective.algorithm import Collective
from serried.collective.attention import SplitAttention
from serried.collective.entry import AlgorithmEntry, CollectiveRequest, others
from serried.collective.step import CollectiveStep, CollectiveSteps
from serried.errors import InputError
from serried.limits import ULYSSES_RANKS

TENSORS = 4
"""Queries, keys, values and outputs, whose blocks stand one after another."""


def ulysses(attention: SplitAttention, num_ranks: int) -> CollectiveSteps:
    """Returns n - 1 steps, one of work, and n - 1 steps back, over 4 n^2 blocks.

    >>> one = SplitAttention(np.zeros(1, int), np.zeros(1, int), np.array([-1, 0, -1, -1]), False)
    >>> [len(step) for step in ulysses(one, 1)]
    [0]
    """
    n, rank = num_ranks, np.arange(num_ranks)

    def there(index: int) -> CollectiveStep:
        target = (rank + index + 1) % n
        return CollectiveStep.of(rank, target, rank * n + target, count=3, stride=n * n)

    def back(index: int) -> CollectiveStep:
        target = (rank + index + 1) % n
        return CollectiveStep.of(rank, target, 3 * n * n + target * n + rank)

    def attend(_: int) -> CollectiveStep:
        shard, other, head = (each.ravel() for each in np.indices((n, n, n)))
        work = attention.work(head, shard * n + head, n * n + other * n + head)
        return CollectiveStep.of([], [], [], work=work)

    return (
        CollectiveSteps(n - 1, there)
        .then(CollectiveSteps(1, attend))
        .then(CollectiveSteps(n - 1, back))
    )


def _make(asked: CollectiveRequest) -> Collective:
    n = asked.group.size
    if n > ULYSSES_RANKS.most:
        raise InputError(
            "Ulysses needs heads of its own for every rank, and no model has them for {ranks} "
            "ranks; it is shown for up to {most}",
            ranks=n,
            most=ULYSSES_RANKS.most,
        )
    shard, head = (each.ravel() for each in np.indices((n, n)))
    none = np.full(n * n, -1)
    attention = SplitAttention(
        holder=head,
        query_chunk=shard,
        key_chunk=np.concatenate([none, shard, none, none]),
        is_causal=asked.is_causal,
        heads=n,
        goes_to=np.concatenate([head, head, head, shard]),
    )
    return Collective(
        asked.name,
        asked.algorithm,
        asked.group,
        TENSORS * n * n,
        ulysses(attention, n),
        # Queries and outputs are as large as keys and values together.
        num_buffers=2,
        owners=np.concatenate([shard, shard, shard, head]),
        attention=attention,
    )


ENTRIES = (
    AlgorithmEntry(
        collective="attention",
        name="ulysses",
        make=_make,
        about="An all-to-all gives each rank the whole sequence for some heads; another goes back.",
        formula="2 (n - 1) / n^2 S, 2 n - 1 steps, the middle one without a message",
        share_sent=lambda made: 2 * others(made) / made.group.size,
        num_steps=lambda made: 2 * made.group.size - 1,
        source="Jacobs et al., arXiv 2309.14509",
        takes=("causal",),
    ),
)
