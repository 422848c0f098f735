"""One layer's microbatch on one rank: its parts, and the host that launches them.

    attention part     projections, core attention, elementwise, tp, cp
    feed-forward part  matrices and elementwise, of dense layers
    MoE part           experts, routing, ep, the host's waits; of MoE layers

Every layer is counted as the mean of those of the slowest rank (``Jobs.moe_share``). Where the GPU
would be done sooner than the host launches, the host sets the pace (a smooth maximum).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serried.plan.time.constants import Constants
from serried.plan.time.core_attention import core_attention
from serried.plan.time.elementwise import elementwise
from serried.plan.time.exposed import in_layers
from serried.plan.time.jobs import STACKS, Column, Jobs
from serried.plan.time.matrices import (
    LayerMatrices,
    experts_here,
    layer_matrices,
    routed_tokens,
)
from serried.plan.time.offloaded import beside, moved_bytes
from serried.plan.time.rates import Rates

PARTS = (
    *("matrices", "attention", "elementwise", "recompute", "tp", "cp", "ep", "launch"),
    "offload",
)
DENSE_KERNELS = 38.0
"""Kernels of a dense layer, forward and backward, as Megatron with Transformer Engine runs it."""


@dataclass(frozen=True, eq=False)
class LayerTimes:
    """Holds seconds of a mean layer, of a microbatch on a rank."""

    parts: dict[str, Column]
    """By ``PARTS``; forward and backward together."""
    total: Column
    forward: Column
    """What of the total is forward."""
    waited: Column
    """What of forward waits for the host to take what is offloaded."""
    weights: LayerMatrices


def layer_times(jobs: Jobs, reached: Rates, constants: Constants) -> LayerTimes:
    """Returns the time of a mean layer, by part."""
    matrices = layer_matrices(jobs, reached, constants)
    forward, backward = core_attention(jobs, reached, constants)
    memory = elementwise(jobs, reached, constants, matrices)
    local = experts_here(jobs)
    exchanged = in_layers(jobs, reached, constants, forward + backward, local)
    moe = jobs.moe_share
    dense = 1.0 - moe
    linear = matrices.attention + dense * matrices.feed_forward + moe * matrices.experts
    passes = np.where(jobs.is_lora > 0, 2.0, 3.0)
    by_memory = memory.attention + dense * memory.feed_forward + moe * memory.experts
    full, again = jobs.full_recompute, jobs.recomputed
    extra = full * (linear + forward + 0.4 * by_memory)
    extra = extra + (1.0 - full) * (
        again["linear"] * (matrices.attention + dense * matrices.feed_forward)
        + again["core"] * forward
        + again["up"] * matrices.up
        + again["feed_forward"] * dense * matrices.feed_forward
        + again["routed"] * moe * matrices.experts
        + passed_again(jobs) / reached.memory
    )
    parts = {
        "matrices": passes * linear,
        "attention": forward + backward,
        "elementwise": by_memory,
        "recompute": extra,
        "tp": exchanged.tp * (1.0 + 0.5 * full),
        "cp": exchanged.cp,
        "ep": moe * exchanged.ep * (1.0 + 0.5 * full),
    }
    busy = np.asarray(sum(parts.values()))
    parts["launch"] = moe * _waits(jobs, constants, local) + gaps(jobs, constants)
    paced = _paced(busy + parts["launch"], jobs, constants)
    parts["launch"] = paced - busy
    ahead = linear + forward + 0.4 * by_memory + (parts["tp"] + parts["ep"]) / 2.0
    ahead = paced * np.minimum(ahead / busy, 1.0)
    sent = moved_bytes(jobs, matrices)
    out, back = beside(sent, ahead, reached), beside(sent, paced - ahead, reached)
    parts["offload"] = out + back
    return LayerTimes(parts, paced + parts["offload"], ahead + out, out, matrices)


def passed_again(jobs: Jobs) -> Column:
    """Returns the bytes of norms and experts' activations that are computed again: each reads what
    it is of and writes what it gives, in 16 bits."""
    split = np.where(jobs.is_sequence_parallel > 0, jobs.tp, 1.0)
    norms = 8.0 * jobs.tokens * jobs.hidden / split
    acts = 2.0 * jobs.matrices * routed_tokens(jobs) * jobs.expert_ffn / jobs.etp
    again = jobs.recomputed
    return np.asarray(again["norms"] * norms + again["expert_act"] * jobs.moe_share * acts)


def _waits(jobs: Jobs, constants: Constants, experts: Column) -> Column:
    """Returns how long the host holds up one MoE layer: it asks where tokens go, then launches
    each expert's kernels; a graph of the whole step spares most of it."""
    spared = np.where(jobs.cuda_graph > 0.8, 0.05, np.where(jobs.cuda_graph > 0, 0.6, 1.0))
    return np.asarray(
        (constants.value("moe_wait") + constants.value("moe_expert") * experts) * spared
    )


def kernels(jobs: Jobs, constants: Constants) -> Column:
    """Returns how many kernels a layer launches, forward and backward."""
    count = np.where(jobs.is_moe, DENSE_KERNELS * constants.value("moe_kernels"), DENSE_KERNELS)
    count = count + np.where(jobs.recipe > 0, 25.0, 0.0) + np.where(jobs.tp > 1, 10.0, 0.0)
    return np.asarray(count * (1.0 + 0.35 * jobs.full_recompute))


def gaps(jobs: Jobs, constants: Constants) -> Column:
    """Returns what a layer's kernels wait for one another; in a graph less."""
    spared = 1.0 - 0.6 * jobs.cuda_graph
    return constants.value("kernel_gap") * kernels(jobs, constants) * spared


def _paced(busy: Column, jobs: Jobs, constants: Constants) -> Column:
    """Returns the time of a layer that GPU and host share: nearly that of the slower one."""
    is_old = jobs.stack == STACKS.index("megatron-deepspeed")
    each = constants.value("launch") * np.where(is_old, constants.value("launch_deepspeed"), 1.0)
    host = each * kernels(jobs, constants) * (1.0 - jobs.cuda_graph)
    return np.asarray((busy**4 + host**4) ** 0.25)
