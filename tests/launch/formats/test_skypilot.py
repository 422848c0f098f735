"""SkyPilot: the script of a task is read, on the nodes and GPUs that the task asks for."""

from __future__ import annotations

import pytest

from serried.errors import InputError
from serried.launch.facts.config import LaunchConfig
from tests.launch.formats.asking import told

TASK = """
num_nodes: 2
resources:
  accelerators: {gpus}
envs:
  TP: 4
  TOKEN:
setup: |
  pip install torch
run: |
  cd work
  torchrun --nnodes $SKYPILOT_NUM_NODES \\
    --nproc_per_node $SKYPILOT_NUM_GPUS_PER_NODE \\
    pretrain_gpt.py --tensor-model-parallel-size $TP
"""


def task(gpus: str) -> LaunchConfig:
    return told(TASK.format(gpus=gpus))


@pytest.mark.parametrize("gpus", ["H100:8", "{H100: 8}", "['A100:8', 'H100:8']"])
def test_a_script_runs_on_what_the_task_asks_for(gpus: str) -> None:
    config = task(gpus)
    assert config.format == "Megatron script under SkyPilot"
    assert (config.sizes().world_size, config.sizes().tp) == (16, 4)


def test_one_gpu_needs_no_number() -> None:
    assert task("H100").fields["gpus_per_node"].value == 1


def test_alternatives_of_unlike_numbers_leave_the_gpus_open() -> None:
    config = task("['A100:8', 'H100:4']")
    assert [each.name for each in config.unanswered()] == ["world_size"]


def test_lines_are_those_of_the_yaml() -> None:
    fields = task("H100:8").fields
    assert str(fields["tp"].where) == "x.yaml line 6, --tensor-model-parallel-size by way of TP"
    assert fields["nodes"].line == 2


def test_a_command_on_the_line_of_its_key_is_read_as_well() -> None:
    text = "resources: {accelerators: 'H100:4'}\nrun: torchrun --nproc_per_node 4 x.py --ring 2\n"
    assert told(text).fields["gpus_per_node"].value == 4


def test_a_task_that_starts_no_ranks_is_named() -> None:
    with pytest.raises(InputError) as caught:
        told("resources: {accelerators: 'H100:4'}\nrun: |\n  echo hello\n")
    assert str(caught.value) == (
        "x.yaml is a task of SkyPilot, and none of its commands starts ranks that serried knows; "
        "give the script that they run"
    )
