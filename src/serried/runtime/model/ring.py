"""Ring attention in one pass: keys and values travel round, queries stay, sums join on the way.

Zig-zag shards, cp 4: rank r holds pieces r and 7 - r. At step i it has the K and V of rank
r - i, sends them on while it computes with them, and meets exactly half of the products:

           step 0          step 1           step 2           step 3
    rank 0   own            3: late q        2: late q        1: late q
    rank 1   own            0: early kv      3: late q        2: late q
    rank 2   own            1: early kv      0: early kv      3: late q
    rank 3   own            2: early kv      1: early kv      0: early kv

    own         all queries x all keys, under the diagonal (half of the products as well)
    early kv    all queries x the early piece of keys: no mask; the late one lies after them all
    late q      the late piece of queries x all keys: no mask; the early one lies before them all

Forward, K and V make cp - 1 hops. Backward they travel again, and their gradients go after
them: what rank j's keys receive is added up on the way and comes home after cp hops.

    rank 0 ── KV ──> rank 1 ── KV ──> rank 2 ── KV ──> rank 3
      ^      + dKV            + dKV            + dKV      │
      └─────────────────────── dKV ───────────────────────┘

Liu, Zaharia, Abbeel: Ring Attention with Blockwise Transformers (arXiv 2310.01889); the zig-zag
order as in zhuzilin/ring-flash-attention. Memory a rank: O(sequence / cp) beside one block.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from serried.runtime.model.block import (
    Attended,
    attend,
    attend_backward,
    diagonal,
    exact,
    grouped,
    joined,
)
from serried.runtime.model.exchange import Incoming, Ring

ALL = slice(None)


class UnmaskedBlock(NamedTuple):
    """Holds the queries and keys of two ranks' shards between which no key is masked out."""

    queries: slice
    keys: slice
    is_own: bool
    """Whether both are of one rank, and masked above the diagonal all the same."""


def unmasked_block(rank: int, source: int, *, length: int) -> UnmaskedBlock:
    """Returns what ``rank``'s queries see of ``source``'s keys in zig-zag shards of ``length``.

    >>> unmasked_block(2, 1, length=8)
    UnmaskedBlock(queries=slice(None, None, None), keys=slice(0, 4, None), is_own=False)
    >>> unmasked_block(1, 2, length=8)
    UnmaskedBlock(queries=slice(4, 8, None), keys=slice(None, None, None), is_own=False)
    """
    if source == rank:
        return UnmaskedBlock(ALL, ALL, is_own=True)
    if source < rank:
        return UnmaskedBlock(ALL, slice(0, length // 2), is_own=False)
    return UnmaskedBlock(slice(length // 2, length), ALL, is_own=False)


def ring_attention(q: Tensor, k: Tensor, v: Tensor, ring: Ring) -> Tensor:
    """Attends causally over zig-zag shards (batch, heads, sequence / cp, head size).

    K and V may have fewer heads, and travel with as many as they have. All ranks of the ring
    call it, and so they do in backward.
    """
    out: Tensor = _RingAttention.apply(q, k, v, ring)  # type: ignore[no-untyped-call]
    return out


class _RingAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, ring: Ring) -> Tensor:
        queries = grouped(q, k.shape[1])
        final = _forward(queries, torch.stack((k, v)), ring)
        ctx.ring = ring
        ctx.save_for_backward(q, k, v, *final)
        return final.out.flatten(1, 2).to(q.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, out, lse = ctx.saved_tensors
        heads = k.shape[1]
        d_q, d_kv = _backward(
            grouped(q, heads),
            torch.stack((k, v)),
            Attended(out, lse),
            grouped(d_out, heads),
            ctx.ring,
        )
        return d_q.flatten(1, 2).to(q.dtype), d_kv[0].to(k.dtype), d_kv[1].to(v.dtype), None


def _forward(q: Tensor, kv: Tensor, ring: Ring) -> Attended:
    final: Attended | None = None
    for source, (k, v) in ring.round(kv):
        unmasked = unmasked_block(ring.rank, source, length=q.shape[-2])
        mask = diagonal(q) if unmasked.is_own else None
        block = attend(
            q[..., unmasked.queries, :],
            k[..., unmasked.keys, :],
            v[..., unmasked.keys, :],
            visible=mask,
        )
        if final is None:  # a round begins with the rank's own keys
            final = block
            continue
        seen = joined(_rows(final, unmasked.queries), block)
        final.out[..., unmasked.queries, :] = seen.out
        final.lse[..., unmasked.queries] = seen.lse
    assert final is not None
    return final


def _backward(
    q: Tensor, kv: Tensor, final: Attended, d_out: Tensor, ring: Ring
) -> tuple[Tensor, Tensor]:
    """Returns the gradients of the queries, and of the rank's own keys and values, stacked."""
    d_q = torch.zeros_like(exact(q))
    going: Incoming | None = None
    for source, (k, v) in ring.round(kv):
        unmasked = unmasked_block(ring.rank, source, length=q.shape[-2])
        part = attend_backward(
            q[..., unmasked.queries, :],
            k[..., unmasked.keys, :],
            v[..., unmasked.keys, :],
            _rows(final, unmasked.queries),
            d_out[..., unmasked.queries, :],
            visible=diagonal(q) if unmasked.is_own else None,
        )
        d_q[..., unmasked.queries, :] += part.q
        # What the ranks before added to the gradients of the very keys that are here now.
        d_kv = going.wait() if going else torch.zeros_like(exact(kv))
        d_kv[..., unmasked.keys, :] += torch.stack((part.k, part.v))
        going = ring.pass_on(d_kv)
    assert going is not None
    return d_q, going.wait()


def _rows(attended: Attended, rows: slice) -> Attended:
    return Attended(attended.out[..., rows, :], attended.lse[..., rows])
