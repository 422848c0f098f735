from __future__ import annotations

from dataclasses import replace

import pytest

from serried.errors import InputError
from serried.plan.catalog import model_named
from serried.plan.model.shape import ModelShape
from serried.plan.model.stages import layers_accounted, layers_even, layers_with_ends, stages_of

LLAMA = ModelShape("llama3.1-405b", 126, 16384, 128, 8, 128, 53248, 128256)


def test_layers_that_divide_are_even_and_the_ends_are_those_of_the_model() -> None:
    stages = stages_of(replace(LLAMA, layers=8), 2, 2)
    assert [each.num_layers for each in stages] == [2, 2, 2, 2]
    assert [each.has_embedding for each in stages] == [True, False, False, False]
    assert [each.has_output for each in stages] == [False, False, False, True]


def test_megatron_refuses_layers_that_do_not_divide_with_stages_that_would() -> None:
    with pytest.raises(InputError, match=r"16 stages \(pp=16 x chunks=1\) do not divide the 126"):
        stages_of(LLAMA, 16, framework="megatron")


def test_other_frameworks_leave_layers_over_where_they_do() -> None:
    model = replace(LLAMA, layers=10)
    assert layers_even(model, 4) == [3, 3, 2, 2]
    assert layers_even(model, 4, framework="internlm") == [2, 2, 3, 3]
    assert layers_even(model, 4, framework="torchtitan") == [2, 3, 3, 2]


def test_llama_3_gives_a_layer_less_to_the_first_and_last_stage() -> None:
    told = layers_with_ends(LLAMA, 16, 1, 7, 7)
    assert told == layers_accounted(LLAMA, 16) == [7, *[8] * 14, 7]
    stages = stages_of(LLAMA, 16, counts=told)
    assert (stages[0].layers, stages[15].layers) == (range(7), range(119, 126))


def test_megatrons_layout_string_says_where_everything_is() -> None:
    v3 = model_named("deepseek-v3")
    stages = stages_of(v3, 16, picture="Et*4|(t*4|)*14tmL")
    assert [each.num_layers for each in stages] == [4] * 15 + [1]
    assert stages[15].mtp_layers == 1 and stages[15].has_output
    apart = stages_of(v3, 4, picture="Et*30|t*31|m|L")
    assert [(each.num_layers, each.mtp_layers) for each in apart[2:]] == [(0, 1), (0, 0)]


@pytest.mark.parametrize(
    ("picture", "sentence"),
    [
        ("Et*63|t*63L|", "draws 3 stages; pp x chunks makes 2"),
        ("Et*60|t*63L", "has 123 of 't'; llama3.1-405b has 126"),
        ("t*63|t*63L", "has 0 of 'E'; llama3.1-405b has 1"),
        ("Et*63|t*63mL", "has 1 of 'm'; llama3.1-405b has 0"),
    ],
)
def test_a_layout_string_of_another_model_is_refused(picture: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        stages_of(LLAMA, 2, picture=picture)


def test_listed_stages_hold_the_whole_model() -> None:
    with pytest.raises(InputError, match=r"stages of 60, 60 layers hold 120 in all; .* has 126"):
        stages_of(LLAMA, 2, counts=[60, 60])
