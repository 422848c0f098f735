"""ms-swift under Ray: as many ranks train as the YAML gives the trainer."""

from __future__ import annotations

import pytest

from tests.launch.formats.asking import told

MEGATRON = """
rlhf_type: grpo
micro_batch_size: 1
expert_model_parallel_size: 2
train:
  gpus: 8
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 2
rollout:
  gpus: 4
  vllm_tensor_parallel_size: 2
"""
TRAINER = """
per_device_train_batch_size: 1
deepspeed: zero3
device_groups:
  nproc_per_node: 4
  default:
    device: GPU
    ranks: {ranks}
    workers: [default]
  answers:
    device: GPU
    ranks: list(range(8, 16))
    workers: [rollout]
"""


def test_gpus_that_write_answers_are_none_of_the_layout() -> None:
    config = told(MEGATRON)
    sizes = config.sizes()
    assert (config.format, config.framework) == ("ms-swift YAML for Ray", "megatron")
    assert (sizes.world_size, sizes.tp, sizes.pp, sizes.ep, sizes.etp) == (8, 2, 2, 2, 1)
    assert str(config.fields["ep"].where) == "x.yaml line 4, expert_model_parallel_size"


@pytest.mark.parametrize(
    ("ranks", "world"), [("list(range(0, 8))", 8), ("[0, 1, 2, 3]", 4), ("8", 8)]
)
def test_the_group_of_the_trainer_has_its_ranks(ranks: str, world: int) -> None:
    config = told(TRAINER.format(ranks=ranks))
    assert (config.framework, config.sizes().zero, config.sizes().world_size) == (
        "deepspeed",
        3,
        world,
    )
    assert config.fields["gpus_per_node"].value == 4
