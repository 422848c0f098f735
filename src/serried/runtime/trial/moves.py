"""Runs the steps of a collective on real tensors, each move a send and a receive.

    held by position 1, ring all-reduce of 4      step 0 sends block 0 on and adds block 3:
    {0: tensor, 1: tensor, 2: tensor, 3: tensor}  {0: tensor, 1: …, 2: …, 3: own + position 0's}

All moves of a step are posted together (``batch_isend_irecv``), so that gloo and NCCL run the same
code. What is sent is what was held before the step; what arrives is added or kept in the order of
the step's moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from serried.collective.algorithm import Collective
from serried.collective.step import CollectiveStep

Held = dict[int, Tensor]
"""The blocks that a position holds, each a flat tensor."""


@dataclass(frozen=True)
class _Message:
    """Holds the blocks of one move from or to this position."""

    peer: int
    blocks: list[int]
    reduces: bool


def run_moves(
    collective: Collective,
    held: Held,
    elements: int,
    like: Tensor,
    group: dist.ProcessGroup | None = None,
) -> Held:
    """Returns what this rank holds after all steps; all ranks of the group call it together.

    A buffer has ``elements`` elements of the type and on the device of ``like``. The process group
    has the ranks of the collective's group in its order. What stands in ``held`` is left as it is.
    """
    position = dist.get_rank(group)
    peers = dist.get_process_group_ranks(group or dist.group.WORLD)
    now = dict(held)
    for step in collective.steps:
        _run_step(collective, step, position, peers, now, elements, like, group)
    return now


def elements_of(collective: Collective, blocks: Sequence[int], elements: int) -> list[int]:
    """Returns how many elements each block has, where a buffer has ``elements``."""
    return [collective.bytes_of(block, elements) for block in blocks]


def _run_step(
    collective: Collective,
    step: CollectiveStep,
    position: int,
    peers: Sequence[int],
    held: Held,
    elements: int,
    like: Tensor,
    group: dist.ProcessGroup | None,
) -> None:
    sent = _messages(collective, step, step.source == position, step.target)
    received = _messages(collective, step, step.target == position, step.source)
    # A tensor of its own for each message, so that nothing that arrives changes what is sent.
    going = [torch.cat([held[block] for block in each.blocks]) for each in sent]
    sizes = [elements_of(collective, each.blocks, elements) for each in received]
    coming = [like.new_empty(sum(size)) for size in sizes]
    posted = [
        dist.P2POp(how, tensor, peers[message.peer], group)
        for how, messages, tensors in ((dist.isend, sent, going), (dist.irecv, received, coming))
        for message, tensor in zip(messages, tensors, strict=True)
        if tensor.numel()
    ]
    for work in dist.batch_isend_irecv(posted) if posted else []:
        work.wait()
    for message, tensor, size in zip(received, coming, sizes, strict=True):
        for block, part in zip(message.blocks, torch.split(tensor, size), strict=True):
            held[block] = held[block] + part if message.reduces else part


def _messages(
    collective: Collective,
    step: CollectiveStep,
    is_own: np.ndarray[tuple[int], np.dtype[np.bool_]],
    peer: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> list[_Message]:
    """Returns the messages of the moves that are this position's, in the order of the step."""
    return [
        _Message(
            int(peer[row]),
            [
                int(step.first[row] + nth * step.stride) % collective.num_blocks
                for nth in range(int(step.count[row]))
            ],
            bool(step.reduces[row]),
        )
        for row in np.flatnonzero(is_own)
    ]
