"""Context parallelism: causal attention over a sequence that lies in shards on several ranks.

    form            what moves, forward           shards       a rank's memory beside its shard
    ring            K V, cp - 1 hops              zig-zag      one block of scores
    ring-two-pass   K, then V, cp - 1 hops each   contiguous   sequence^2 / cp scores
    ulysses         Q K V and the output,         contiguous   the sequence, heads / cp
                    all-to-all
    all-gather      K V, all-gather               zig-zag      K V of the sequence

All forms take and give what plain attention would, on each rank's own places, and have the
same gradients. On CUDA the same code runs, over NCCL.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from serried.runtime.job.shards import FORMS, places, require_form
from serried.runtime.model.exchange import MeshOrGroup, Ring, group_of
from serried.runtime.model.gather import gather_attention
from serried.runtime.model.ring import ring_attention
from serried.runtime.model.ring_two_pass import ring_attention_two_pass
from serried.runtime.model.ulysses import ulysses_attention

__all__ = ["FORMS", "Attention", "attention", "positions"]

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Takes q (batch, heads, sequence / cp, head size), k and v (batch, KV heads, …); returns q's."""


def attention(form: str, mesh_or_group: MeshOrGroup) -> Attention:
    """Returns causal attention in ``form`` over the ranks of a group, for shards of ``positions``.

    All ranks of the group call it together, with shards of one shape. Raises InputError for a
    form that is not, and when called for heads that ulysses cannot share out.
    """
    require_form(form)
    group = group_of(mesh_or_group)
    ring = Ring(group)
    forms: dict[str, Attention] = {
        "ring": lambda q, k, v: ring_attention(q, k, v, ring),
        "ring-two-pass": lambda q, k, v: ring_attention_two_pass(q, k, v, ring),
        "ulysses": lambda q, k, v: ulysses_attention(q, k, v, group),
        "all-gather": lambda q, k, v: gather_attention(q, k, v, group),
    }
    return forms[form]


def positions(form: str, seq: int, cp_rank: int, cp: int) -> Tensor:
    """Returns the places of a sequence of ``seq`` that ``cp_rank`` of ``cp`` ranks holds, in order.

    >>> positions("ring", 8, 0, 2), positions("ulysses", 8, 0, 2)
    (tensor([0, 1, 6, 7]), tensor([0, 1, 2, 3]))
    """
    require_form(form)
    pieces = places(form, seq_len=seq, rank=cp_rank, cp=cp)
    return torch.cat([torch.arange(piece.start, piece.stop) for piece in pieces])
