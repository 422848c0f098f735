"""What a rank holds of its weights: parameters, gradients, optimizer, and copies to compute with.

N dense weights of a rank's stages, over cp dp ranks; E of experts, over their own

ZeRO                 parameters   gradients   optimizer
0                        N            N           N
1, Megatron's            N            N         N / ranks         x the recipe's bytes each
2                        N          N / ranks   N / ranks
3, FSDP              N / ranks      N / ranks   N / ranks     + units gathered to compute

copies in 8 or 4 bits    2 a weight, by rows and by columns      of linear layers; ZeRO 3: of 2
blank gradients          2 a weight of each shape that there is  Transformer Engine
gathered units           2 layers and what is no layer's         ZeRO 3
fresh gradients          2 layers, before they are cut           ZeRO 2 and 3
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from serried.errors import InputError, listed
from serried.plan.memory.implementation import Implementation
from serried.plan.memory.linears import layer_linears
from serried.plan.memory.numbers import OF_A_NUMBER, is_narrow, weight_copy_bytes
from serried.plan.model.parameters import (
    ParameterCount,
    layer_parameters,
    padded_vocab,
)
from serried.plan.model.stages import ModelStage
from serried.plan.model_states import largest_share
from serried.plan.precision import Precision, recipe
from serried.plan.request import PlanRequest
from serried.plan.time.chips import generation

GATHERED_UNITS = 2
"""Layers whose weights ZeRO 3 has whole at a time: one that computes, one that is fetched ahead."""


@dataclass(frozen=True)
class WeightBytes:
    """Holds the bytes that a rank's weights take, by what they are for; numbers or arrays."""

    parameters: Any
    gradients: Any
    optimizer: Any
    copies: Any = 0
    """In 8 or 4 bits."""
    blank: Any = 0
    """Gradients that are never filled, of each shape one."""
    gathered: Any = 0
    fresh: Any = 0
    """Gradients on their way: before they are cut, or summed, or widened for the optimizer."""


def state_bytes(count: Any, ranks: Any, zero: int, kept: Precision) -> tuple[Any, Any, Any]:
    """Returns bytes of parameters, gradients and optimizer of so many weights, cut by ZeRO.

    Counts and ranks are numbers or arrays. Source: ZeRO, arXiv 1910.02054, section 5.

    >>> from serried.plan.precision import recipe
    >>> state_bytes(1000, 4, 1, recipe("fp32-grads"))
    (2000, 4000, 3000)
    """
    whole, own = count, largest_share(count, ranks)
    return (
        kept.parameter_bytes * (own if zero >= 3 else whole),
        kept.gradient_bytes * (own if zero >= 2 else whole),
        kept.optimizer_bytes * (own if zero >= 1 else whole),
    )


@dataclass(frozen=True)
class Sharing:
    """Says how weights are kept, and over how many ranks their states are cut."""

    precision: Precision
    zero: int
    dense_ranks: Any
    expert_ranks: Any
    is_kept_after_forward: bool = False
    compute: str = "bf16"
    is_stepped_away: bool = False
    """Whether the optimizer steps on the host, to which it is offloaded."""
    frozen_bytes: float | None = None
    """Bytes of a weight that is not trained, where adapters alone are."""
    has_narrow_parameters: bool = False
    """Whether a linear layer's weight is kept in what is computed in alone."""
    needs_transposes: bool = True
    """Whether the GPU multiplies 8 bits in one order of axes alone."""


def sharing_of(asked: PlanRequest) -> Sharing:
    """Returns how a request keeps weights, and over how many ranks it cuts their states."""
    dense, experts = asked.degrees.shard_ranks, asked.degrees.expert_dp
    if asked.shard_ranks is not None:
        dense, experts = cut_ranks(asked.shard_ranks, dense, experts)
    return Sharing(
        precision=recipe(asked.states),
        zero=asked.zero,
        dense_ranks=dense,
        expert_ranks=experts,
        is_kept_after_forward=asked.is_kept_after_forward,
        compute=asked.compute,
        is_stepped_away=asked.offload == "optimizer",
        frozen_bytes=_frozen_bytes(asked),
        has_narrow_parameters=asked.options.get("fp8_param_gather") == "true",
        needs_transposes=generation(asked.cluster.gpu) != "blackwell",
    )


def cut_ranks(most: int, dense: Any, experts: Any) -> tuple[Any, Any]:
    """Returns ranks that share states where ``most`` do: experts' are as many times fewer.

    Counts are numbers or arrays. Source: Megatron-LM d98e8a64, parallel_state.py, the groups of
    ``--num-distributed-optimizer-instances``.

    >>> cut_ranks(2, 4, 2)
    (2, 1)
    """
    cut = np.minimum(most, dense)
    times = dense // cut
    if isinstance(dense, int):
        return int(cut), max(1, int(experts // times))
    return cut, np.maximum(1, experts // times)


def _frozen_bytes(asked: PlanRequest) -> float | None:
    """Returns the bytes of a frozen weight: as it is computed with, or in a format that is told.

    Megatron-Bridge and NeMo keep it in 8 bits with ``fp8_param_gather``; ``frozen_format`` tells
    any other. Raises InputError for a format that is not known.
    """
    if asked.lora is None:
        return None
    told = asked.options.get("frozen_format")
    if told is None and asked.options.get("fp8_param_gather") == "true":
        told = asked.compute
    if told is None:
        return recipe(asked.states).computed_bytes
    if told not in OF_A_NUMBER:
        raise InputError(
            "frozen weights are not kept in '{format}'; formats are {known}",
            format=told[:40],
            known=listed(OF_A_NUMBER, limit=len(OF_A_NUMBER)),
        )
    return OF_A_NUMBER[told]


@dataclass(frozen=True)
class RankWeights:
    """Holds how many weights a rank has, by what follows from their number; numbers or arrays."""

    dense: Any
    experts: Any
    ends: Any
    """Embedding, positions and output, which are no layer's."""
    linears: Any
    """Those of linear layers, which have copies in 8 or 4 bits."""
    largest_layer: Any
    shapes: Any
    """Weights of one linear layer of each shape that there is."""
    adapters: Any = 0

    @property
    def total(self) -> Any:
        """All of them but the adapters."""
        return self.dense + self.experts


def rank_weights(asked: PlanRequest, stages: tuple[ModelStage, ...]) -> RankWeights:
    """Returns the weights that one rank has of some stages."""
    model, degrees = asked.model, asked.degrees
    split = degrees.tp, degrees.ep, degrees.etp
    whole = sum((asked.parameters(each) for each in stages), ParameterCount())
    layers = [model.is_moe(layer) for stage in stages for layer in stage.layers]
    linears = {kind: layer_linears(model, kind, *split) for kind in set(layers)}
    shapes = {(each.outputs, each.inputs) for kind in linears for each in linears[kind]}
    if any(stage.has_output for stage in stages):
        rows = padded_vocab(model.vocab, asked.framework, degrees.tp) // degrees.tp
        shapes.add((rows, model.hidden))
    return RankWeights(
        dense=whole.dense,
        experts=whole.experts,
        ends=whole.embedding + whole.positions + whole.output,
        linears=sum(each.num_weights for kind in layers for each in linears[kind]),
        largest_layer=max(
            (layer_parameters(model, kind, *split).total for kind in linears), default=0
        ),
        shapes=sum(rows * columns for rows, columns in shapes),
        adapters=sum(asked.trained(each) for each in stages) if asked.lora else 0,
    )


def weight_bytes(weights: RankWeights, sharing: Sharing, built: Implementation) -> WeightBytes:
    """Returns what a rank's weights take."""
    kept = sharing.precision
    each = weight_copy_bytes(sharing.compute, needs_transposes=sharing.needs_transposes)
    copies = each * weights.linears
    if not built.keeps_narrow_weights:
        copies = 0 * weights.linears
    elif sharing.zero >= 3:  # what is gathered is freed, and its copies with it
        copies = each * np.minimum(GATHERED_UNITS * weights.largest_layer, weights.linears)
    elif sharing.has_narrow_parameters and is_narrow(sharing.compute):
        whole = kept.parameter_bytes if sharing.frozen_bytes is None else sharing.frozen_bytes
        copies = copies - whole * weights.linears
    gathered, fresh = _units(weights, sharing)
    if sharing.frozen_bytes is not None:
        held = _adapted(weights, sharing, sharing.frozen_bytes)
        return WeightBytes(*held, copies, gathered=gathered)
    zero, cut = sharing.zero, bool(sharing.zero)
    dense = state_bytes(weights.dense, sharing.dense_ranks, zero, kept)
    experts = state_bytes(weights.experts, sharing.expert_ranks, zero, kept)
    own = largest_share(weights.dense, sharing.dense_ranks if cut else 1)
    own = own + largest_share(weights.experts, sharing.expert_ranks if cut else 1)
    tables = largest_share(weights.ends, sharing.dense_ranks if cut else 1)
    fresh = fresh + (0 if sharing.is_stepped_away else built.step_bytes) * own
    if built.keeps_buckets and not cut:
        fresh = fresh + kept.reduced_bytes * (sharing.dense_ranks > 1) * weights.total
    if built.keeps_narrow_gradients and kept.gradient_bytes > kept.computed_bytes:
        fresh = fresh + kept.computed_bytes * weights.total
    return WeightBytes(
        parameters=dense[0] + experts[0],
        gradients=dense[1] + experts[1],
        optimizer=dense[2] + experts[2] + kept.table_moment_bytes * tables,
        copies=copies,
        blank=2 * weights.shapes if built.keeps_blank_gradients else 0,
        gathered=gathered,
        fresh=fresh,
    )


def _adapted(weights: RankWeights, sharing: Sharing, frozen: float) -> tuple[Any, Any, Any]:
    """Returns the frozen base and the adapters' states."""
    kept = sharing.precision
    base = largest_share(weights.total, sharing.dense_ranks if sharing.zero >= 3 else 1)
    trained = state_bytes(weights.adapters, sharing.dense_ranks, sharing.zero, kept)
    return frozen * base + trained[0], trained[1], trained[2]


def _units(weights: RankWeights, sharing: Sharing) -> tuple[Any, Any]:
    """Returns what gathered weights take, and gradients before they are cut."""
    if sharing.zero < 2:
        return 0, 0
    kept, layer, ends = sharing.precision, weights.largest_layer, weights.ends
    largest = np.maximum(layer, ends)
    fresh = kept.computed_bytes * (layer + largest) + kept.reduced_bytes * largest
    if sharing.zero < 3:
        return 0, fresh
    units = np.minimum(GATHERED_UNITS * layer + ends, weights.total)
    gathered = weights.total if sharing.is_kept_after_forward else units
    return kept.computed_bytes * gathered, fresh
