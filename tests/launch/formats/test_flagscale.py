"""FlagScale: an experiment, and the task that it takes in."""

from __future__ import annotations

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
