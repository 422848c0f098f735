"""NeMo-RL: a policy on a cluster, under Megatron-core or on a mesh of tensors."""

from __future__ import annotations

from tests.launch.formats.asking import groups, open_of, settled, told

CLUSTER = "cluster:\n  num_nodes: {nodes}\n  gpus_per_node: {gpus}\n"
DTENSOR = """
policy:
  dtensor_cfg:
    enabled: true
    tensor_parallel_size: {tp}
    context_parallel_size: {cp}
  megatron_cfg:
    enabled: false
    tensor_model_parallel_size: 8
"""
MEGATRON = """
policy:
  dtensor_cfg:
    enabled: false
  megatron_cfg:
    enabled: true
    tensor_model_parallel_size: 4
    pipeline_model_parallel_size: 2
    expert_tensor_parallel_size: 1
"""


def test_a_mesh_of_tensors_has_data_slowest() -> None:
    config = told(DTENSOR.format(tp=2, cp=2) + CLUSTER.format(nodes=1, gpus=8))
    found = groups(config)
    assert (config.format, config.framework) == ("NeMo-RL YAML", "devicemesh")
    assert found["dp"] == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert found["cp"] == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert found["tp"] == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_copies_lie_outside_shards() -> None:
    text = DTENSOR.format(tp=2, cp=1).replace("true", "true\n    dp_replicate_size: 2", 1)
    found = groups(told(text + CLUSTER.format(nodes=1, gpus=8)))
    assert found["dp_replicate"] == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert found["dp_shard"] == [[0, 2], [1, 3], [4, 6], [5, 7]]


def test_experts_lie_over_the_ranks_of_data() -> None:
    text = DTENSOR.format(tp=1, cp=1).replace("true", "true\n    expert_parallel_size: 4", 1)
    assert groups(told(text + CLUSTER.format(nodes=1, gpus=8)))["ep"] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
    ]


def test_megatron_core_takes_the_sizes_beside_its_switch() -> None:
    config = told(MEGATRON + CLUSTER.format(nodes=2, gpus=8))
    assert config.framework == "megatron"
    assert {"tp": 4, "pp": 2, "etp": 1, "nodes": 2}.items() <= settled(config).items()


def test_nodes_that_only_write_answers_are_none_of_the_policy() -> None:
    apart = "  generation:\n    colocated:\n      enabled: false\n      resources:\n        {}\n"
    text = MEGATRON + apart.format("num_nodes: 1") + CLUSTER.format(nodes=3, gpus=8)
    assert told(text).sizes().world_size == 16
    text = MEGATRON + apart.format("gpus_per_node: 4") + CLUSTER.format(nodes=1, gpus=12)
    assert told(text).sizes().world_size == 8


def test_a_base_fills_what_a_recipe_leaves_out() -> None:
    recipe = "defaults: ../base.yaml\ncluster:\n  num_nodes: 2\n"
    base = DTENSOR.format(tp=4, cp=1) + CLUSTER.format(nodes=1, gpus=8)
    config = told(recipe, base_yaml=base)
    assert (config.sizes().world_size, config.fields["tp"].value) == (16, 4)
    alone = open_of(told(recipe + "policy:\n  megatron_cfg:\n    enabled: true\n"))
    assert alone["tp"] == "x.yaml takes in ../base.yaml, which is not given beside it"
