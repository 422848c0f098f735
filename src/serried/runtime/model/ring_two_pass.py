"""Ring attention in two passes: all scores first (RingQK), softmax, then all values (RingAV).

    RingQK   K travels round; rank r puts q_r k_j' into column block j of its rows of scores
    softmax  each rank has whole rows: its queries against every key of the sequence
    RingAV   V travels round; rank r adds (block j of its weights) v_j to its output

                 keys  0   1   2   3
    rank 0 scores     [ d | . | . | . ]     # computed and kept;  d under the diagonal
    rank 1 scores     [ # | d | . | . ]     . computed too, then masked: every rank works
    rank 2 scores     [ # | # | d | . ]       through all blocks, so that contiguous shards
    rank 3 scores     [ # | # | # | d ]       are balanced

Backward, each pass runs its ring once more, and the gradients of what travels are added up on
the way home. Li et al.: Sequence Parallelism: Long Sequence Training from System Perspective
(arXiv 2105.13120), ColossalAI's RingQK and RingAV; theirs attends both ways, this one causally.

Memory a rank: O(sequence^2 / cp) for scores and weights each, which the ring in one pass
(``ring``) never holds; and twice its products, as masked blocks are computed too.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from serried.runtime.model.block import exact, grouped, scores_of
from serried.runtime.model.exchange import Incoming, Ring


def ring_attention_two_pass(q: Tensor, k: Tensor, v: Tensor, ring: Ring) -> Tensor:
    """Attends causally over contiguous shards (batch, heads, sequence / cp, head size).

    K and V may have fewer heads, and travel with as many as they have. All ranks of the ring
    call it, and so they do in backward.
    """
    scores: Tensor = _RingQK.apply(grouped(q, k.shape[1]), k, ring)  # type: ignore[no-untyped-call]
    weights = scores.masked_fill(_hidden(scores, ring.rank), -math.inf).softmax(dim=-1)
    out: Tensor = _RingAV.apply(weights.to(v.dtype), v, ring)  # type: ignore[no-untyped-call]
    return out.flatten(1, 2).to(q.dtype)


def _hidden(scores: Tensor, rank: int) -> Tensor:
    """Returns which keys (columns) lie behind each query (rows) of ``rank``'s shard."""
    length, whole = scores.shape[-2:]
    place = torch.arange(whole, device=scores.device)
    return place[rank * length : (rank + 1) * length, None] < place


class _RingQK(torch.autograd.Function):
    """Gathers the scores of a rank's queries against all keys; K travels."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, ring: Ring) -> Tensor:
        ctx.ring = ring
        ctx.save_for_backward(q, k)
        blocks = {source: scores_of(q, block) for source, block in ring.round(k)}
        return torch.cat([blocks[source] for source in sorted(blocks)], dim=-1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_scores: Tensor) -> tuple[Tensor | None, ...]:
        q, k = ctx.saved_tensors
        d_blocks = (d_scores / math.sqrt(q.shape[-1])).to(q.dtype).chunk(ctx.ring.size, dim=-1)
        d_q = torch.zeros_like(exact(q))
        going: Incoming | None = None
        for source, block in ctx.ring.round(k):
            d_q += torch.einsum("bhgqk,bhkd->bhgqd", d_blocks[source], block)
            d_k = going.wait() if going else torch.zeros_like(exact(k))
            d_k += torch.einsum("bhgqk,bhgqd->bhkd", d_blocks[source], q)
            going = ctx.ring.pass_on(d_k)
        assert going is not None
        return d_q.to(q.dtype), going.wait().to(k.dtype), None


class _RingAV(torch.autograd.Function):
    """Mixes all values by the weights of a rank's queries; V travels."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, v: Tensor, ring: Ring) -> Tensor:
        ctx.ring = ring
        ctx.save_for_backward(weights, v)
        blocks = weights.chunk(ring.size, dim=-1)
        parts = (
            exact(torch.einsum("bhgqk,bhkd->bhgqd", blocks[source], block))
            for source, block in ring.round(v)
        )
        return sum(parts, start=exact(v.new_zeros(())))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        weights, v = ctx.saved_tensors
        blocks, d_out = weights.chunk(ctx.ring.size, dim=-1), d_out.to(v.dtype)
        d_weights: dict[int, Tensor] = {}
        going: Incoming | None = None
        for source, block in ctx.ring.round(v):
            d_weights[source] = torch.einsum("bhgqd,bhkd->bhgqk", d_out, block)
            d_v = going.wait() if going else torch.zeros_like(exact(v))
            d_v += torch.einsum("bhgqk,bhgqd->bhkd", blocks[source], d_out)
            going = ctx.ring.pass_on(d_v)
        assert going is not None
        d_whole = torch.cat([d_weights[source] for source in sorted(d_weights)], dim=-1)
        return d_whole, going.wait().to(v.dtype), None
