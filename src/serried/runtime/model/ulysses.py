"""Ulysses: an all-to-all turns shards of the sequence into shards of the heads, and back.

    before   rank 0: all heads,  places 0 … 7         after   rank 0: heads 0 1, all places
             rank 1: all heads,  places 8 … 15                rank 1: heads 2 3, all places

              q k v ──all-to-all──> whole sequences ──attention──> all-to-all ──> shards

Q, K and V go in one message. In between every rank attends as one process does, so any
attention kernel fits. Jacobs et al.: DeepSpeed Ulysses (arXiv 2309.14509). Needs whole heads
and KV heads on each rank; memory O(sequence * heads / cp).
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional

from serried.runtime.job.shards import ContextSizes
from serried.runtime.model.exchange import all_to_all


def ulysses_attention(q: Tensor, k: Tensor, v: Tensor, group: dist.ProcessGroup) -> Tensor:
    """Attends causally over contiguous shards (batch, heads, sequence / cp, head size).

    All ranks of the group call it. Raises InputError when cp does not divide the heads and the
    KV heads.
    """
    cp, heads, kv_heads = dist.get_world_size(group), q.shape[1], k.shape[1]
    ContextSizes("ulysses", cp, q.shape[2] * cp, heads, kv_heads)
    # Rank j gets its heads of q, of k and of v, one after another.
    parts = [
        torch.cat(each, dim=1) for each in zip(*(x.chunk(cp, 1) for x in (q, k, v)), strict=True)
    ]
    whole = _to_heads(torch.stack(parts), group)
    sizes = [heads // cp, kv_heads // cp, kv_heads // cp]
    q, k, v = torch.split(whole, sizes, dim=1)
    mixed = functional.scaled_dot_product_attention(
        q, k, v, is_causal=True, enable_gqa=heads != kv_heads
    )
    return _to_sequence(mixed, group)


def _to_heads(parts: Tensor, group: dist.ProcessGroup) -> Tensor:
    """Turns (cp, batch, heads / cp, sequence / cp, d), a part for each rank, to whole sequences."""
    ones = [1] * len(parts)
    arrived = all_to_all(parts, group, ones, ones)
    return torch.cat(list(arrived), dim=2)


def _to_sequence(x: Tensor, group: dist.ProcessGroup) -> Tensor:
    """Turns (batch, heads / cp, sequence, d) to (batch, heads, sequence / cp, d)."""
    cp = dist.get_world_size(group)
    arrived = all_to_all(torch.stack(x.chunk(cp, dim=2)), group, [1] * cp, [1] * cp)
    return torch.cat(list(arrived), dim=1)
