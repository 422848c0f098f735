"""A step's time and where it goes, of one job or of many.

    step = (pipeline + data parallel + optimizer + fixed) x straggling x software

Parts sum to the step. Straggling grows with the logarithm of the number of nodes: every
collective waits for the slowest of its ranks (MegaScale, arXiv 2402.15627, figure 9).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serried.plan.time.constants import Constants, shipped
from serried.plan.time.exposed import ADAPTERS, HeldWeights, of_replicas, of_shards
from serried.plan.time.jobs import STACKS, Column, Jobs
from serried.plan.time.layer import LayerTimes, layer_times
from serried.plan.time.offloaded import host_step
from serried.plan.time.rates import Rates, rates
from serried.plan.time.stages import StageTimes, pipeline_time, stage_times


@dataclass(frozen=True, eq=False)
class StepTimes:
    """Holds seconds of a step, one number a job, whole and by part."""

    step: Column
    parts: dict[str, Column]
    """What a step consists of, by name; they sum to ``step``."""
    layer: LayerTimes
    stages: StageTimes
    held: HeldWeights


def step_times(jobs: Jobs, constants: Constants | None = None) -> StepTimes:
    """Returns how long a step of each job takes, and what of.

    Without constants, those that serried ships.
    """
    known = constants or shipped()
    reached = rates(jobs, known)
    layer = layer_times(jobs, reached, known)
    stages = stage_times(jobs, reached, known, layer)
    held = _held(jobs, layer)
    pipeline = pipeline_time(jobs, stages)
    microbatch = layer.total * (jobs.layers + jobs.mtp_layers) / jobs.pp
    is_fsdp = jobs.is_fsdp > 0
    data = np.where(
        is_fsdp,
        of_shards(jobs, reached, known, held, stages.whole),
        of_replicas(jobs, reached, known, held, microbatch),
    )
    optimizer = _optimizer(jobs, reached, known, held, microbatch)
    fixed = known.value("fixed") * np.where(jobs.cuda_graph > 0.8, 0.3, 1.0)
    alone = pipeline + data + optimizer + fixed
    nodes = np.log2(np.maximum(jobs.world_size / 8.0, 1.0))
    slower = (1.0 + known.value("straggling") * nodes) * _software(jobs, known)
    parts = _parts(jobs, layer, stages, pipeline)
    parts |= {
        "dp": data,
        "optimizer": optimizer,
        "fixed": fixed,
        "straggling": alone * (slower - 1),
    }
    return StepTimes(np.asarray(alone * slower), parts, layer, stages, held)


def _parts(
    jobs: Jobs, layer: LayerTimes, stages: StageTimes, pipeline: Column
) -> dict[str, Column]:
    """Returns the parts of the pipeline's time, the slowest rank's work and what else there is."""
    times = jobs.microbatches * stages.slowest_layers
    parts = {name: times * each for name, each in layer.parts.items()}
    layers = stages.slowest_layers * layer.total
    parts["embedding and output"] = jobs.microbatches * (stages.slowest - layers)
    parts["pp"] = jobs.microbatches * stages.message
    parts["bubble"] = pipeline - jobs.microbatches * (stages.slowest + stages.message)
    return parts


def _held(jobs: Jobs, layer: LayerTimes) -> HeldWeights:
    """Returns the weights of a rank, the ends of the model shared among its first and last."""
    weights, moe = layer.weights, np.where(jobs.is_moe, jobs.moe_layers + jobs.mtp_layers, 0.0)
    dense = np.where(jobs.is_moe, jobs.layers - jobs.moe_layers, jobs.layers)
    shared = jobs.matrices * jobs.hidden * jobs.shared_ffn / jobs.tp
    every = (jobs.layers + jobs.mtp_layers) * weights.attention_weights
    whole = every + dense * weights.feed_forward_weights + moe * shared
    ends = jobs.vocab * jobs.hidden * (2.0 - jobs.is_tied) / jobs.tp
    return HeldWeights(
        dense=whole / jobs.pp + ends / np.minimum(jobs.pp, 2.0),
        experts=np.where(jobs.is_moe, moe * weights.expert_weights / jobs.pp, 0.0),
    )


def _optimizer(
    jobs: Jobs, reached: Rates, constants: Constants, held: HeldWeights, microbatch: Column
) -> Column:
    """Returns the time to update the states of a rank, bound by memory; or by the host's."""
    replicas = np.maximum(jobs.world_size / (jobs.pp * jobs.ep * jobs.etp), 1.0)
    of_experts = np.where(
        jobs.is_fsdp > 0, jobs.shard_ranks, np.minimum(replicas, jobs.shard_ranks)
    )
    updated = held.dense / jobs.shard_ranks + held.experts / of_experts
    updated = np.where(jobs.is_lora > 0, ADAPTERS, 1.0) * updated
    here = constants.value("optimizer_bytes") * updated / reached.memory
    away = host_step(jobs, reached, updated, microbatch)
    return np.asarray(np.where(jobs.offloads_optimizer > 0, away, here))


def _software(jobs: Jobs, constants: Constants) -> Column:
    """Returns how much longer a step takes in the software that runs it than in Megatron."""
    names = ("stack_deepspeed", "stack_torch", "stack_jax")
    factors = np.array([1.0, *(constants.value(name) for name in names)])
    assert factors.size == len(STACKS)
    adapted = np.where(jobs.is_lora > 0, constants.value("lora"), 1.0)
    return np.asarray(factors[jobs.stack] * adapted)
