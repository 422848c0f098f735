from __future__ import annotations

import csv
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.plan.catalog import model_named
from serried.plan.model.flops import (
    adapted_flops,
    forward_flops,
    hardware_flops,
    keys_seen,
    model_flops,
)

TABLES = Path(__file__).parents[2] / "goldens" / "tables"


def rows(name: str) -> list[dict[str, str]]:
    lines = (TABLES / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


@pytest.mark.parametrize("row", [row for row in rows("perf_models.csv") if row["layers"]])
def test_published_models_take_the_flops_that_their_table_says(row: dict[str, str]) -> None:
    model = model_named(row["model"])
    found = [model_flops(model, 4096, by, has_mtp=False) / 1e9 for by in ("full", "causal")]
    told = [float(row[f"gf_per_token_{by}_4096"]) for by in ("full", "causal")]
    assert found == pytest.approx(told, rel=1e-4, abs=6e-4)


@pytest.mark.parametrize("row", rows("sc21_table1_weak_scaling.csv"))
def test_throughputs_of_gpts_give_the_aggregates_of_the_paper(row: dict[str, str]) -> None:
    """Recomputes each step's time from the printed TFLOP/s, and the aggregate from the time."""
    model = model_named(f"sc21-{row['params_B'].removesuffix('.0')}b")
    gpus, batch, per_gpu = (float(row[key]) for key in ("gpus", "global_batch", "tflops_per_gpu"))
    hidden, layers = model.hidden, model.layers
    paper = 96 * batch * 2048 * layers * hidden**2
    paper *= 1 + 2048 / (6 * hidden) + 51200 / (16 * layers * hidden)
    ours = model_flops(model, 2048, "sc21") * batch * 2048
    assert ours == pytest.approx(paper, rel=1e-12)
    seconds = paper / (per_gpu * 1e12 * gpus)
    # TFLOP/s a GPU are printed without decimals.
    assert ours / seconds / 1e15 == pytest.approx(
        float(row["aggregate_pflops"]), rel=0.5 / per_gpu + 1e-3
    )


KORTHIKANTI = {"22B": "22b", "175B": "175b", "530B": "530b", "1T": "1t"}


@pytest.mark.parametrize(
    ("sizes", "row"),
    list(
        zip(
            rows("korthikanti_table3_configs.csv"),
            rows("korthikanti_table5_end_to_end.csv")[:4],
            strict=True,
        )
    ),
)
def test_times_of_korthikanti_give_the_mfu_and_hfu_of_the_paper(
    sizes: dict[str, str], row: dict[str, str]
) -> None:
    model = model_named(f"korthikanti-{KORTHIKANTI[row['model']]}")
    tokens = int(sizes["global_batch"]) * 2048
    of_peak = float(row["iter_s_sp_plus_selective"]) * int(sizes["gpus"]) * 312e12
    found = [
        100 * model_flops(model, 2048, by) * tokens / of_peak for by in ("full", "korthikanti")
    ]
    told = [float(row["mfu_pct"]), float(row["hfu_pct"])]
    # The time of 22B is printed with three digits, 1.10 s.
    near = 0.25 if row["model"] == "22B" else 0.051
    assert found == pytest.approx(told, abs=near)


def test_causal_queries_see_half_the_keys_and_windows_what_they_let_through() -> None:
    assert keys_seen(4096, is_causal=True) == 2048
    assert keys_seen(1024, is_causal=True, window=4096) == 512
    seen = sum(min(query + 1, 128) for query in range(4096)) / 4096
    assert keys_seen(4096, is_causal=True, window=128) == pytest.approx(seen, rel=0.005)


def test_mtp_counts_as_a_layer_with_an_output_of_its_own() -> None:
    v3 = model_named("deepseek-v3")
    both = [forward_flops(v3, 4096, has_mtp=told) for told in (True, False)]
    assert both[0].output == 2 * both[1].output
    assert both[0].experts / both[1].experts == pytest.approx(59 / 58)
    assert both[0].joins == 4 * 7168**2


def test_recomputing_everything_runs_the_layers_four_times() -> None:
    llama = model_named("llama2-70b")
    forward = forward_flops(llama, 4096, is_causal=True)
    none, core, full = (hardware_flops(llama, 4096, kind) for kind in ("none", "selective", "full"))
    assert none == pytest.approx(model_flops(llama, 4096, "causal"))
    assert core - none == pytest.approx(forward.core)
    assert full - none == pytest.approx(forward.layers + forward.core)


def test_recomputed_modules_run_their_own_flops_again_and_norms_none() -> None:
    llama = model_named("llama2-70b")
    forward = forward_flops(llama, 4096, is_causal=True)
    none = hardware_flops(llama, 4096, "none")
    again = {
        modules: hardware_flops(llama, 4096, "selective", modules=modules) - none
        for modules in [("layernorm",), ("mlp",), ("core_attn", "mlp")]
    }
    assert again["layernorm",] == 0
    assert again["mlp",] == pytest.approx(forward.feed_forward)
    assert again["core_attn", "mlp"] == pytest.approx(forward.feed_forward + forward.core)


def test_experts_and_latent_projections_run_again_where_they_are_recomputed() -> None:
    v3 = model_named("deepseek-v3")
    forward = forward_flops(v3, 4096, is_causal=True)
    none = hardware_flops(v3, 4096, "none")
    moe = hardware_flops(v3, 4096, "selective", modules=["moe"]) - none
    shared = hardware_flops(v3, 4096, "selective", modules=["shared_experts"]) - none
    up = hardware_flops(v3, 4096, "selective", modules=["mla_up_proj"]) - none
    assert moe == pytest.approx(forward.experts + forward.router + shared)
    assert up == 2 * 61 * (512 * 128 * 256 + 128 * 192 * 1536)


def test_a_part_of_the_layers_recomputed_runs_that_part_again() -> None:
    llama = model_named("llama2-70b")
    none, whole = (hardware_flops(llama, 4096, kind) for kind in ("none", "full"))
    eighth = hardware_flops(llama, 4096, "full", share=1 / 8)
    assert eighth - none == pytest.approx((whole - none) / 8)


def test_frozen_weights_save_a_third() -> None:
    llama = model_named("llama2-70b")
    share = adapted_flops(llama, 8192, 0) / model_flops(llama, 8192)
    assert 2 / 3 < share < 0.7


def test_an_unknown_convention_is_answered_with_those_there_are() -> None:
    with pytest.raises(InputError, match="conventions are full, causal, sc21, korthikanti"):
        model_flops(model_named("llama2-7b"), 4096, "nvidia")
