"""Pairwise all-to-all: in step i every rank sends to the one i + 1 places on.

    4 ranks    block s n + d is what s has for d

    step 0    0 ─01─> 1    1 ─12─> 2    2 ─23─> 3    3 ─30─> 0
    step 1    0 ─02─> 2    1 ─13─> 3    2 ─20─> 0    3 ─31─> 1
    step 2    0 ─03─> 3    1 ─10─> 0    2 ─21─> 1    3 ─32─> 2

Each rank sends and receives one block a step, so that no link is used twice at a time:
(n - 1) / n S in n - 1 steps. Blocks are S / n, small where n is large; most of them cross nodes,
and each pays its latency.

Sources: Bruck et al., IEEE TPDS 8(11), 1997 (linear); NCCL 2.x sends them all in one group.
"""

from __future__ import annotations

import numpy as np

from serried.collective.algorithm import Collective
from serried.collective.entry import AlgorithmEntry, CollectiveRequest, others
from serried.collective.step import CollectiveStep, CollectiveSteps


def pairwise_all_to_all(num_ranks: int) -> CollectiveSteps:
    """Returns n - 1 steps over n x n blocks.

    >>> [step.first.tolist() for step in pairwise_all_to_all(3)]
    [[1, 5, 6], [2, 3, 7]]
    """
    rank = np.arange(num_ranks)

    def step(index: int) -> CollectiveStep:
        target = (rank + index + 1) % num_ranks
        return CollectiveStep.of(rank, target, rank * num_ranks + target)

    return CollectiveSteps(num_ranks - 1, step)


def _make(asked: CollectiveRequest) -> Collective:
    n = asked.group.size
    return Collective(
        asked.name, asked.algorithm, asked.group, n * n, pairwise_all_to_all(n), num_buffers=n
    )


ENTRIES = (
    AlgorithmEntry(
        collective="all-to-all",
        name="pairwise",
        make=_make,
        about="Each rank sends every other one its block, one at a time, each step farther on.",
        formula="(n - 1) / n S, n - 1 steps",
        share_sent=others,
        num_steps=lambda made: made.group.size - 1,
        source="Bruck et al., IEEE TPDS 8(11), 1997",
    ),
)
