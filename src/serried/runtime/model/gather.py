"""All-gather attention: every rank gathers all keys and values and attends with its own queries.

    forward    K V of a rank ──all-gather──> K V of the sequence ──attention──> its queries' output
    backward   gradients of all K V ──reduce-scatter (sum)──> those of the rank's own

Shards are zig-zag, and each of a rank's two pieces sees keys only up to its own end:

    cp 2      keys   0   1   2   3          queries of rank 0: pieces 0 and 3
    piece 0        [ d |   |   |   ]                            1 + 4 blocks
    piece 3        [ # | # | # | d ]        queries of rank 1: pieces 1 and 2
    pieces 1 2                                                  2 + 3 blocks (d: half of one)

Llama 3 trains so (arXiv 2407.21783, section 3.3.2): with few KV heads, all keys and values are
small beside the rest. Memory a rank: O(sequence) for K and V.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional

from serried.runtime.job.shards import pieces_per_rank, places
from serried.runtime.model.exchange import all_gather


def gather_attention(q: Tensor, k: Tensor, v: Tensor, group: dist.ProcessGroup) -> Tensor:
    """Attends causally over zig-zag shards (batch, heads, sequence / cp, head size).

    K and V may have fewer heads, and are gathered with as many as they have. All ranks of the
    group call it, and so they do in backward.
    """
    rank, cp = dist.get_rank(group), dist.get_world_size(group)
    seq_len = q.shape[2] * cp
    whole = _in_order(all_gather(torch.stack((k, v)), group), seq_len)
    pieces = places("all-gather", seq_len=seq_len, rank=rank, cp=cp)
    parts = [
        _attend(part, *whole[..., : piece.stop, :])
        for part, piece in zip(q.chunk(len(pieces), dim=2), pieces, strict=True)
    ]
    return torch.cat(parts, dim=2)


def _attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attends with queries that stand at the last places of the keys."""
    length, seen = q.shape[2], k.shape[2]
    visible = torch.ones(length, seen, dtype=torch.bool, device=q.device).tril(seen - length)
    return functional.scaled_dot_product_attention(
        q, k, v, attn_mask=visible, enable_gqa=q.shape[1] != k.shape[1]
    )


def _in_order(kv: Tensor, seq_len: int) -> Tensor:
    """Joins the ranks' shards (cp, 2, batch, heads, sequence / cp, d) in the sequence's order."""
    cp = len(kv)
    pieces = {
        piece.start: part
        for rank, shard in enumerate(kv)
        for piece, part in zip(
            places("all-gather", seq_len=seq_len, rank=rank, cp=cp),
            shard.chunk(pieces_per_rank("all-gather", cp), dim=-2),
            strict=True,
        )
    }
    return torch.cat([pieces[start] for start in sorted(pieces)], dim=-2)
