"""Primus: what a trainer overrides, for each framework that it hands it to."""

from __future__ import annotations

import pytest

from tests.launch.formats.asking import groups, open_of, settled, told

HEAD = """
modules:
  pre_trainer:
    framework: {framework}
    model: {model}.yaml
    overrides:
"""
SIZES = """
      tensor_model_parallel_size: ${PRIMUS_TP:2}
      pipeline_model_parallel_size: 1
      expert_model_parallel_size: ${PRIMUS_EP:8}
"""


def of(framework: str, model: str = "llama3_8b") -> str:
    return HEAD.format(framework=framework, model=model)


def test_a_variable_of_the_environment_counts_as_its_default() -> None:
    config = told(of("megatron") + SIZES)
    assert (config.format, config.framework) == ("Primus YAML", "megatron")
    assert settled(config) == {"tp": 2, "pp": 1, "ep": 8}
    assert [*open_of(config)] == ["world_size"]


def test_a_variable_without_a_default_is_asked_for() -> None:
    config = told(of("megatron") + SIZES.replace(":2}", "}"))
    assert open_of(config)["tp"].endswith("PRIMUS_TP comes from the environment")


def test_a_model_with_experts_may_set_their_size_itself() -> None:
    text = of("megatron", "deepseek_v3") + "      tensor_model_parallel_size: 1\n"
    assert open_of(told(text))["ep"] == "x.yaml trains deepseek_v3.yaml, whose config may set it"
    assert "ep" not in open_of(told(text.replace("deepseek_v3", "llama3_8b")))


def test_torchtitan_and_maxtext_take_their_own_names() -> None:
    titan = of("torchtitan") + "      parallelism:\n        tensor_parallel_degree: 4\n"
    assert groups(told(titan), 8)["tp"] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    maxtext = of("maxtext") + "      ici_tensor_parallelism: 4\n      ici_fsdp_parallelism: 2\n"
    assert groups(told(maxtext), 8)["tensor"] == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize("framework", ["maxdiffusion", "nemo_automodel"])
def test_another_trainer_is_named(framework: str) -> None:
    text = of(framework) + "      train_iters: 1\n"
    assert open_of(told(text))["framework"] == (
        f"x.yaml trains with {framework}, which serried does not lay out"
    )
