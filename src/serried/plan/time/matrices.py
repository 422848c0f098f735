"""Matrix multiplications: FLOPs at the rate of large GEMMs, and the bytes that are not hidden.

    time = 2 M N K / rate + share x (bytes of M K, K N and M N) / memory bandwidth

The second term is what makes narrow ones slow: a GEMM's bytes grow with 1/M + 1/N + 1/K of its
FLOPs, so tp's thin slices and experts with few tokens reach less than large squares do. N and K are
computed in whole tiles of 128: a hidden size of 2,880 costs what 2,944 does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serried.plan.time.constants import Constants
from serried.plan.time.jobs import Column, Jobs
from serried.plan.time.rates import Rates


@dataclass(frozen=True, eq=False)
class LayerMatrices:
    """Holds seconds of one forward through a layer's matrices, of a microbatch on a rank."""

    attention: Column
    """Projections to queries, keys and values, and back."""
    up: Column
    """Those among them that make heads of latent numbers; 0 without MLA."""
    feed_forward: Column
    """The dense feed-forward, of layers that have it."""
    experts: Column
    """Router, routed and shared experts, of MoE layers."""
    attention_weights: Column
    """Weights of the attention's matrices on a rank."""
    feed_forward_weights: Column
    expert_weights: Column
    """Weights of the routed experts on a rank."""


@dataclass(frozen=True, eq=False)
class Gemm:
    """Times GEMMs of one set of jobs; ``rate`` is that of large ones."""

    memory: Column
    bytes_share: float
    weight_bytes: Column

    def __call__(
        self, rows: Column, columns: Column, inner: Column, rate: Column, copies: Column | float = 1
    ) -> Column:
        """Returns seconds of (rows x inner) times (inner x columns), so many times."""
        columns, inner = _tiled(columns), _tiled(inner)
        read = self.weight_bytes * inner * (rows + columns)
        moved = (read + 2.0 * rows * columns) * self.bytes_share / self.memory
        return np.asarray(copies * (2.0 * rows * columns * inner / rate + moved))


def _tiled(numbers: Column) -> Column:
    """Returns a size in whole tiles of 128, which tensor cores compute however little they hold."""
    return np.asarray(np.ceil(np.asarray(numbers) / 128.0 - 1e-9) * 128.0)


def layer_matrices(jobs: Jobs, reached: Rates, constants: Constants) -> LayerMatrices:
    """Returns the time of a layer's matrices, and the weights in them."""
    gemm = Gemm(reached.memory, constants.value("gemm_bytes"), reached.weight_bytes)
    tokens, hidden, tp = jobs.tokens, jobs.hidden, jobs.tp
    is_latent, queries = jobs.kv_rank > 0, jobs.heads * jobs.qk_dim
    values = jobs.heads * jobs.v_dim
    q_rank, kv_rank = np.maximum(jobs.q_rank, 1), np.maximum(jobs.kv_rank, 1)
    up_width = jobs.heads * (jobs.nope_dim + jobs.v_dim)
    linear = reached.linear
    # Without a rank of their own, queries are made of the stream itself (DeepSeek-V2-Lite).
    has_rank = jobs.q_rank > 0
    up = np.where(has_rank, gemm(tokens, queries / tp, q_rank, linear), 0.0)
    up = up + gemm(tokens, up_width / tp, kv_rank, linear)
    plain_queries = gemm(tokens, queries / tp, hidden, linear)
    down = np.where(has_rank, gemm(tokens, q_rank, hidden, linear), plain_queries)
    down = down + gemm(tokens, kv_rank + jobs.rope_dim, hidden, linear)
    fused = (jobs.heads + 2 * jobs.kv_heads) * jobs.qk_dim
    plain = gemm(tokens, fused / tp, hidden, linear)
    latent_weights = hidden * (kv_rank + jobs.rope_dim) + kv_rank * up_width
    of_queries = np.where(has_rank, q_rank * (hidden + queries), hidden * queries)
    latent_weights = latent_weights + of_queries
    into = np.where(is_latent, latent_weights, hidden * fused)
    wide = jobs.matrices - 1
    return LayerMatrices(
        attention=np.where(is_latent, up + down, plain) + gemm(tokens, hidden, values / tp, linear),
        up=np.where(is_latent, up, 0.0),
        feed_forward=gemm(tokens, wide * jobs.ffn / tp, hidden, linear)
        + gemm(tokens, hidden, jobs.ffn / tp, linear),
        experts=_experts(jobs, reached, constants, gemm),
        attention_weights=(into + hidden * values) / tp,
        feed_forward_weights=jobs.matrices * hidden * jobs.ffn / tp,
        expert_weights=jobs.matrices * hidden * jobs.expert_ffn * experts_here(jobs) / jobs.etp,
    )


def experts_here(jobs: Jobs) -> Column:
    """Returns the routed experts that a rank has of a layer."""
    return np.asarray(np.maximum(jobs.experts / jobs.ep, 1.0))


def routed_tokens(jobs: Jobs) -> Column:
    """Returns the tokens that the fullest rank's experts work on, each counted once an expert.

    Balanced, a rank gets as many as it sends. Ranks of etp share tokens and split the weights.
    """
    return np.asarray(jobs.imbalance * jobs.tokens * jobs.top_k * jobs.etp / jobs.tp)


def _experts(jobs: Jobs, reached: Rates, constants: Constants, gemm: Gemm) -> Column:
    here = experts_here(jobs)
    each = np.maximum(routed_tokens(jobs) / here, 1.0)
    width = np.maximum(jobs.expert_ffn, 1.0) / jobs.etp
    grouped = reached.linear * constants.value("grouped")
    wide = jobs.matrices - 1
    routed = gemm(each, wide * width, jobs.hidden, grouped, here)
    routed = routed + gemm(each, jobs.hidden, width, grouped, here)
    shared_width = np.maximum(jobs.shared_ffn, 1.0) / jobs.tp
    shared = gemm(jobs.tokens, wide * shared_width, jobs.hidden, reached.linear)
    shared = shared + gemm(jobs.tokens, jobs.hidden, shared_width, reached.linear)
    router = gemm(jobs.tokens / jobs.tp, np.maximum(jobs.experts, 1.0), jobs.hidden, reached.wide)
    whole = routed + router + np.where(jobs.shared_ffn > 0, shared, 0.0)
    return np.asarray(np.where(jobs.is_moe, whole, 0.0))


def output_forward(jobs: Jobs, reached: Rates, constants: Constants) -> Column:
    """Returns seconds of one forward through the output layer, which stays in bf16."""
    gemm = Gemm(reached.memory, constants.value("gemm_bytes"), np.asarray(2.0))
    return gemm(jobs.tokens, jobs.vocab / jobs.tp, jobs.hidden, reached.wide)
