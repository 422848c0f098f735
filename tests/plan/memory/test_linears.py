"""The widths of linear layers hold as many weights as the model's parameters say."""

from __future__ import annotations

import pytest

from serried.plan.catalog import model_named
from serried.plan.memory.linears import layer_linears
from serried.plan.model.parameters import layer_parameters
from serried.plan.model.shape import ModelShape


@pytest.mark.parametrize("tp", [1, 2, 4])
@pytest.mark.parametrize("name", ["llama3-8b", "gpt3-175b", "deepseek-v3", "mixtral-8x7b"])
def test_linear_layers_hold_all_weights_but_norms_and_biases(name: str, tp: int) -> None:
    model = model_named(name)
    is_moe = model.num_moe_layers > 0
    count = layer_parameters(model, is_moe, tp, 8, 1)
    weights = sum(each.num_weights for each in layer_linears(model, is_moe, tp, 8, 1))
    rest = count.norms + count.router + biases(model, tp)
    assert weights == count.total - rest


def biases(model: ModelShape, tp: int) -> int:
    if not model.has_bias:
        return 0
    return (3 * model.hidden + model.ffn) // tp + 2 * model.hidden


def test_each_expert_gets_its_part_of_the_tokens_whichever_ranks_share_it() -> None:
    mixtral = model_named("mixtral-8x7b")
    for etp in (1, 2, 4):
        linears = layer_linears(mixtral, True, 4, 2, etp)
        fc1 = next(each for each in linears if each.name == "expert_fc1")
        # Two experts a token, over four ranks of the sequence: half a token each; etp joins them.
        assert (fc1.count, fc1.share) == (4, 2 * etp / 4)
        assert fc1.share * fc1.outputs == 2 * 2 * 14336 / 4
