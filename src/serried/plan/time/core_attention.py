"""Attention between projections: a flash kernel, or the eager one that came before it.

    flash   skips what a causal mask hides: half of s x s; backward is a constant times forward
    eager   multiplies all of s x s, and reads and writes it for mask, softmax and dropout

A flash kernel takes one exponential for each product of a query and a key, however few numbers a
head has: below 128 they are more of its work, the more so the faster the tensor cores beside them.
For short sequences the blocks on the diagonal are, half of which is hidden and computed; an
eager one is much slower where a head's numbers do not divide by 8, and tensor cores idle (the
150-wide heads of BigScience's chronicles). Where torch runs a kernel written for Ampere, newer GPUs
reach a share of what their own kernels, which Megatron and JAX call, do.
"""

from __future__ import annotations

import numpy as np

from serried.plan.time.constants import Constants
from serried.plan.time.jobs import STACKS, Column, Jobs
from serried.plan.time.rates import Rates


def core_attention(jobs: Jobs, reached: Rates, constants: Constants) -> tuple[Column, Column]:
    """Returns seconds of forward and of backward of one layer's attention, of a microbatch."""
    heads = jobs.heads / jobs.tp
    half = 2.0 * jobs.tokens * keys_seen(jobs) * (jobs.qk_dim + jobs.v_dim) * heads
    share = constants.value("attention_exponentials")
    setup = share * reached.exponentials
    usual = share * reached.usual_exponentials
    width = jobs.qk_dim / (jobs.qk_dim + setup) * (128.0 + usual) / 128.0
    begun = 1.0 + constants.value("attention_begin") / jobs.sequence
    is_new = reached.bf16_peak > 400e12
    portable = is_new & (jobs.stack == STACKS.index("torch-fsdp"))
    tuned = np.where(portable, constants.value("attention_portable"), 1.0)
    flash = half * begun / (reached.attention * width * tuned)
    aligned = np.where(np.mod(jobs.qk_dim, 8) != 0, constants.value("eager_misaligned"), 1.0)
    rate = reached.bf16_peak * constants.value("eager_gemm") / (1.0 + setup / jobs.qk_dim)
    passes = constants.value("eager_passes")
    square = jobs.tokens * jobs.sequence * heads * 2.0 * passes / reached.memory
    eager = 2.0 * half * aligned / rate + square
    is_flash = jobs.is_flash > 0
    backward = np.where(is_flash, constants.value("attention_backward") * flash, 2.0 * eager)
    return np.where(is_flash, flash, eager), backward


def keys_seen(jobs: Jobs) -> Column:
    """Returns the keys that a query sees under a causal mask, mean over queries and layers."""
    causal = jobs.document / 2.0
    share = jobs.windowed_layers / np.maximum(jobs.layers, 1.0)
    inside = np.minimum(np.maximum(jobs.window, 1.0), causal)
    return np.asarray(causal * (1.0 - share) + inside * share)
