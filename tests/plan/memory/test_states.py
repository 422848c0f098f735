"""What weights take on a rank, by ZeRO, recipe, and what a framework keeps beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from serried.errors import InputError
from serried.frameworks import Sizes, layout
from serried.plan.catalog import cluster_named, model_named
from serried.plan.degrees import Degrees
from serried.plan.memory.implementation import (
    IMPLEMENTATIONS,
    Implementation,
    implementation_of,
)
from serried.plan.memory.states import (
    WeightBytes,
    rank_weights,
    sharing_of,
    state_bytes,
    weight_bytes,
)
from serried.plan.model_states import model_states
from serried.plan.precision import RECIPES, recipe
from serried.plan.request import LowRank, PlanRequest

TORCH, MEGATRON = IMPLEMENTATIONS["torch"], IMPLEMENTATIONS["megatron"]
LLAMA, MIXTRAL = model_named("llama3-8b"), model_named("mixtral-8x7b")
PARAMETERS, LAYER = 8_030_261_248, 218_112_000
"""Of Llama 3 8B, and of one of its layers."""


def asked(**told: Any) -> PlanRequest:
    degrees = Degrees(**told.pop("degrees", {"dp": 8}))
    told.setdefault("global_batch", degrees.dp)
    return PlanRequest(told.pop("model", LLAMA), cluster_named("dgx-h100"), degrees, **told)


def weights(built: Implementation = MEGATRON, **told: Any) -> WeightBytes:
    request = asked(**told)
    return weight_bytes(rank_weights(request, request.stages), sharing_of(request), built)


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
@pytest.mark.parametrize("name", RECIPES)
def test_states_are_those_of_the_rules_of_sharding(name: str, zero: int) -> None:
    held = model_states(layout("deepspeed", Sizes(8, zero=zero)), 1_000_001, name).held
    found = state_bytes(1_000_001, 8, zero, recipe(name))
    assert found == (held.parameters, held.gradients, held.optimizer)


def test_states_of_many_jobs_are_counted_at_once() -> None:
    counts, ranks = np.array([1000, 1001]), np.array([1, 8])
    found = state_bytes(counts, ranks, 1, recipe("fp32-grads"))
    assert [each.tolist() for each in found] == [[2000, 2002], [4000, 4004], [12000, 1512]]


def test_experts_are_cut_over_their_own_ranks() -> None:
    told: dict[str, Any] = {"model": MIXTRAL, "degrees": {"dp": 8, "ep": 8}}
    found, request = weights(**told), asked(**told)
    count = request.parameters(request.stages[0])
    assert found.optimizer == 12 * (count.dense // 8 + count.experts)


def test_blank_gradients_are_kept_once_a_shape() -> None:
    shapes = {(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (128256, 4096)}
    assert weights().blank == sum(2 * rows * columns for rows, columns in shapes)
    assert weights(TORCH).blank == 0


def test_fused_sums_of_gradients_alone_need_blank_ones() -> None:
    apart = implementation_of("megatron", {"gradient_accumulation_fusion": "false"})
    assert weights(apart).blank == 0
    assert weights(apart).optimizer == weights().optimizer


def test_muon_keeps_both_moments_of_adam_for_embeddings_and_output() -> None:
    found = weights(states="muon", zero=0).optimizer
    assert found == 8 * PARAMETERS + 4 * 2 * 128256 * 4096


def test_several_optimizer_instances_cut_experts_as_many_times_less() -> None:
    told: dict[str, Any] = {"model": MIXTRAL, "degrees": {"dp": 8, "ep": 2}}
    count = asked(**told).parameters(asked(**told).stages[0])
    found = weights(**told, shard_ranks=4).optimizer
    assert found == 12 * (-(-count.dense // 4) + -(-count.experts // 2))


def test_zero_3_has_two_layers_whole_and_what_is_no_layers() -> None:
    ends = 2 * 128256 * 4096
    found = weights(TORCH, zero=3, framework="fsdp", states="fsdp2-mixed")
    assert found.gathered == 2 * (2 * LAYER + ends)
    kept = weights(TORCH, zero=3, is_kept_after_forward=True, framework="fsdp")
    assert kept.gathered == 2 * PARAMETERS
    assert weights(TORCH, zero=1).gathered == 0


@pytest.mark.parametrize(
    ("compute", "copies"), [("bf16", 0), ("fp8", 2), ("mxfp8", 2.0625), ("nvfp4", 1.125)]
)
def test_narrow_weights_lie_beside_the_parameters(compute: str, copies: float) -> None:
    linears = 32 * (LAYER - 2 * 4096)
    assert weights(compute=compute).copies == copies * linears
    instead = weights(compute=compute, options={"fp8_param_gather": "true"}).copies
    assert instead == ((copies - 2) * linears if copies else 0)


def test_adapters_alone_have_gradients_and_an_optimizer() -> None:
    found = weights(lora=LowRank(16), zero=0, states="fp32-grads")
    adapters = 16 * 32 * ((4096 + 6144) + (4096 + 4096))
    assert found.parameters == 2 * PARAMETERS + 2 * adapters
    assert (found.gradients, found.optimizer) == (4 * adapters, 12 * adapters)
    assert found.blank == found.fresh == 0


def test_deepspeed_widens_gradients_of_what_a_rank_updates() -> None:
    built = IMPLEMENTATIONS["megatron-deepspeed"]
    own = PARAMETERS // 8
    assert weights(built, framework="deepspeed", states="fp16-adam").fresh == 4 * own
    wide = weights(built, framework="deepspeed", states="fp32-grads").fresh
    assert wide == 4 * own + 2 * PARAMETERS


def test_hybrid_sharding_cuts_over_fewer_ranks() -> None:
    whole = weights(TORCH, zero=3, framework="fsdp")
    hybrid = weights(TORCH, zero=3, framework="fsdp", shard_ranks=4)
    assert hybrid.optimizer == 2 * whole.optimizer


def test_a_frozen_base_can_lie_in_fewer_bits() -> None:
    told: dict[str, Any] = {"lora": LowRank(16), "zero": 0}
    wide = weights(**told).parameters
    for name, number in (("fp8", 1), ("nvfp4", 9 / 16)):
        narrow = weights(**told, options={"frozen_format": name}).parameters
        assert wide - narrow == (2 - number) * PARAMETERS
    with pytest.raises(InputError, match="not kept in 'int3'"):
        weights(**told, options={"frozen_format": "int3"})


def test_torch_copies_whole_gradients_into_buckets() -> None:
    told: dict[str, Any] = {"framework": "fsdp", "states": "fp32", "zero": 0}
    assert weights(TORCH, **told).fresh == 4 * PARAMETERS
    assert weights(TORCH, degrees={"dp": 1}, **told).fresh == 0
