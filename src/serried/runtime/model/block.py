"""Attention of a block of queries to a block of keys, in pieces that add up to the whole.

    scores    s  = q k' / sqrt(d)                per query: a row over the keys of the block
    lse       l  = log sum exp(s)                how much the block weighs for that query
    out       o  = exp(s - l) v

Two blocks of keys join as if they had been one (online softmax, arXiv 1805.02867):

    l = log(exp(l1) + exp(l2))        o = exp(l1 - l) o1 + exp(l2 - l) o2

Backward needs no more than the final l and D = sum(o do): p = exp(s - l) are the true weights,

    dv = p' do        ds = p (do v' - D)        dq = ds k / sqrt(d)        dk = ds' q / sqrt(d)

Letters of shapes: b batch, h KV head, g query head that shares it, q query, k key, d head size.
KV heads are never repeated. Products are in the type of q, k and v; weights, sums and what is
returned in float32 at least.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


class Attended(NamedTuple):
    """Holds what a block of keys gave: (b, h, g, q, d), and its weight: (b, h, g, q)."""

    out: Tensor
    lse: Tensor


class Gradients(NamedTuple):
    """Holds a block's part of the gradients."""

    q: Tensor
    k: Tensor
    v: Tensor


def grouped(x: Tensor, kv_heads: int) -> Tensor:
    """Returns (batch, heads, …) as (batch, KV heads, heads that share one, …)."""
    return x.view(x.shape[0], kv_heads, x.shape[1] // kv_heads, *x.shape[2:])


def exact(x: Tensor) -> Tensor:
    """Returns ``x`` in float32, or float64 where it is."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def scores_of(q: Tensor, k: Tensor) -> Tensor:
    """Returns how much each query (b, h, g, q, d) wants each key (b, h, k, d)."""
    return exact(torch.einsum("bhgqd,bhkd->bhgqk", q, k)) / math.sqrt(q.shape[-1])


def diagonal(q: Tensor) -> Tensor:
    """Returns the causal mask (q, k) of queries and keys that stand at the same places."""
    length = q.shape[-2]
    return torch.ones(length, length, dtype=torch.bool, device=q.device).tril()


def attend(q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None = None) -> Attended:
    """Attends to the keys of one block; ``visible`` (q, k) masks the others, None shows all.

    Each query sees at least one key.
    """
    scores = scores_of(q, k)
    if visible is not None:
        scores = scores.masked_fill(~visible, -math.inf)
    lse = scores.logsumexp(dim=-1)
    weights = (scores - lse[..., None]).exp().to(v.dtype)
    return Attended(exact(torch.einsum("bhgqk,bhkd->bhgqd", weights, v)), lse)


def joined(one: Attended, other: Attended) -> Attended:
    """Returns what both blocks of keys would have given as one.

    >>> q, k, v = torch.randn(3, 1, 1, 4, 2, dtype=torch.float64)
    >>> q = q[:, :, None]
    >>> parts = joined(attend(q, k[:, :, :1], v[:, :, :1]), attend(q, k[:, :, 1:], v[:, :, 1:]))
    >>> torch.allclose(parts.out, attend(q, k, v).out)
    True
    """
    # A block's output is a mean over its keys, and exp(lse) the sum of their weights: so the mean
    # over both blocks is that of the two outputs by these sums.
    lse = torch.logaddexp(one.lse, other.lse)
    out = (one.lse - lse).exp()[..., None] * one.out + (other.lse - lse).exp()[..., None] * (
        other.out
    )
    return Attended(out, lse)


def attend_backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    final: Attended,
    d_out: Tensor,
    visible: Tensor | None = None,
) -> Gradients:
    """Returns one block's part of the gradients; ``final`` is of all blocks together."""
    scores = scores_of(q, k)
    if visible is not None:
        scores = scores.masked_fill(~visible, -math.inf)
    weights = (scores - final.lse[..., None]).exp()
    # Softmax's backward takes sum(weight x its gradient) over all keys. That is output x its
    # gradient, so no block needs the keys of the others.
    along = (final.out * exact(d_out)).sum(dim=-1)
    d_weights = exact(torch.einsum("bhgqd,bhkd->bhgqk", d_out, v))
    d_scores = (weights * (d_weights - along[..., None]) / math.sqrt(q.shape[-1])).to(q.dtype)
    return Gradients(
        q=exact(torch.einsum("bhgqk,bhkd->bhgqd", d_scores, k)),
        k=exact(torch.einsum("bhgqk,bhgqd->bhkd", d_scores, q)),
        v=exact(torch.einsum("bhgqk,bhgqd->bhkd", weights.to(v.dtype), d_out)),
    )
