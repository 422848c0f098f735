"""Communication that compute does not hide: in each layer, and once a step or microbatch.

    tp   all of it, or the share that stays when it runs beside GEMMs
    cp   a share, and what is longer than the attention beside it
    ep   a share, a token to a domain once; a smaller one beside the other half of a batch
    dp   a share, and what is longer than the backward of one microbatch
    fsdp a share, and what is longer than the whole microbatch

A group that fits in an NVLink domain uses its links; of a larger one the ranks in a domain send
round one ring through all their NICs together, at most as fast as the links are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serried.plan.time.constants import Constants
from serried.plan.time.jobs import STACKS, Column, Jobs
from serried.plan.time.rates import Rates
from serried.plan.traffic import volumes

ADAPTERS = 0.003
"""Weights that LoRA trains, of all: what its replicas exchange and its optimizer updates."""


@dataclass(frozen=True, eq=False)
class Exposed:
    """Holds seconds of one layer and microbatch, forward and backward together."""

    tp: Column
    cp: Column
    ep: Column


def in_layers(
    jobs: Jobs, reached: Rates, constants: Constants, attention: Column, experts_here: Column
) -> Exposed:
    """Returns what is exposed in each layer; ``attention`` is the time that hides cp.

    Adapters leave weights as they are: nothing gathers inputs again for their gradients.
    """
    late, tokens = constants.value("latency"), jobs.tokens
    gathers_again = (jobs.is_sequence_parallel > 0) & (jobs.is_lora <= 0)
    halves = np.where(gathers_again, volumes.SP_HALVES, volumes.TP_HALVES)
    tensor = volumes.tensor_bytes(tokens, jobs.hidden, jobs.tp, halves) / link(jobs.tp, reached)
    tensor = np.where(jobs.tp > 1, tensor + halves * late, 0.0)
    share = np.where(
        jobs.is_tp_overlapped > 0, constants.value("tp_overlapped"), constants.value("tp_exposed")
    )
    ring = volumes.context_bytes(tokens, jobs.kv_heads * jobs.qk_dim, jobs.cp, jobs.tp)
    context = ring / link(jobs.tp * jobs.cp, reached) + 6.0 * (jobs.cp - 1.0) * late
    context = constants.value("cp_exposed") * context + np.maximum(context - attention, 0.0)
    return Exposed(
        tp=tensor * share,
        cp=np.where(jobs.cp > 1, context, 0.0),
        ep=_exchange(jobs, reached, constants),
    )


def _exchange(jobs: Jobs, reached: Rates, constants: Constants) -> Column:
    """Returns the exposed time of dispatch and combine of one MoE layer."""
    routed = jobs.imbalance * jobs.tokens
    sent = volumes.expert_bytes(routed, jobs.hidden, jobs.top_k, jobs.ep, jobs.tp)
    beside = np.where(jobs.etp > 1, jobs.tp, 1.0)
    near = np.maximum(reached.domain / beside, 1.0)
    far = np.clip(1.0 - near / jobs.ep, 0.0, 1.0)
    once = _distinct(jobs.ep / near, np.maximum(jobs.top_k, 1.0)) / np.maximum(jobs.top_k, 1.0)
    time = sent * ((1.0 - far) / reached.nvlink + far * once / reached.nic)
    shared = 8.0 * routed * jobs.top_k * jobs.hidden * volumes.kept(jobs.etp)
    time = time + 8.0 * constants.value("latency") + shared / reached.nvlink
    share = np.where(
        jobs.is_ep_overlapped > 0, constants.value("ep_overlapped"), constants.value("ep_exposed")
    )
    return np.asarray(np.where(jobs.is_moe & (jobs.ep > 1), time * share, 0.0))


def _distinct(domains: Column, copies: Column) -> Column:
    """Returns how many domains so many copies of a token go to, mean over equal chances."""
    count = np.maximum(domains, 1.0)
    return np.asarray(count * (1.0 - (1.0 - 1.0 / count) ** copies))


def link(ranks: Column, reached: Rates) -> Column:
    """Returns the speed of a group of neighbouring ranks: NVLink where a domain holds it."""
    return np.where(ranks <= reached.domain, reached.nvlink, reached.nic)


def stage_link(jobs: Jobs, reached: Rates) -> Column:
    """Returns the speed of messages between stages: of replicas that lie nearer than these, over
    the network where not the whole job is in one domain."""
    between = np.where(jobs.is_dp_inner > 0, jobs.dp, 1.0)
    return link(jobs.tp * jobs.cp * jobs.pp * between, reached)


def ring_speed(
    ranks: Column, apart: Column, reached: Rates, stages_between: Column | float = 1.0
) -> Column:
    """Returns the speed of a group whose members lie ``apart`` ranks from each other.

    With stages between replicas a domain holds so many times fewer of them.
    """
    near = np.minimum(np.maximum(reached.domain / apart / stages_between, 1.0), ranks)
    across = np.minimum(reached.nvlink, near * reached.nic)
    return np.where(ranks <= near, reached.nvlink, across)


@dataclass(frozen=True, eq=False)
class HeldWeights:
    """Holds the trained weights of a rank: dense ones, and those of routed experts."""

    dense: Column
    experts: Column


def of_replicas(
    jobs: Jobs, reached: Rates, constants: Constants, held: HeldWeights, microbatch: Column
) -> Column:
    """Returns what replicas' agreement adds to a step, where weights are whole on every rank.

    ``microbatch`` is the time of one on a rank, beside which gradients are reduced. DeepSpeed's
    ZeRO-1 of BigScience reduces after the last backward, with nothing beside it.
    """
    dense = jobs.dp * jobs.cp
    experts = np.maximum(jobs.world_size / (jobs.pp * jobs.ep * jobs.etp), 1.0)
    each = jobs.reduced_bytes + jobs.gathered_bytes
    between = np.where(jobs.is_pp_inner > 0, jobs.pp, 1.0)
    speed = ring_speed(dense, jobs.tp, reached, between)
    time = volumes.replica_bytes(held.dense, dense, each) / speed
    time = time + volumes.replica_bytes(held.experts, experts, each) / ring_speed(
        experts, jobs.ep * jobs.etp, reached, between
    )
    trained = np.where(jobs.is_lora > 0, ADAPTERS, 1.0)
    late = 40.0 * constants.value("latency") * np.log2(dense + 1.0)
    time = trained * time + np.where(dense > 1, late, 0.0)
    is_after = jobs.stack == STACKS.index("megatron-deepspeed")
    beside = constants.value("dp_exposed") * time + np.maximum(time - 0.9 * microbatch, 0.0)
    return np.asarray(np.where(is_after, time, beside))


def of_shards(
    jobs: Jobs, reached: Rates, constants: Constants, held: HeldWeights, microbatch: Column
) -> Column:
    """Returns what gathering sharded weights adds to a step; each microbatch gathers them."""
    ranks = jobs.shard_ranks
    gathers = np.where(jobs.is_kept_after_forward > 0, 1.0, 2.0)
    each = gathers * jobs.gathered_bytes + jobs.reduced_bytes
    time = volumes.replica_bytes(held.dense + held.experts, ranks, each)
    time = time / ring_speed(ranks, jobs.tp, reached)
    time = time + _among_copies(jobs, reached, held)
    late = 3.0 * constants.value("latency") * np.log2(np.maximum(ranks, 2.0))
    time = time + jobs.layers * late
    share = constants.value("fsdp_exposed") * time + np.maximum(time - 0.9 * microbatch, 0.0)
    return np.asarray(jobs.microbatches * share)


def copies_of(jobs: Jobs) -> Column:
    """Returns how many copies of the weights replicas hold, each cut over ranks of its own."""
    return np.asarray(np.maximum(jobs.dp * jobs.cp / jobs.shard_ranks, 1.0))


def _among_copies(jobs: Jobs, reached: Rates, held: HeldWeights) -> Column:
    """Returns the time in which copies add up the gradients of a rank's part (HSDP)."""
    copies, part = copies_of(jobs), (held.dense + held.experts) / jobs.shard_ranks
    sent = 2.0 * volumes.replica_bytes(part, copies, jobs.reduced_bytes)
    return np.asarray(sent / ring_speed(copies, jobs.tp * jobs.shard_ranks, reached))
