"""What a layer keeps is what the papers say, for every split, and falls where it is split."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.plan.catalog import model_named
from serried.plan.memory.implementation import IMPLEMENTATIONS
from serried.plan.memory.in_flight import chunks_in_flight
from serried.plan.memory.layer import LayerPlan, layer_items
from serried.plan.memory.recompute import layer_use
from serried.plan.model.shape import ExpertShape, ModelShape
from serried.plan.request import Recompute

TABLES = Path(__file__).parents[2] / "goldens" / "tables"
BUILT = IMPLEMENTATIONS["megatron"]
EAGER = LayerPlan(
    sequence=2048,
    has_flash_attention=False,
    has_hidden_dropout=True,
    has_attention_dropout=True,
)


def gpt(hidden: int, heads: int) -> ModelShape:
    sizes = heads, heads, hidden // heads, 4 * hidden, 51200
    return ModelShape("gpt", 2, hidden, *sizes, is_gated=False, norm="layer")


def kept(model: ModelShape, split: LayerPlan, *, is_moe: bool = False) -> float:
    return sum(each.token_bytes for each in layer_items(model, is_moe, split, BUILT))


@given(st.sampled_from([1, 2, 4, 8]), st.integers(1, 12), st.sampled_from([128, 2048]))
def test_a_gpt_layer_keeps_what_korthikanti_prints(tp: int, eighths: int, s: int) -> None:
    a = 8 * eighths
    h = 64 * a
    model, split = gpt(h, a), replace(EAGER, tp=tp, sequence=s)
    cut = replace(split, has_sequence_parallel=False)
    assert kept(model, split) == pytest.approx(h * (34 + 5 * a * s / h) / tp)
    assert kept(model, cut) == pytest.approx(h * (10 + 24 / tp + 5 * a * s / (h * tp)))
    selective = layer_use(model, False, split, BUILT, Recompute("selective"))
    assert selective.kept == pytest.approx(34 * h / tp)
    full = layer_use(model, False, split, BUILT, Recompute("full"))
    assert (full.kept, full.kept + full.again) == pytest.approx((2 * h / tp, kept(model, split)))


def rows(name: str) -> list[dict[str, str]]:
    lines = (TABLES / name).read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


SHAPES = {row["model"]: row for row in rows("korthikanti_table3_configs.csv")}
FIGURE_1 = rows("korthikanti_fig1_fig7_memory.csv")


@pytest.mark.parametrize("row", FIGURE_1, ids=[row["model"] for row in FIGURE_1])
def test_the_activations_of_figure_1_are_met_exactly(row: dict[str, str]) -> None:
    sizes = {name: int(text) for name, text in SHAPES[row["model"]].items() if name != "model"}
    model = gpt(sizes["hidden"], sizes["heads"])
    p, v = sizes["pp"], sizes["interleave_m"]
    name = "interleaved-1f1b" if v > 1 else "1f1b"
    chunks = chunks_in_flight(name, p, sizes["global_batch"], v, 0)[0]
    tokens = 2048 * sizes["micro_batch"] * int(chunks) * sizes["layers"] / (p * v)
    whole = replace(EAGER, tp=8, has_sequence_parallel=False)
    none = layer_use(model, False, whole, BUILT).kept
    less = replace(EAGER, tp=8)
    selective = layer_use(model, False, less, BUILT, Recompute("selective")).kept
    assert none * tokens / 2**30 == pytest.approx(float(row["fig1_act_none_GiB"]), rel=1e-12)
    assert selective * tokens / 2**30 == pytest.approx(
        float(row["fig1_act_sp_selective_GiB"]), rel=1e-12
    )


def test_a_modern_layer_keeps_12h_and_4gh_and_6f() -> None:
    llama = model_named("llama3-8b")
    h, f, a, kv = 4096, 14336, 32, 1024
    assert kept(llama, LayerPlan()) == 12 * h + 4 * kv + 6 * f + 4 * a
    assert kept(llama, LayerPlan(tp=4)) == (12 * h + 4 * kv + 6 * f + 4 * a) / 4


def test_keys_that_tp_ranks_share_are_kept_by_each() -> None:
    items = layer_items(model_named("llama3-8b"), False, LayerPlan(16), BUILT)
    of_name = {each.name: each.token_bytes for each in items}
    assert of_name["q, k, v"] == 2 * (2 * 128 + 2 * 128)


def test_experts_keep_as_much_however_many_ranks_have_them() -> None:
    mixtral = model_named("mixtral-8x7b")
    alone = kept(mixtral, LayerPlan(), is_moe=True)
    assert kept(mixtral, LayerPlan(ep=8), is_moe=True) == alone
    fuller = kept(mixtral, LayerPlan(ep=8, imbalance=1.5), is_moe=True)
    assert fuller - alone == pytest.approx((2 * 4096 + 6 * 14336 + 4) * 2 / 2)


def test_one_expert_for_every_token_keeps_what_a_feed_forward_does() -> None:
    dense = ModelShape("dense", 2, 64, 4, 4, 16, 256, 1000)
    one = replace(dense, experts=ExpertShape(1, 1, 256))
    more = kept(one, LayerPlan(), is_moe=True) - kept(dense, LayerPlan())
    assert more == 2 * 64 + 4 + 9  # what was routed, its weight, and the router


@pytest.mark.parametrize(("compute", "number"), [("fp8", 1), ("mxfp8", 33 / 32), ("nvfp4", 9 / 16)])
def test_narrow_formats_keep_narrow_what_matrices_read(compute: str, number: float) -> None:
    h, f, a, kv = 4096, 14336, 32, 1024
    wide = 4 * h + 2 * (h + 2 * kv) + 2 * h + 4 * f + 4 * a  # stream, q k v, output, fc1's, sums
    reads = 2 * h + h + f
    assert kept(model_named("llama3-8b"), LayerPlan(compute=compute)) == wide + number * reads


def test_exchanged_attention_keeps_its_output_twice() -> None:
    llama, ring = model_named("llama3-8b"), LayerPlan(cp=2)
    assert kept(llama, replace(ring, cp_exchange="a2a")) - kept(llama, ring) == 2 * 4096
