"""Stages cut from any model compute what it computes, and what cannot be cut is said."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from serried.errors import InputError
from serried.runtime.stages.cut import ModelCut, cut
from tests.runtime.stages.models import (
    LENGTH,
    Answered,
    Looped,
    Masked,
    Skip,
    Text,
    TwoStreams,
    tokens,
)


def in_a_row(made: ModelCut, x: Tensor) -> Tensor:
    """Returns what all stages compute together, each with its own dropout off."""
    for number in range(made.num_stages):
        x = made.stage(number).eval()(x)
    return x


def refusal(model: nn.Module, at: Any, example: Tensor | None = None, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        cut(model, at, tokens() if example is None else example, **options)
    return str(caught.value)


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.integers(0, 99))
@settings(max_examples=15, deadline=None)
def test_stages_in_a_row_compute_what_the_model_computes(counts: list[int], seed: int) -> None:
    torch.manual_seed(seed)
    model = Text(sum(counts)).eval()
    made = cut(model, counts, tokens())
    assert made.num_stages == len(counts)
    assert torch.equal(in_a_row(made, tokens(2)), model(tokens(2)))


def test_gradients_of_stages_are_the_model_s() -> None:
    model = Text(4).eval()
    torch.autograd.backward(model(tokens()).square().sum())
    whole = {name: p.grad for name, p in model.named_parameters()}
    model.zero_grad()
    made = cut(model, ["layers.1", "layers.3"], tokens())
    torch.autograd.backward(in_a_row(made, tokens()).square().sum())
    found = {name: p.grad for name, p in model.named_parameters()}
    assert found.keys() == whole.keys()
    for name, gradient in whole.items():
        torch.testing.assert_close(found[name], gradient, msg=name)


def test_each_weight_is_on_one_stage_under_the_model_s_name_and_is_not_copied() -> None:
    model = Text(4)
    made = cut(model, 3, tokens())
    own = [dict(made.stage(number).named_parameters()) for number in range(3)]
    whole = dict(model.named_parameters())
    assert sorted(name for held in own for name in held) == sorted(whole)
    assert all(held[name] is whole[name] for held in own for name in held)
    assert "places" in own[0]
    assert [made.parts(number) for number in range(3)] == [
        ("embed", "drop", "positions", "layers.0", "layers.1"),
        ("drop", "positions", "layers.2"),
        ("drop", "positions", "layers.3", "norm", "head"),
    ]


def test_the_model_itself_stays_as_it_was() -> None:
    model = Text(2)
    names, generator = list(model.state_dict()), torch.get_rng_state()
    before = model.eval()(tokens())
    model.train()
    cut(model, 2, tokens())
    assert model.training and model.drop.training and type(model) is Text
    assert list(model.state_dict()) == names
    assert torch.equal(torch.get_rng_state(), generator)
    assert torch.equal(model.eval()(tokens()), before)


def test_naming_the_first_part_too_begins_the_first_stage_there() -> None:
    assert cut(Text(2), ["embed", "layers.1"], tokens()).starts == ("layers.1",)


def test_shapes_between_stages_are_known_without_running_them_again() -> None:
    made = cut(Text(4, width=24), 3, tokens(3))
    assert [(tuple(each.shape), each.dtype) for each in made.inputs] == [
        ((3, LENGTH), torch.int64),
        ((3, LENGTH, 24), torch.float32),
        ((3, LENGTH, 24), torch.float32),
    ]
    assert made.output.is_meta and made.output.shape == (3, LENGTH, 32)


def test_a_model_without_memory_is_cut_too() -> None:
    with torch.device("meta"):
        model = Text(2)
    made = cut(model, 2, tokens())
    assert made.stage(1)(made.inputs[1]).shape == (2, LENGTH, 32)


def test_a_tied_weight_is_on_both_stages_and_told() -> None:
    made = cut(Text(3, tie=True), 3, tokens())
    assert made.tied == {"embed.weight": (0, 2)}
    assert cut(Text(3), 3, tokens()).tied == {}


def test_a_hugging_face_model_is_cut_at_its_layers() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        **{"vocab_size": 32, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4},
        **{"num_attention_heads": 4, "num_key_value_heads": 2, "use_cache": False},
        tie_word_embeddings=True,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    made = cut(model, 2, tokens(), output=lambda out: out.logits)
    assert made.starts == ("model.layers.2",)
    assert made.tied == {"model.embed_tokens.weight": (0, 1)}
    assert torch.equal(in_a_row(made, tokens()), model(tokens()).logits)


def test_a_name_that_is_not_there_is_refused_with_those_that_are() -> None:
    assert refusal(Text(2), ["layers.9"]) == (
        "Text has no part layers.9 to begin a stage at; parts there: layers.0, layers.1"
    )
    assert "parts there: embed, drop, positions, layers, norm, head" in refusal(Text(2), ["blocks"])


def test_more_stages_than_layers_are_refused() -> None:
    assert refusal(Text(3), 4) == (
        "4 stages cannot be cut from the 3 layers of layers; take 1 to 3"
    )


def test_numbers_of_layers_that_do_not_add_up_are_refused() -> None:
    assert refusal(Text(3), [2, 2]) == (
        "stages of 2, 2 layers are 4 in all, and layers has 3; numbers that fit: 2, 1"
    )


def test_another_list_of_layers_is_refused_with_those_that_are() -> None:
    assert refusal(Text(2), 2, layers="blocks") == (
        "Text has no list of layers blocks; lists that it has: layers"
    )
    assert refusal(Looped(), 2, torch.ones(1, 4)) == (
        "Looped has no list of layers to count; name the layers at which stages begin"
    )


def test_a_layer_that_takes_two_tensors_from_before_is_refused() -> None:
    assert refusal(TwoStreams(), ["layers.1"], torch.randn(2, 4)) == (
        "layers.1 takes more than one tensor from the stage before: its argument 1 too; a stage "
        "receives one, so cut at a layer that takes one"
    )


def test_a_mask_made_of_tokens_is_refused() -> None:
    assert "layers.1 takes more than one tensor" in refusal(Masked(2), ["layers.1"])


def test_a_skip_connection_over_the_cut_is_refused() -> None:
    assert refusal(Skip(2), ["layers.1"]).startswith(
        "stage 1, from layers.1, needs a tensor of an earlier stage beside the one that it is given"
    )


def test_a_part_that_runs_twice_begins_no_stage() -> None:
    assert refusal(Looped(), ["again"], torch.ones(1, 4)) == (
        "again runs 2 times in a forward of Looped, so that no stage can begin there; parts that "
        "run once: first, last"
    )


def test_a_part_with_weights_that_runs_on_two_stages_is_refused() -> None:
    assert refusal(Looped(), ["last"], torch.ones(1, 4)).startswith(
        "again has weights and runs in stages 0 and 1"
    )


def test_names_in_another_order_are_refused_with_the_model_s() -> None:
    assert refusal(Text(3), ["layers.2", "layers.1"]).endswith(
        "name them as it runs them: layers.1, layers.2"
    )


def test_an_output_that_is_no_tensor_is_refused_unless_told_where_it_stands() -> None:
    assert refusal(Answered(2), 2).startswith("Answered returns a dict and a stage hands on one")
    made = cut(Answered(2).eval(), 2, tokens(), output=lambda out: out["logits"])
    assert in_a_row(made, tokens()).shape == (2, LENGTH, 32)


def test_a_part_that_is_given_no_tensor_begins_no_stage() -> None:
    assert refusal(Text(2), ["positions"]).startswith("positions is given no tensor")


def test_a_model_that_takes_more_than_one_tensor_is_refused() -> None:
    said = refusal(nn.Bilinear(4, 4, 4), [], torch.ones(1, 4))
    assert said.startswith("Bilinear is not called with one tensor: ") and "input2" in said
