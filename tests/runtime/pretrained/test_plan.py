"""A model is cut where its own plan says, and its stages in a row are the model to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from serried.errors import InputError
from serried.runtime.job.config_model import ConfigModel, read_model
from serried.runtime.pretrained.build import draw, meta_model
from serried.runtime.pretrained.check import require_trainable
from serried.runtime.pretrained.plan import ModelPlan
from serried.runtime.pretrained.stage import PretrainedStage
from tests.runtime.pretrained.tiny import written

KINDS = ("llama", "mistral", "qwen2", "qwen3", "gemma2", "phi3", "gpt2", "mixtral", "qwen3_moe")


def whole(sizes: ConfigModel, seed: int = 0) -> Any:
    """Returns the model that transformers makes, with the same weights."""
    model = meta_model(sizes).to_empty(device="cpu")
    model.config.use_cache = False
    draw(model, model, seed)
    model.tie_weights()
    return model


def stages_of(sizes: ConfigModel, num_stages: int) -> list[PretrainedStage]:
    stages = [PretrainedStage(sizes, stage=n, num_stages=num_stages) for n in range(num_stages)]
    for stage in stages:
        stage.draw_weights(0)
    return stages


def through(stages: list[PretrainedStage], text: Tensor) -> Tensor:
    for stage in stages:
        text = stage(text)
    return text


@pytest.mark.parametrize("kind", KINDS)
def test_stages_in_a_row_are_the_model_to_the_bit(tmp_path: Path, kind: str) -> None:
    sizes = read_model(written(tmp_path, kind), seq_len=16)
    model, stages = whole(sizes), stages_of(sizes, 3)
    text = torch.randint(300, (2, 16))
    assert torch.equal(through(stages, text), model(text).logits)
    names = [name for stage in stages for name, _ in stage.weights()]
    assert set(names) == {name for name, _ in model.named_parameters()}
    assert len(names) == len(set(names)) + sizes.tie  # a tied weight has a copy at both ends


@pytest.mark.parametrize("kind", ["gpt2", "qwen3"])
def test_gradients_through_stages_are_the_model_s(tmp_path: Path, kind: str) -> None:
    sizes = read_model(written(tmp_path, kind), seq_len=16)
    model, stages = whole(sizes), stages_of(sizes, 2)
    text = torch.randint(300, (2, 16))
    stages[-1].loss(through(stages, text), text).backward()  # type: ignore[no-untyped-call]
    stages[-1].loss(model(text).logits, text).backward()  # type: ignore[no-untyped-call]
    found: dict[str, Tensor] = {}
    for stage in stages:
        for name, parameter in stage.weights():
            assert parameter.grad is not None
            found[name] = found.get(name, 0) + parameter.grad
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad, rtol=1e-5, atol=1e-8)


def test_weights_follow_from_the_seed_and_the_name_alone(tmp_path: Path) -> None:
    sizes = read_model(written(tmp_path), seq_len=16)
    one, other = whole(sizes).state_dict(), whole(sizes, seed=1).state_dict()
    name = "model.layers.1.mlp.up_proj.weight"
    assert not torch.equal(one[name], other[name])
    assert torch.equal(one[name], dict(stages_of(sizes, 2)[0].weights())[name])
    assert 0.019 < one[name].std() < 0.021  # the config's initializer_range


def test_a_stage_takes_memory_for_its_own_part_only(tmp_path: Path) -> None:
    sizes = read_model(written(tmp_path), seq_len=16)
    stage = PretrainedStage(sizes, stage=1, num_stages=3)
    stage.draw_weights(0)
    assert stage.held() == ("model.layers.1",)
    assert all(name.startswith("model.layers.1.") for name, _ in stage.weights())
    assert len(list(stage.units())) == 1


def test_layers_again_in_backward_change_nothing(tmp_path: Path) -> None:
    sizes = read_model(written(tmp_path), seq_len=16)
    text = torch.randint(300, (2, 16))
    grads = []
    for recompute in ("none", "full"):
        stage = PretrainedStage(sizes, stage=0, num_stages=1, recompute=recompute)
        stage.draw_weights(0)
        stage.train()
        stage.loss(stage(text), text).backward()  # type: ignore[no-untyped-call]
        grads.append([parameter.grad for _, parameter in stage.weights()])
    for plain, again in zip(*grads, strict=True):
        assert plain is not None and again is not None and torch.equal(plain, again)


@pytest.mark.parametrize(
    ("kind", "tp", "said"),
    [
        ("falcon", 1, "FalconForCausalLM comes without a plan of how to cut it into stages"),
        ("gpt2", 2, "GPT2LMHeadModel comes without a plan of how tp ranks share its layers"),
    ],
)
def test_a_model_without_a_plan_is_refused(tmp_path: Path, kind: str, tp: int, said: str) -> None:
    sizes = read_model(written(tmp_path, kind))
    with pytest.raises(InputError, match=said):
        require_trainable(sizes, tp=tp)


def test_weights_that_no_part_of_the_plan_has_are_refused(tmp_path: Path) -> None:
    sizes = read_model(written(tmp_path))
    model = meta_model(sizes)
    model.model.extra = torch.nn.Linear(2, 2, bias=False)
    with pytest.raises(InputError, match=r"of LlamaForCausalLM does not fit .*model\.extra\.weig"):
        ModelPlan.of(model, sizes)


def test_weights_that_a_model_does_not_say_how_to_draw_are_refused(tmp_path: Path) -> None:
    sizes = read_model(written(tmp_path, "apertus"), seq_len=16)
    with pytest.raises(InputError, match=r"ApertusForCausalLM does not say how model\.layers\.0"):
        stages_of(sizes, 1)


def test_tensor_parallel_styles_are_those_of_what_a_stage_holds(tmp_path: Path) -> None:
    sizes = read_model(written(tmp_path), seq_len=16)
    stage = PretrainedStage(sizes, stage=1, num_stages=3)
    cuts = stage.plan.cuts(stage.inside)
    assert {name.split(".")[2] for name in cuts} == {"1"}
    assert cuts["model.layers.1.self_attn.q_proj"] == "colwise"
    assert cuts["model.layers.1.mlp.down_proj.weight"] == "rowwise"
    assert "model.layers.1.input_layernorm.weight" not in cuts
