"""Types of weights and gradients in 16 bits, and float16's loss scale."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from serried.errors import SerriedError
from serried.runtime.job.settings import ModelSizes, TrainSettings
from serried.runtime.model.model import Stage
from serried.runtime.model.precision import LossScale, policy_of, set_dtypes

SIZES = ModelSizes(layers=1, hidden=32, heads=4, seq_len=16)
ONE = TrainSettings(world_size=1, model=SIZES)


def types(settings: TrainSettings) -> dict[str, torch.dtype]:
    """Returns the types of a stage's matrices, norms and rotary angles."""
    stage = Stage(SIZES, stage=0, num_stages=1)
    set_dtypes(stage, settings)
    names = {"matrices": stage.output.weight, "norms": stage.norm.weight, "angles": stage.angles}
    return {name: tensor.dtype for name, tensor in names.items()}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_wide_types_hold_everything(dtype: str) -> None:
    settings = replace(ONE, dtype=dtype)  # type: ignore[arg-type]
    assert set(types(settings).values()) == {getattr(torch, dtype)}
    assert policy_of(settings) is None


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_torch_s_own_sharding_keeps_float32_weights_and_computes_narrow(dtype: str) -> None:
    settings = replace(ONE, dtype=dtype)  # type: ignore[arg-type]
    policy = policy_of(settings)
    assert set(types(settings).values()) == {torch.float32}
    assert policy is not None
    assert (policy.param_dtype, policy.reduce_dtype) == (getattr(torch, dtype), torch.float32)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_with_buffers_matrices_are_narrow_and_norms_and_angles_are_not(dtype: str) -> None:
    settings = replace(ONE, dtype=dtype, dp_style="buffer")  # type: ignore[arg-type]
    narrow, wide = getattr(torch, dtype), torch.float32
    assert types(settings) == {"matrices": narrow, "norms": wide, "angles": wide}
    assert policy_of(settings) is None


def test_only_float16_has_a_loss_scale() -> None:
    assert LossScale.of(replace(ONE, dtype="bfloat16")) is None
    scale = LossScale.of(replace(ONE, dtype="float16"))
    assert scale is not None and scale.value == 65536.0


def test_the_scale_halves_on_overflow_and_doubles_after_a_window_of_good_updates() -> None:
    scale = LossScale(1024.0, window=3)
    seen = []
    for is_finite in (False, True, True, False, True, True, True, True):
        scale.update(is_finite=is_finite, step=0)
        seen.append(scale.value)
    assert seen == [512, 512, 512, 256, 256, 256, 512, 512]


def test_an_overflow_without_any_scale_ends_the_run_in_one_sentence() -> None:
    scale = LossScale(1.0, window=3)
    with pytest.raises(SerriedError) as ended:
        scale.update(is_finite=False, step=7)
    assert str(ended.value) == (
        "step 7: float16 gradients overflow even at a loss scale of 1; the model diverges or is "
        "too much for float16: take a smaller lr, or dtype bfloat16"
    )
