"""NeMo and Megatron-Bridge: configs that override a recipe, and the programs that run one."""

from __future__ import annotations

import pytest

from tests.launch.formats.asking import open_of, settled, told

NAMED = """
recipe:
  _target_: megatron.bridge.recipes.nemotronh.nemotron_3_super_pretrain_config
  context_parallelism: 64
  tensor_model_parallel_size: 2
  expert_model_parallelism: 16
train:
  train_iters: 10
"""


def test_sizes_that_a_named_recipe_is_handed_are_read_and_its_others_asked_for() -> None:
    config = told(NAMED)
    assert (config.format, config.framework) == ("Megatron-Bridge YAML", "megatron")
    assert settled(config) == {"tp": 2, "cp": 64, "ep": 16}
    assert open_of(config)["pp"] == "x.yaml overrides a recipe, which is not read"


@pytest.mark.parametrize(
    "program", ["scripts/training/run_recipe.py", "scripts/performance/run_perf_recipe.py"]
)
def test_one_question_asks_for_all_sizes_of_a_recipe_that_is_not_known(program: str) -> None:
    config = told(f"torchrun --nproc_per_node 8 {program} --recipe mine\n", "run.sh")
    assert (config.format, config.framework) == ("Megatron-Bridge command line", "megatron")
    assert open_of(config) == {
        "tp": "run.sh overrides a recipe, which is not read; pp, cp, ep are taken as 1 unless "
        "they are given too"
    }


@pytest.mark.parametrize(
    ("program", "is_nemo"),
    [("megatron_gpt_pretraining.py", True), ("megatron_data_formatter.py", False)],
)
def test_a_program_of_nemo_is_known_by_what_it_does(program: str, is_nemo: bool) -> None:
    config = told(f"torchrun --nproc_per_node 8 {program} x.y=1\n", "run.sh")
    assert (config.framework == "megatron") == is_nemo


def test_what_an_unknown_recipe_is_overridden_with_is_not_asked_for() -> None:
    config = told(
        "torchrun --nproc_per_node 8 scripts/training/run_recipe.py --recipe x "
        "model.tensor_model_parallel_size=4 model.pipeline_model_parallel_size=1\n",
        "run.sh",
    )
    assert (config.fields["tp"].value, set(open_of(config))) == (4, {"cp"})
    assert "; ep are taken as 1 unless" in open_of(config)["cp"]
