"""What a microbatch leaves in a stage, counted by hand for each kernel."""

from __future__ import annotations

from dataclasses import replace

import pytest

from serried.pipeline import Request, generate
from serried.plan.reference.activations import (
    held_output,
    kept_by_end,
    kept_by_layer,
    layer_bytes,
    layer_work,
    loss_work,
)
from serried.plan.reference.training import Gpt, Kernels, Training, kernels_of

MODEL = Gpt(hidden=8, ffn=24, heads=2, kv_heads=1, seq_len=4, vocabulary=16)
ONE = Training(
    MODEL,
    layers=(2,),
    schedule=generate("1f1b", Request(1, 2)),
    microbatch_size=3,
    kernels=Kernels("flash"),
)
TOKENS = 12
HALF = replace(ONE, dtype="bfloat16", sharing="replicate")


def test_a_layer_with_flash_keeps_per_place_what_the_picture_shows() -> None:
    stream, norms = 2 * 8, 2 * (8 + 1)
    attention = 8 + 4 + 4 + 8 + 8 + 2  # q k v, the output and its copy, two heads' sums
    assert kept_by_layer(ONE) == 4 * TOKENS * (stream + norms + attention + 4 * 24)


def test_16_bits_halve_all_but_roots_and_sums() -> None:
    numbers = 2 * 8 + 2 * 8 + 32 + 4 * 24
    assert kept_by_layer(HALF) == TOKENS * (2 * numbers + 4 * (2 + 2))


def test_the_published_formula_of_a_modern_layer_is_met() -> None:
    """12h + 4gh + 6f bytes a place with fused SwiGLU, + 2f unfused, + 4a for the sums.

    Counted as Korthikanti et al. do (arXiv 2205.05198), for GQA, SwiGLU and flash. Ours has one
    copy of attention's output more, and the roots of two norms.
    """
    sizes = Gpt(hidden=64, ffn=192, heads=4, kv_heads=2, seq_len=16, vocabulary=256)
    training = replace(HALF, model=sizes, microbatch_size=1)
    published = 12 * 64 + 4 * 32 + 6 * 192 + 2 * 192 + 4 * 4
    assert kept_by_layer(training) == 16 * (published + 2 * 64 + 2 * 4)


@pytest.mark.parametrize(
    ("kernel", "numbers"),
    [
        ("flash", 8 + 4 + 4 + 8 + 8 + 2),
        # Rows of sums are rounded up: 32 for each of 4 places.
        ("efficient", 8 + 4 + 4 + 8 + 2 * 8),
        # q, k and v for every head, weights of 4 places for each head, and the copy.
        ("math", 8 + 8 + 8 + 2 * 4 + 8),
    ],
)
def test_each_kernel_of_attention_keeps_its_own(kernel: str, numbers: int) -> None:
    training = replace(ONE, kernels=Kernels(kernel))  # type: ignore[arg-type]
    assert layer_bytes(training).attention == 4 * TOKENS * numbers


def test_attention_computed_again_keeps_its_inputs_and_what_wo_reads() -> None:
    again = replace(ONE, recompute="selective")
    assert layer_bytes(again).attention == 4 * TOKENS * (8 + 4 + 4 + 8)


def test_layers_computed_again_keep_the_stream_and_work_with_all_of_one() -> None:
    again = replace(ONE, recompute="full")
    assert kept_by_layer(again) == 4 * TOKENS * 8
    work = layer_work(ONE, weight_gradient=0)
    assert layer_work(again, weight_gradient=0) == work + kept_by_layer(ONE) - 4 * TOKENS * 8


def test_norms_that_are_not_fused_or_wider_keep_copies() -> None:
    unfused = replace(ONE, kernels=Kernels("flash", fuses_norm=False))
    assert layer_bytes(unfused).norms - layer_bytes(ONE).norms == 2 * 4 * TOKENS * 8
    assert layer_bytes(unfused).stream == layer_bytes(ONE).stream
    wide = replace(HALF, sharing="buffer")
    assert layer_bytes(wide).stream == 2 * layer_bytes(HALF).stream == 2 * 4 * TOKENS * 8


def test_dropout_keeps_a_mask_behind_attention_and_feed_forward() -> None:
    dropping = replace(ONE, model=replace(MODEL, has_dropout=True))
    assert kept_by_layer(dropping) - kept_by_layer(ONE) == 2 * TOKENS * 8


def test_tensor_parallel_ranks_share_heads_and_feed_forward_and_in_sequence_the_stream() -> None:
    model = replace(MODEL, kv_heads=2)
    one = layer_bytes(replace(ONE, model=model))
    two = layer_bytes(replace(ONE, model=model, tp=2))
    cut = layer_bytes(replace(ONE, model=model, tp=2, sequence_parallel=True))
    assert (two.attention, two.feed_forward) == (one.attention // 2, one.feed_forward // 2)
    assert (two.stream, two.norms) == (one.stream, one.norms)
    assert cut.stream == one.stream // 2
    # What norms gave is gathered and stays whole.
    assert cut.norms == 2 * 4 * (TOKENS * 8 + TOKENS // 2)


def test_context_parallel_ranks_share_places() -> None:
    ulysses = replace(ONE, cp=2, cp_form="ulysses")
    assert kept_by_layer(ulysses) == kept_by_layer(ONE) // 2
    ring = replace(HALF, cp=2, cp_form="ring")  # its output and sums are in float32
    assert layer_bytes(ring).attention == TOKENS // 2 * (2 * (8 + 4 + 4 + 8) + 4 * (8 + 2))
    passes = replace(HALF, cp=2, cp_form="ring-two-pass")  # weights of 4 places for 2 heads
    mask = 2 * 4
    assert layer_bytes(passes).attention == TOKENS // 2 * (48 + 2 * 4 * (4 + 2)) + mask


def test_ulysses_copies_what_it_sends_back_whatever_the_kernel() -> None:
    whole = replace(ONE, cp=2, cp_form="ulysses", kernels=Kernels("efficient"))
    alone = replace(whole, cp=1, microbatch_size=3)
    copy = 4 * TOKENS // 2 * 8
    assert layer_bytes(whole).attention == layer_bytes(alone).attention // 2 + copy


def test_the_end_keeps_its_norm_and_the_logarithms_of_all_shares() -> None:
    assert kept_by_end(ONE) == 4 * TOKENS * (8 + 1 + 8 + 16)
    assert kept_by_end(HALF) == TOKENS * (2 * 8 + 4 + 2 * 8 + 4 * 16)
    split = replace(ONE, tp=2, loss_parallel=True)
    assert kept_by_end(ONE) - kept_by_end(split) == 4 * TOKENS * 8
    assert held_output(HALF, is_last=True) == 2 * TOKENS * 16
    assert held_output(HALF, is_last=False) == 2 * TOKENS * 8
    assert loss_work(HALF) == 2 * 4 * TOKENS * 16
    assert loss_work(split) == 3 * 4 * TOKENS * 8


@pytest.mark.parametrize(
    ("device", "dtype", "shares_heads", "attention"),
    [
        ("cuda", "bfloat16", True, "flash"),
        ("cuda", "float16", False, "flash"),
        ("cuda", "float32", False, "efficient"),
        ("cuda", "float32", True, "math"),
        ("cuda", "float64", False, "math"),
        ("cpu", "float64", True, "flash"),
    ],
)
def test_a_device_attends_as_torch_chooses_there(
    device: str, dtype: str, shares_heads: bool, attention: str
) -> None:
    assert kernels_of(device, dtype, shares_heads=shares_heads).attention == attention


def test_attention_by_scores_may_be_where_backward_works_most() -> None:
    long = replace(ONE, model=replace(MODEL, seq_len=1024), microbatch_size=1)
    scores = replace(long, kernels=Kernels("math"))
    weights = 4 * 2 * 1024 * 1024
    gone = 4 * 1024 * (4 * 24 + 8)
    inner = 4 * 1024 * 24
    assert layer_work(long, weight_gradient=0) == 2 * inner
    assert layer_work(scores, weight_gradient=0) == 2 * weights - gone
