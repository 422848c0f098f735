"""What each collective takes and gives as torch.distributed counts it: blocks in a row.

collective       a rank's input                      a rank's result
all-reduce       all blocks                          all blocks
all-gather       its own blocks                      all blocks, owner by owner
reduce-scatter   all blocks, owner by owner          its own blocks
all-to-all       its own blocks, for 0, 1, 2, …      blocks for it, from 0, 1, 2, …
broadcast        the root: all blocks                all blocks
reduce           all blocks                          the root: all blocks
gather           its own blocks                      the root: all blocks, owner by owner
scatter          the root: all blocks, by owner      its own blocks
send-receive     its block; the last: none           the one before's; the first: none
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from serried.collective.algorithm import Collective

ADDS = ("all-reduce", "reduce-scatter", "reduce")
"""Collectives whose results depend on the order of summation, where numbers are not whole."""


def blocks_taken(collective: Collective, position: int) -> list[int]:
    """Returns the blocks that a rank's input is made of, in its order.

    >>> from serried.collective.placed_group import PlacedGroup
    >>> from serried.collective.registry import make
    >>> gather = make("all-gather", "ring", PlacedGroup.first(4, gpus_per_node=2))
    >>> blocks_taken(gather, 1)
    [2, 3]
    """
    everything, own = _by_owner(collective, position)
    is_root = position == collective.root
    return {
        "all-reduce": everything,
        "reduce": everything,
        "reduce-scatter": everything,
        "broadcast": everything if is_root else [],
        "scatter": everything if is_root else [],
    }.get(collective.name, own)


def blocks_given(collective: Collective, position: int) -> list[int]:
    """Returns the blocks that a rank's result is made of, in its order.

    >>> from serried.collective.placed_group import PlacedGroup
    >>> from serried.collective.registry import make
    >>> blocks_given(make("all-to-all", "pairwise", PlacedGroup.first(3)), 1)
    [1, 4, 7]
    """
    everything, own = _by_owner(collective, position)
    n, is_root = collective.group.size, position == collective.root
    return {
        "reduce-scatter": own,
        "scatter": own,
        "reduce": everything if is_root else [],
        "gather": everything if is_root else [],
        "all-to-all": list(range(position, n * n, n)),
        "send-receive": [position - 1] if position else [],
    }.get(collective.name, everything)


def _by_owner(collective: Collective, position: int) -> tuple[list[int], list[int]]:
    owner = collective.owner
    order = np.argsort(owner, kind="stable")
    return order.tolist(), order[owner[order] == position].tolist()


def torchs_own(
    collective: Collective, given: Tensor, result: Tensor, group: dist.ProcessGroup | None
) -> Tensor:
    """Returns what torch.distributed's own collective makes of a rank's input.

    ``result`` has the shape of the answer and is written over; ``given`` stays as it is.
    """
    root = collective.group.ranks[collective.root]
    is_root = dist.get_rank() == root
    n = collective.group.size
    whole = given.clone() if len(given) else result
    runs: dict[str, Callable[[], object]] = {
        "all-reduce": lambda: dist.all_reduce(whole, group=group),
        "reduce": lambda: dist.reduce(whole, root, group=group),
        "broadcast": lambda: dist.broadcast(whole, root, group=group),
        "all-gather": lambda: dist.all_gather_single(result, given, group=group),
        "reduce-scatter": lambda: dist.reduce_scatter_single(result, given, group=group),
        "all-to-all": lambda: dist.all_to_all_single(result, given, group=group),
        "gather": lambda: dist.gather(
            given, list(result.chunk(n)) if is_root else None, root, group=group
        ),
        "scatter": lambda: dist.scatter(
            result, list(given.chunk(n)) if is_root else None, root, group=group
        ),
        "send-receive": lambda: _to_the_next(given, result, group),
    }
    runs[collective.name]()
    if collective.name in ("all-reduce", "broadcast") or (collective.name == "reduce" and is_root):
        return whole
    return result


def _to_the_next(given: Tensor, result: Tensor, group: dist.ProcessGroup | None) -> None:
    position, peers = dist.get_rank(group), dist.get_process_group_ranks(group)
    has_next = position + 1 < len(peers)
    sending = dist.isend(given, peers[position + 1], group) if has_next else None
    if len(result):
        dist.recv(result, peers[position - 1], group)
    if sending is not None:
        sending.wait()


def numbers(count: int, rank: int, kind: torch.dtype, device: torch.device) -> Tensor:
    """Returns ``count`` numbers that every rank draws anew: whole ones of 20 bits, or normal."""
    draw = torch.Generator("cpu").manual_seed(0x5E44 + rank)
    made: dict[str, Any] = {"generator": draw, "dtype": kind, "device": "cpu"}
    if kind.is_floating_point:
        return torch.randn(count, **made).to(device)
    return torch.randint(-(1 << 20), 1 << 20, (count,), **made).to(device)


def as_blocks(whole: Tensor, blocks: Sequence[int], sizes: Sequence[int]) -> dict[int, Tensor]:
    """Returns a rank's input block by block."""
    return dict(zip(blocks, torch.split(whole, list(sizes)), strict=True)) if blocks else {}
