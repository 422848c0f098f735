"""What offloading costs: bytes to the host's memory and back that compute does not hide.

    activations   what a layer keeps goes out beside its forward and comes back beside its backward
    parameters    a layer's weights, or a rank's part of them, come in before both
    optimizer     gradients go out beside the last backward; the host steps; weights come back

What a layer computes hides as much as it takes itself; where only some layers' activations go out,
Transformer Engine spreads them over the time of all (2.11, pytorch/cpu_offload.py, windows). The
host's step is bound by its memory: it reads and writes 28 bytes of a weight (Adam's two moments,
weight and gradient in fp32), at the 0.43 of the bandwidth that ZeRO-Offload's CPU-Adam reached
(arXiv 2101.06840, table 4, recalled and not found again: 10 billion weights in 2.57 s beside 256
GB/s). Software may be far slower: DeepSpeed's pull request 7474 gains a third by binding cores.
"""

from __future__ import annotations

import numpy as np

from serried.plan.time.jobs import Column, Jobs
from serried.plan.time.matrices import LayerMatrices
from serried.plan.time.rates import Rates

STEP_BYTES = 28.0
"""Bytes that Adam on the host reads and writes of each weight."""
STEP_SHARE = 0.43
"""Share of the host's memory bandwidth that it reaches."""


def kept_bytes(jobs: Jobs) -> Column:
    """Returns what a mean layer keeps of a microbatch for its backward, in 16 bits."""
    split = np.where(jobs.is_sequence_parallel > 0, jobs.tp, 1.0)
    stream = jobs.hidden / split
    heads = jobs.heads * (jobs.qk_dim + jobs.v_dim) + jobs.kv_heads * (jobs.qk_dim + jobs.v_dim)
    dense = jobs.matrices * jobs.ffn / jobs.tp
    routed = jobs.top_k * (jobs.hidden * jobs.etp + jobs.matrices * jobs.expert_ffn) / jobs.tp
    routed = routed + jobs.matrices * jobs.shared_ffn / jobs.tp
    moe, again = jobs.moe_share, jobs.recomputed
    wide = (1.0 - moe) * dense * (1.0 - again["feed_forward"])
    wide = wide + moe * routed * (1.0 - again["routed"])
    whole = 4.0 * stream + heads / jobs.tp + wide
    kept = jobs.full_recompute * stream + (1.0 - jobs.full_recompute) * whole
    return np.asarray(2.0 * kept * jobs.tokens)


def weight_bytes(jobs: Jobs, weights: LayerMatrices) -> Column:
    """Returns what comes in of a mean layer's weights: all of a rank's, or its part under FSDP."""
    moe = jobs.moe_share
    shared = jobs.matrices * jobs.hidden * jobs.shared_ffn / jobs.tp
    held = weights.attention_weights + (1.0 - moe) * weights.feed_forward_weights
    held = held + moe * (weights.expert_weights + shared)
    parts = np.where(jobs.is_fsdp > 0, jobs.shard_ranks, 1.0)
    return np.asarray(jobs.gathered_bytes * held / parts)


def moved_bytes(jobs: Jobs, weights: LayerMatrices) -> Column:
    """Returns what goes over the host's link beside a layer's forward, and again its backward."""
    kept = jobs.offloads_activations * kept_bytes(jobs)
    return kept + np.where(jobs.offloads_parameters > 0, weight_bytes(jobs, weights), 0.0)


def beside(sent: Column, hidden_by: Column, reached: Rates) -> Column:
    """Returns the seconds by which a transfer is longer than what runs beside it."""
    return np.asarray(np.maximum(sent / reached.host - hidden_by, 0.0))


def host_step(jobs: Jobs, reached: Rates, updated: Column, microbatch: Column) -> Column:
    """Returns the optimizer's time where it steps on the host, of so many weights a rank."""
    out = beside(updated * jobs.reduced_bytes, 0.9 * microbatch, reached)
    step = updated * STEP_BYTES / (STEP_SHARE * reached.host_memory)
    return np.asarray(out + step + updated * jobs.gathered_bytes / reached.host)
