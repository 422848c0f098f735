"""What stays under recompute, and what comes back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from serried.errors import InputError
from serried.plan.catalog import model_named
from serried.plan.memory.implementation import IMPLEMENTATIONS
from serried.plan.memory.layer import RECOMPUTED, LayerPlan, layer_items
from serried.plan.memory.recompute import LayerUse, layer_use
from serried.plan.request import LowRank, Recompute

BUILT = IMPLEMENTATIONS["megatron"]
DEEPSEEK, LLAMA = model_named("deepseek-v3"), model_named("llama3-8b")


def use(*modules: str, is_moe: bool = True) -> LayerUse:
    recompute = Recompute("selective", modules=modules) if modules else Recompute()
    return layer_use(DEEPSEEK, is_moe, LayerPlan(), BUILT, recompute)


SAVED = {
    "core_attn": 4 * 128,
    "layernorm": 4 * 7168,
    "mla_up_proj": 2 * 128 * (2 * 192 + 128) + 2 * (1536 + 512),
    "shared_experts": 6 * 2048,
    "moe": 8 * (2 * 7168 + 4 + 6 * 2048) + 6 * 2048 + 9 * 256,
    "moe_act": 8 * 2 * 2048,
}


@pytest.mark.parametrize("module", SAVED)
def test_a_module_saves_what_it_keeps_for_itself(module: str) -> None:
    assert use().kept - use(module).kept == pytest.approx(SAVED[module])
    assert use(module).again == pytest.approx(SAVED[module])


def test_a_dense_feed_forward_is_recomputed_by_its_own_name() -> None:
    assert use(is_moe=False).kept - use("mlp", is_moe=False).kept == 6 * 18432
    assert use().kept == use("mlp").kept


def test_modules_save_together_no_more_than_all_of_a_layer() -> None:
    every = use(*(each for each in RECOMPUTED if each != "op"))
    assert 0 < every.kept < min(use(module).kept for module in SAVED)
    assert every.kept + every.again == pytest.approx(use().kept)


def test_operators_keep_attention_and_every_other_matrix() -> None:
    told = Recompute("selective", modules=("op",))
    h, kv, f = 4096, 1024, 14336
    kept = layer_use(LLAMA, False, LayerPlan(), BUILT, told).kept
    assert kept == 2 * h + 2 * (h + 2 * kv) + 4 * 32 + 2 * h + 2 * f


def test_no_module_is_taken_for_another() -> None:
    with pytest.raises(InputError, match="'attention' is not recomputed"):
        use("attention")


def test_between_the_halves_stay_the_papers_32h() -> None:
    gpt = model_named("gpt3-175b")
    assert layer_use(gpt, False, LayerPlan(), BUILT).between == 32 * gpt.hidden


def test_frozen_weights_need_no_inputs_but_those_with_adapters() -> None:
    lora = LowRank(16, ("qkv", "o"))
    frozen = layer_use(LLAMA, False, LayerPlan(), BUILT, lora=lora)
    trained = layer_use(LLAMA, False, LayerPlan(), BUILT)
    # The first norm's output stays for qkv, the second's and what fc2 reads are let go of.
    assert trained.kept - frozen.kept == 2 * 14336 + 2 * 4096
    assert frozen.between == 0


def test_backward_of_experts_works_with_copies_of_all_routed_tokens() -> None:
    assert use().worked == 2 * 7168 + BUILT.dispatch_copies * 8 * 2 * 7168
    few = replace(BUILT, dispatch_copies=0)
    assert layer_use(DEEPSEEK, True, LayerPlan(), few).worked == 2 * 7168


def test_items_are_named_once() -> None:
    names = [each.name for each in layer_items(DEEPSEEK, True, LayerPlan(), BUILT)]
    assert len(names) == len(set(names))
