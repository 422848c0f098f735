from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.plan.catalog import model_named
from serried.plan.model.parameters import (
    active_parameters,
    adapter_parameters,
    layer_parameters,
    model_parameters,
    mtp_parameters,
    padded_vocab,
    stage_parameters,
)
from serried.plan.model.shape import ModelShape
from serried.plan.model.stages import ModelStage, stages_of

TABLES = Path(__file__).parents[2] / "goldens" / "tables"
LLAMA = ModelShape("llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256)


def rows(name: str) -> list[dict[str, str]]:
    lines = (TABLES / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


@pytest.mark.parametrize("row", [row for row in rows("perf_models.csv") if row["layers"]])
def test_published_models_have_as_many_matrices_as_their_table_says(row: dict[str, str]) -> None:
    bare = replace(
        model_named(row["model"]),
        has_bias=False,
        has_qkv_bias=False,
        has_o_bias=False,
        has_sinks=False,
        learned_positions=0,
    )
    found = model_parameters(bare)
    # The table leaves norms out, and rounds to millions.
    assert (found.total - found.norms) / 1e9 == pytest.approx(
        float(row["total_params_B"]), abs=6e-4
    )


@pytest.mark.parametrize("row", rows("sc21_table1_weak_scaling.csv"))
def test_gpts_have_the_parameters_of_their_formula_and_of_the_paper(row: dict[str, str]) -> None:
    model = model_named(f"sc21-{row['params_B'].removesuffix('.0')}b")
    hidden, layers = model.hidden, model.layers
    formula = 12 * layers * hidden**2 * (1 + 13 / (12 * hidden) + 53248 / (12 * layers * hidden))
    found = model_parameters(model).total
    # The formula leaves the last norm out.
    assert found - 2 * hidden == pytest.approx(formula, rel=1e-12)
    # The paper prints one decimal; its 1.7 is 1.65.
    assert found / 1e9 == pytest.approx(float(row["params_B"]), abs=0.06)


@pytest.mark.parametrize(
    ("words", "tp", "rows_made"),
    [(50257, 1, 50304), (50257, 2, 50432), (50257, 8, 51200), (32000, 8, 32768), (51200, 8, 51200)],
)
def test_megatron_pads_the_vocabulary_to_128_tp(words: int, tp: int, rows_made: int) -> None:
    assert padded_vocab(words, "megatron", tp) == rows_made


def test_other_frameworks_leave_the_vocabulary_alone() -> None:
    assert padded_vocab(50257, "fsdp", 8) == 50257
    assert padded_vocab(50257, "nanotron", 8) == 50264


def test_ranks_of_tp_hold_the_layer_between_them_and_norms_each() -> None:
    whole, quarter = layer_parameters(LLAMA, False), layer_parameters(LLAMA, False, 4)
    assert quarter.attention * 4 == whole.attention
    assert quarter.feed_forward * 4 == whole.feed_forward
    assert quarter.norms == whole.norms == 2 * 4096


def test_a_key_value_head_is_never_cut() -> None:
    # 8 heads of keys and values over 16 ranks: each has one, as two others share it.
    assert layer_parameters(LLAMA, False, 16).attention == 4096 * (2 * 2 * 128 + 2 * 128)


def test_experts_are_cut_by_ep_and_etp_and_the_rest_by_tp() -> None:
    mixtral = model_named("mixtral-8x7b")
    whole = layer_parameters(mixtral, True)
    part = layer_parameters(mixtral, True, 2, 4, 2)
    assert (part.experts * 8, part.attention * 2) == (whole.experts, whole.attention)
    assert part.router == whole.router == 8 * 4096


def test_what_makes_latent_keys_is_whole_on_each_rank() -> None:
    v3 = model_named("deepseek-v3")
    whole, half = layer_parameters(v3, False), layer_parameters(v3, False, 2)
    made = 7168 * (512 + 64) + 7168 * 1536
    assert 2 * (half.attention - made) == whole.attention - made


def test_stages_hold_the_model_between_them() -> None:
    parts = [stage_parameters(LLAMA, stage) for stage in stages_of(LLAMA, 4)]
    assert sum(part.total for part in parts) == model_parameters(LLAMA).total == 8_030_261_248
    assert [part.embedding > 0 for part in parts] == [True, False, False, False]
    assert [part.output > 0 for part in parts] == [False, False, False, True]


def test_a_tied_output_is_a_copy_where_the_embedding_is_elsewhere() -> None:
    tied = replace(LLAMA, is_tied=True)
    first, last = (stage_parameters(tied, stage) for stage in stages_of(tied, 2))
    assert first.embedding == last.output == 128256 * 4096
    assert stage_parameters(tied, stages_of(tied, 1)[0]).output == 0


def test_a_layer_of_mtp_is_a_layer_and_the_join_of_two_inputs() -> None:
    v3 = model_named("deepseek-v3")
    # DeepSeek-V3 is published with 685 B, of which 14 B are of MTP, the copies of both tables with
    # them.
    tables = 2 * 129280 * 7168
    assert (mtp_parameters(v3).total + tables) / 1e9 == pytest.approx(13.5, abs=0.1)
    last = stages_of(v3, 61)[-1]
    assert stage_parameters(v3, last).embedding == stage_parameters(v3, last).output > 0


def test_a_token_goes_through_37_billion_of_deepseek() -> None:
    assert active_parameters(model_named("deepseek-v3")) / 1e9 == pytest.approx(37.55, abs=0.01)


def test_adapters_of_llama_2_are_those_that_peft_makes() -> None:
    # MLPerf's LoRA: rank 16 on qkv and o of Llama 2 70B, fused; 44.6 million.
    model = model_named("llama2-70b")
    stage = ModelStage(0, range(80))
    count = adapter_parameters(model, stage, 16, ("qkv", "o"))
    assert count == 80 * 16 * ((8192 + 8192 + 2 * 1024) + (8192 + 8192))
    assert adapter_parameters(model, stage, 16, ("qkv", "o"), tp=8) * 8 == count


def test_adapters_of_experts_are_cut_by_ep() -> None:
    mixtral, stage = model_named("mixtral-8x7b"), ModelStage(0, range(32))
    assert adapter_parameters(mixtral, stage, 8, ("fc1", "fc2")) == 8 * adapter_parameters(
        mixtral, stage, 8, ("fc1", "fc2"), ep=8
    )


def test_lora_is_refused_where_there_is_none() -> None:
    with pytest.raises(InputError, match="not put on 'gate'; linear layers that have it: qkv, o"):
        adapter_parameters(LLAMA, ModelStage(0, range(1)), 8, ("gate",))
    with pytest.raises(InputError, match="LoRA on latent attention"):
        adapter_parameters(model_named("deepseek-v3"), ModelStage(0, range(1)), 8, ("qkv",))
