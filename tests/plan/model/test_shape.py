from __future__ import annotations

import pytest

from serried.errors import InputError
from serried.plan.model.shape import ExpertShape, LatentAttention, ModelShape

LLAMA = ModelShape("llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256)


def test_latent_attention_has_its_own_width_of_queries_and_values() -> None:
    latent = LatentAttention(kv_rank=512, nope_dim=128, rope_dim=64, v_dim=128, q_rank=1536)
    deepseek = ModelShape("v3", 61, 7168, 128, 128, 192, 18432, 129280, latent=latent)
    assert (deepseek.query_dim, deepseek.value_dim) == (128 * 192, 128 * 128)


def test_dense_layers_come_off_those_with_experts() -> None:
    experts = ExpertShape(count=256, top_k=8, ffn=2048, shared_ffn=2048, dense_layers=3)
    shape = ModelShape("v3", 61, 7168, 128, 128, 192, 18432, 129280, experts=experts)
    assert shape.num_moe_layers == 58
    assert LLAMA.num_moe_layers == 0


def test_a_size_below_one_is_named() -> None:
    with pytest.raises(InputError, match="bad has heads=0; it is at least 1"):
        ModelShape("bad", 1, 8, 0, 1, 8, 8, 8)


def test_heads_that_do_not_share_keys_evenly_are_refused() -> None:
    with pytest.raises(InputError, match="30 query heads, and 8 heads"):
        ModelShape("bad", 1, 8, 30, 8, 8, 8, 8)


def test_a_token_cannot_go_through_more_experts_than_there_are() -> None:
    with pytest.raises(InputError, match="9 of 8 experts"):
        ExpertShape(count=8, top_k=9, ffn=8)
