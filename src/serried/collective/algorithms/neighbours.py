"""Neighbours: every rank but the last sends one message to the next, as stages of a pipeline do.

    4 ranks     0 ─0─> 1 ─1─> 2 ─2─> 3        activations; gradients go the other way

S is one message, so that the link of every rank but the last carries S. nccl-tests' sendrecv closes
the row to a ring, and counts the same S.

Source: Megatron-LM, core/pipeline_parallel/p2p_communication.py (send_forward_recv_forward).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from serried.collective.algorithm import Collective
from serried.collective.entry import AlgorithmEntry, CollectiveRequest
from serried.collective.step import CollectiveStep, CollectiveSteps


def to_the_next(num_ranks: int) -> CollectiveSteps:
    """Returns one step, in which position p sends block p to p + 1.

    >>> [(step.source.tolist(), step.target.tolist()) for step in to_the_next(4)]
    [([0, 1, 2], [1, 2, 3])]
    """
    rank = np.arange(num_ranks - 1)
    return CollectiveSteps.listed([CollectiveStep.of(rank, rank + 1, rank)])


def _make(asked: CollectiveRequest) -> Collective:
    messages = asked.group.size - 1
    return Collective(
        asked.name,
        asked.algorithm,
        asked.group,
        messages,
        to_the_next(asked.group.size),
        num_buffers=messages,
    )


ENTRIES = (
    AlgorithmEntry(
        collective="send-receive",
        name="neighbours",
        make=_make,
        about="Each rank sends a message to the next one, as stages of a pipeline do.",
        formula="S, 1 step",
        share_sent=lambda made: Fraction(1),
        num_steps=lambda made: 1,
        source="Megatron-LM, core/pipeline_parallel/p2p_communication.py",
    ),
)
