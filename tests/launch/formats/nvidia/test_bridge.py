"""Megatron-Bridge: recipes known by their names, and what a command changes of them."""

from __future__ import annotations

import pytest

from serried.launch.facts.config import LaunchConfig
from tests.launch.formats.asking import open_of, told

LLAMA = {"tp": 4, "pp": 4, "cp": 2, "ep": 1}
"""Megatron-Bridge 0.3.1 recipes/llama/llama3.py, llama3_70b_pretrain_config."""


def run(arguments: str, program: str = "scripts/training/run_recipe.py") -> LaunchConfig:
    return told(f"torchrun --nnodes 4 --nproc_per_node 8 {program} {arguments}\n", "run.sh")


def degrees(config: LaunchConfig) -> dict[str, object]:
    return {name: config.fields[name].value for name in ("tp", "pp", "cp", "ep")}


@pytest.mark.parametrize(
    ("arguments", "changed"),
    [
        ("--recipe llama3_70b_pretrain_config", {}),
        ("--model llama3_70b --mode pretrain", {}),
        ("--recipe llama3_70b_pretrain_config model.tensor_model_parallel_size=8", {"tp": 8}),
        ("--recipe llama3_70b_pretrain_config -tp 8 -cp 1", {"tp": 8, "cp": 1}),
        ("--recipe llama3_70b_pretrain_config --tensor_model_parallel_size 8", {"tp": 8}),
        ("--recipe llama3_70b_pretrain_config -tp 8 model.tensor_model_parallel_size=2", {"tp": 2}),
    ],
)
def test_a_recipe_is_known_by_its_name_and_changed_by_the_command(
    arguments: str, changed: dict[str, int]
) -> None:
    config = run(arguments)
    assert (open_of(config), degrees(config)) == ({}, {**LLAMA, **changed})


def test_a_size_of_the_recipe_says_where_it_is_from() -> None:
    place = str(run("--recipe llama3_70b_pretrain_config").fields["tp"].where)
    assert place == "default of Megatron-Bridge's llama3_70b_pretrain_config"


def test_chunks_of_a_stage_go_with_the_stages_of_the_recipe() -> None:
    chunks = "virtual_pipeline_model_parallel_size"
    own = run("--recipe llama3_70b_pretrain_config")
    other = run("--recipe llama3_70b_pretrain_config -pp 1")
    assert (own.options[chunks].value, chunks in other.options) == (5, False)


def test_experts_have_the_tensor_size_that_their_recipe_gives_them() -> None:
    """Megatron-Bridge 0.4.2 recipes/qwen/qwen3_moe.py, qwen3_235b_a22b_pretrain_config."""
    config = run("--recipe qwen3_235b_a22b_pretrain_config")
    assert (config.fields["ep"].value, config.fields["etp"].value) == (8, 1)


def test_the_tensor_size_of_experts_stays_where_their_number_is_changed() -> None:
    """Megatron-Bridge 0.6.0: nemotron_3_super_peft_config has ep 1 and etp 1."""
    config = run("--recipe nemotron_3_super_peft_config -tp 2 -ep 8")
    assert (config.fields["ep"].value, config.fields["etp"].value) == (8, 1)


def test_a_mode_that_trains_few_weights_is_that_of_a_peft_recipe() -> None:
    config = run("--model llama32_1b --mode lora")
    assert (open_of(config), degrees(config)["tp"]) == ({}, 1)


def test_a_recipe_whose_sizes_changed_between_releases_is_asked_for() -> None:
    """gpt_oss_20b_pretrain_config: tp 1 and ep 2 in 0.2, tp 2 and ep 4 in 0.3."""
    assert set(open_of(run("--recipe gpt_oss_20b_pretrain_config"))) == {"tp"}


def test_a_recipe_that_leaves_the_tensor_size_of_experts_to_megatron_is_asked_for() -> None:
    """qwen3_vl_235b_a22b_sft_config: tp 4, ep 32, and no expert_tensor_parallel_size."""
    assert set(open_of(run("--recipe qwen3_vl_235b_a22b_sft_config"))) == {"tp"}


def test_a_recipe_that_a_variable_names_is_asked_for() -> None:
    assert set(open_of(run('--recipe "$RECIPE"'))) == {"tp"}


def test_yaml_that_names_a_known_recipe_asks_for_nothing_but_ranks() -> None:
    text = "recipe:\n  _target_: megatron.bridge.recipes.llama.llama3_70b_pretrain_config\n"
    config = told(text)
    assert (set(open_of(config)), degrees(config)) == ({"world_size"}, LLAMA)


def test_the_program_is_known_without_its_folder() -> None:
    assert degrees(run("--recipe llama3_70b_pretrain_config", "run_recipe.py")) == LLAMA
