"""What runs at the memory's speed: norms, residuals, activations, casts, permutation, gradients.

Bytes are counted per token of a forward and backward, 2 bytes a number, h and f as in a model:

    24 h                  norms, residual additions, dropout (/tp with sequence parallel)
    4 (a + g) d           rotary positions
    8 f, or 5 f           SwiGLU reads and writes 8 numbers of each f, GELU 5
    4 h + n h top_k c     routing an MoE token there and back; n is 16, permuted, sorted by expert,
                          sorted back and unpermuted, all of it twice; 10 with DeepEP and 6 with
                          HybridEP, whose kernels permute as they send; c is fitted

Experts with biases and a clamped activation are not fused and pass over f again and again; less
often where the whole step is one graph, which came with kernels that fuse some of them. A narrow
format also reads and writes what it quantises: inputs and gradients of every linear layer. Every
microbatch's weight gradients are added to the sum of those before: 8 bytes a weight, and more where
that is not part of their GEMM, as in Megatron-DeepSpeed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serried.plan.time.constants import Constants
from serried.plan.time.jobs import RECIPES, STACKS, Column, Jobs
from serried.plan.time.matrices import LayerMatrices, routed_tokens
from serried.plan.time.rates import Rates


@dataclass(frozen=True, eq=False)
class Elementwise:
    """Holds seconds of forward and backward together, of one layer and microbatch on a rank."""

    attention: Column
    feed_forward: Column
    experts: Column


def elementwise(
    jobs: Jobs, reached: Rates, constants: Constants, weights: LayerMatrices
) -> Elementwise:
    """Returns the time of what is bound by memory, by the part of a layer."""
    tokens, hidden, tp = jobs.tokens, jobs.hidden, jobs.tp
    is_gated = jobs.matrices > 2
    along = np.where(jobs.is_sequence_parallel > 0, hidden / tp, hidden)
    act = np.where(is_gated, 8.0, 5.0)
    unfused = np.where(is_gated, 1.0, constants.value("elementwise_plain"))
    scale = constants.value("elementwise")
    values, routed = jobs.heads * jobs.v_dim / tp, routed_tokens(jobs)
    rotary = 4.0 * (jobs.heads + jobs.kv_heads) * jobs.qk_dim / tp
    width = jobs.expert_ffn / jobs.etp
    moved = routed * (act * width + jobs.permuted * hidden * constants.value("routing"))
    fused = np.where(jobs.cuda_graph > 0.8, constants.value("expert_bias_fused"), 1.0)
    again = constants.value("expert_bias") * jobs.has_expert_bias * fused
    moved = moved + routed * width * again
    moved = moved + tokens / tp * 4.0 * hidden + act * tokens * jobs.shared_ffn / tp
    cast = _cast(jobs, constants)
    into_heads = (jobs.heads + 2 * jobs.kv_heads) * jobs.qk_dim / tp
    into = jobs.matrices
    memory = reached.memory
    is_old = jobs.stack == STACKS.index("megatron-deepspeed")
    apart = np.where(is_old, constants.value("gradient_sum_deepspeed"), 1.0)
    trained = np.where(jobs.is_lora > 0, 0.0, 8.0 * constants.value("gradient_sum") * apart)
    return Elementwise(
        attention=(
            2.0 * tokens * (24.0 * along + rotary) * scale
            + 2.0 * tokens * (2.0 * hidden + values + into_heads) * cast
            + trained * weights.attention_weights
        )
        / memory,
        feed_forward=(
            2.0 * tokens * act * jobs.ffn / tp * scale * unfused
            + 2.0 * tokens * into * jobs.ffn / tp * cast
            + trained * weights.feed_forward_weights
        )
        / memory,
        experts=(
            2.0 * moved * scale
            + 2.0 * routed * (hidden + into * width) * cast
            + trained * weights.expert_weights
        )
        / memory,
    )


def _cast(jobs: Jobs, constants: Constants) -> Column:
    """Returns how often a number is read and written to be made narrow, by recipe."""
    names = ("cast_delayed", "cast_current", "cast_mxfp8", "cast_nvfp4")
    passes = np.array([0.0, *(constants.value(name) for name in names)])
    assert passes.size == len(RECIPES)
    return passes[jobs.recipe]
