"""What a rank holds of its weights: parameters, gradients, optimizer, and copies to compute with.

N dense weights of a rank's stages, over cp dp ranks; E of experts, over their own

ZeRO                 parameters   gradients   optimizer
0                        N            N           N
1, Megatron's            N            N         N / ranks         x the recipe's bytes each
2                        N          N / ranks   N / ranks
3, FSDP              N / ranks      N / ranks   N / ranks     + units gathered to compute

copies in 8 or 4 bits    2 a weight, by rows and by columns      of linear layers
blank gradients          2 a weight of each shape that there is  Transformer Engine
gathered units           2 layers and what is no layer's         ZeRO 3
fresh gradients          2 layers, before they are cut           ZeRO 2 and 3
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from serried.plan.memory.implementation import Implementation
from serried.plan.memory.linears import layer_linears
from serried.plan.memory.numbers import is_narrow, weight_copy_bytes
from serried.plan.model.parameters import (
    ParameterCount,
    layer_parameters,
    padded_vocab,
)
from serried.plan.model.stages import ModelStage
from serried.plan.model_states import largest_share
from serried.plan.precision import Precision, recipe
from serried.plan.request import PlanRequest

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
    """Says how weights are kept and over how many ranks their states are cut."""

    precision: Precision
    zero: int
    dense_ranks: Any
    expert_ranks: Any
    is_kept_after_forward: bool = False


def weight_bytes(
    asked: PlanRequest, stages: tuple[ModelStage, ...], built: Implementation
) -> WeightBytes:
    """Returns what one rank has of the weights of its stages."""
    degrees, sharing = asked.degrees, sharing_of(asked)
    whole = sum((asked.parameters(each) for each in stages), ParameterCount())
    if asked.lora is None:
        held = _trained(sharing, whole)
    else:
        held = _adapted(sharing, whole, sum(asked.trained(each) for each in stages))
    shapes = set(_shapes(asked, stages))
    blank = built.keeps_blank_gradients and asked.lora is None
    gathered, fresh = _units(asked, stages, sharing, whole)
    linears = sum(
        each.num_weights
        for stage in stages
        for layer in stage.layers
        for each in layer_linears(
            asked.model, asked.model.is_moe(layer), degrees.tp, degrees.ep, degrees.etp
        )
    )
    copies = weight_copy_bytes(asked.compute) * linears
    if asked.options.get("fp8_param_gather") == "true" and is_narrow(asked.compute):
        copies -= sharing.precision.parameter_bytes * linears
    own = largest_share(whole.dense, sharing.dense_ranks if asked.zero else 1)
    own += largest_share(whole.experts, sharing.expert_ranks if asked.zero else 1)
    fresh += built.step_bytes * own
    kept = sharing.precision
    if built.keeps_narrow_gradients and kept.gradient_bytes > kept.computed_bytes:
        fresh += kept.computed_bytes * whole.total
    return WeightBytes(
        *held,
        copies=copies,
        blank=sum(2 * rows * columns for rows, columns in shapes) if blank else 0,
        gathered=gathered,
        fresh=0 if asked.lora else fresh,
    )


def sharing_of(asked: PlanRequest) -> Sharing:
    """Returns how a request keeps weights, and over how many ranks it cuts their states."""
    degrees = asked.degrees
    most = asked.shard_ranks or degrees.shard_ranks
    return Sharing(
        precision=recipe(asked.states),
        zero=asked.zero,
        dense_ranks=min(most, degrees.shard_ranks),
        expert_ranks=min(most, degrees.expert_dp),
        is_kept_after_forward=asked.is_kept_after_forward,
    )


def _trained(sharing: Sharing, whole: ParameterCount) -> tuple[Any, Any, Any]:
    dense = state_bytes(whole.dense, sharing.dense_ranks, sharing.zero, sharing.precision)
    experts = state_bytes(whole.experts, sharing.expert_ranks, sharing.zero, sharing.precision)
    return dense[0] + experts[0], dense[1] + experts[1], dense[2] + experts[2]


def _adapted(sharing: Sharing, whole: ParameterCount, adapters: int) -> tuple[Any, Any, Any]:
    """Returns the frozen base, in what is computed with, and the adapters' states."""
    kept = sharing.precision
    base = largest_share(whole.total, sharing.dense_ranks if sharing.zero >= 3 else 1)
    trained = state_bytes(adapters, sharing.dense_ranks, sharing.zero, kept)
    return kept.computed_bytes * base + trained[0], trained[1], trained[2]


def _shapes(asked: PlanRequest, stages: tuple[ModelStage, ...]) -> Iterator[tuple[int, int]]:
    """Yields rows and columns of each weight of a linear layer on the rank."""
    model, degrees = asked.model, asked.degrees
    kinds = {model.is_moe(layer) for stage in stages for layer in stage.layers}
    for is_moe in kinds:
        for each in layer_linears(model, is_moe, degrees.tp, degrees.ep, degrees.etp):
            yield each.outputs, each.inputs
    if any(stage.has_output for stage in stages):
        yield padded_vocab(model.vocab, asked.framework, degrees.tp) // degrees.tp, model.hidden


def _units(
    asked: PlanRequest,
    stages: tuple[ModelStage, ...],
    sharing: Sharing,
    whole: ParameterCount,
) -> tuple[Any, Any]:
    """Returns what gathered weights take, and gradients before they are cut."""
    if sharing.zero < 2:
        return 0, 0
    model, degrees = asked.model, asked.degrees
    kinds = {model.is_moe(layer) for stage in stages for layer in stage.layers}
    sizes = [
        layer_parameters(model, is_moe, degrees.tp, degrees.ep, degrees.etp).total
        for is_moe in kinds
    ]
    largest = max(sizes, default=0)
    ends = whole.embedding + whole.positions + whole.output
    units = GATHERED_UNITS * largest + ends
    fresh = sharing.precision.computed_bytes * (largest + max(largest, ends))
    fresh += sharing.precision.reduced_bytes * max(largest, ends)
    if sharing.zero < 3:
        return 0, fresh
    gathered = whole.total if sharing.is_kept_after_forward else min(units, whole.total)
    return sharing.precision.computed_bytes * gathered, fresh
