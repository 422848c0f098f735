"""Bytes that a rank sends and receives, by group kind: formulas of numbers or of columns.

    kind   collective                                bytes a rank, of S = tokens x hidden x 2
    tp     2 + 2 all-reduces a layer                 8 S (t-1)/t
    sp     4 all-gathers and reduce-scatters, 6 back 10 S (t-1)/t
    cp     keys and values round the ring, 1 + 2     6 (c-1) x tokens x 2 g d / t
    ep     dispatch and combine, there and back      4 S top_k / t (e-1)/e
    pp     one message a boundary and direction      S, /t with sequence parallel
    dp     reduce-scatter and all-gather a step      (G + W) x parameters x (d-1)/d
    fsdp   2 all-gathers, 1 reduce-scatter           (2 W + G) x parameters x (n-1)/n a microbatch
    hsdp   1 all-reduce over c copies more           2 G x parameters / n x (c-1)/c a microbatch

Sources: Korthikanti et al. 2022 (tp), Narayanan et al. 2021 (pp), Megatron-LM's ring attention
and token dispatcher, Rajbhandari et al. 2020 (dp, fsdp).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Amount = NDArray[np.float64] | float

TP_HALVES, SP_HALVES = 8, 10
"""Reduce-scatters and all-gathers of one layer and microbatch, forward and backward: an all-reduce
is two. Sequence parallel gathers the inputs of two linear layers again, for their gradients."""


def kept(ranks: Amount) -> Amount:
    """Returns the share of a buffer that leaves a rank in half an all-reduce of so many.

    >>> kept(8), kept(1)
    (0.875, 0.0)
    """
    return (ranks - 1.0) / ranks


def tensor_bytes(tokens: Amount, hidden: Amount, tp: Amount, halves: Amount = TP_HALVES) -> Amount:
    """Returns what a rank of tp sends in one layer, forward and backward, of a microbatch."""
    return halves * 2.0 * tokens * hidden * kept(tp)


def context_bytes(tokens: Amount, kv_width: Amount, cp: Amount, tp: Amount) -> Amount:
    """Returns what a rank of cp sends in one layer: keys and values, and their gradients."""
    return 6.0 * (cp - 1.0) * 2.0 * tokens * kv_width / tp


def expert_bytes(tokens: Amount, hidden: Amount, top_k: Amount, ep: Amount, tp: Amount) -> Amount:
    """Returns what a rank of ep sends in one MoE layer; a fourth each there and back, twice."""
    return 4.0 * 2.0 * tokens * hidden * top_k / tp * kept(ep)


def boundary_bytes(tokens: Amount, hidden: Amount, split: Amount) -> Amount:
    """Returns one message between stages, one way; ``split`` is tp with sequence parallel."""
    return 2.0 * tokens * hidden / split


def replica_bytes(parameters: Amount, ranks: Amount, each: Amount) -> Amount:
    """Returns what a rank sends so that replicas agree, of ``each`` bytes a parameter."""
    return each * parameters * kept(ranks)
