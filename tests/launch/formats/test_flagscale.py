"""FlagScale: an experiment, and the task that it takes in."""

from __future__ import annotations

import pytest

from serried.errors import InputError
from tests.launch.formats.asking import open_of, told

RUN = """
defaults:
  - train: 7b
  - _self_
experiment:
  task: {type: train, backend: megatron}
  runner:
    nnodes: 2
    nproc_per_node: 8
"""
TASK = """
system:
  tensor_model_parallel_size: 4
  pipeline_model_parallel_size: 2
  use_distributed_optimizer: true
model:
  num_layers: 32
"""


def test_an_experiment_has_the_ranks_and_its_task_the_sizes() -> None:
    config = told(RUN, train__7b_yaml=TASK)
    sizes = config.sizes()
    assert (config.format, config.framework) == ("FlagScale YAML", "megatron")
    assert (sizes.world_size, sizes.tp, sizes.pp, sizes.zero) == (16, 4, 2, 1)
    assert config.fields["layers"].value == 32
    assert str(config.fields["tp"].where).startswith("7b.yaml line 3, train.system.tensor_model")


def test_a_task_that_is_not_given_leaves_its_sizes_open() -> None:
    config = told(RUN, serve__7b_yaml=TASK)
    because = "x.yaml takes in train/7b.yaml, which is not given beside it"
    assert open_of(config) == {"tp": because, "pp": because}


def test_a_task_alone_leaves_the_ranks_open() -> None:
    assert [*open_of(told(TASK))] == ["world_size"]


def test_meshes_of_unlike_parts_are_named_as_what_is_not_laid_out() -> None:
    text = TASK.replace("model:", "  hetero: {enable_hetero: true}\nmodel:")
    assert open_of(told(text))["framework"] == (
        "x.yaml sets system.hetero.enable_hetero, whose meshes of unlike parts serried does not "
        "lay out"
    )


HETERO = "  hetero:\n    enable_hetero: true\n    hetero_process_meshes: [{}]\nmodel:"


def test_meshes_that_differ_in_stages_alone_are_one() -> None:
    text = TASK.replace("model:", HETERO.format("2,1,1,1,3, 2,1,1,1,1"))
    sizes = told(text).sizes()
    assert (sizes.world_size, sizes.tp, sizes.pp) == (8, 2, 4)


@pytest.mark.parametrize("meshes", ["2,1,1,4,1, 4,1,1,2,1", "2,1,1,4", "2,1,1,x,1"])
def test_other_meshes_are_not_laid_out(meshes: str) -> None:
    assert "framework" in open_of(told(TASK.replace("model:", HETERO.format(meshes))))


@pytest.mark.parametrize("kind", ["serve", "inference"])
def test_a_task_that_trains_nothing_is_named(kind: str) -> None:
    text = RUN.replace("type: train", f"type: {kind}")
    with pytest.raises(InputError) as caught:
        told(text)
    assert str(caught.value) == (
        f"x.yaml is a task of FlagScale of the type '{kind}', which trains nothing; give one of "
        "the type 'train'"
    )


@pytest.mark.parametrize(
    "text",
    [
        "- serve_id: vllm_model\n  engine: vllm\n  engine_args:\n    tensor_parallel_size: 8\n",
        "llm:\n  model: x\n  tensor_parallel_size: 2\n  gpu_memory_utilization: 0.7\n",
    ],
)
def test_settings_of_an_engine_that_answers_are_named(text: str) -> None:
    with pytest.raises(InputError) as caught:
        told(text)
    assert str(caught.value) == (
        "x.yaml sets up an engine that answers requests, and trains nothing; give the file of a "
        "training"
    )
