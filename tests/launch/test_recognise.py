"""What a file is, by what it says and not by its name; and what is no launch file."""

from __future__ import annotations

import pytest

from serried.errors import InputError
from serried.launch.read import read

TP = "--tensor-model-parallel-size 2"
FSDP = "distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n"
NANO = "parallelism:\n  dp: 1\n  tp: 2\n  pp: 1\n"
PADDLE = '{"output_dir": "x", "tensor_parallel_degree": 2, "pipeline_parallel_degree": 1}'
HOSTS = "node-a slots=8\nnode-b slots=8\n"
TITAN = "[parallelism]\ntensor_parallel_degree = 2\n"
EVO = "parallel = dict(tensor=dict(size=2, mode='isp'), weight=dict(size=2))\n"

KNOWN = [
    (f"torchrun --nproc_per_node 8 pretrain_gpt.py {TP}", "Megatron script", "megatron"),
    (f"#SBATCH -N 2\nsrun python pretrain_gpt.py {TP}", "Megatron script under Slurm", "megatron"),
    (
        f"deepspeed --num_gpus 8 pretrain_gpt.py {TP} --deepspeed",
        "Megatron-DeepSpeed script",
        "deepspeed",
    ),
    ("deepspeed --num_gpus 8 train.py --deepspeed c.json", "deepspeed command line", "deepspeed"),
    (
        "colossalai run --nproc_per_node 8 b.py --tp 2",
        "ColossalAI command line",
        "colossalai",
    ),
    (
        "python -m paddle.distributed.launch --gpus 0,1 p.py --tensor_parallel_degree 2",
        "Paddle command line",
        "paddle",
    ),
    (
        "torchrun --nproc_per_node 8 -m torchtitan.train --parallelism.tensor_parallel_degree 2",
        "torchtitan command line",
        "torchtitan",
    ),
    ("torchrun --nproc_per_node 8 train.py", "torchrun command line", None),
    (
        "NPROC_PER_NODE=8 megatron sft --tensor_model_parallel_size 2",
        "Megatron script",
        "megatron",
    ),
    (
        "language_model:\n  num_layers: 4\nmodel_parallel:\n  tensor_model_parallel_size: 2\n",
        "Megatron --yaml-cfg",
        "megatron",
    ),
    (
        "MODEL_ARGS:\n  --tensor-model-parallel-size: 2\n",
        "Megatron functional-test YAML",
        "megatron",
    ),
    (
        "trainer:\n  devices: 8\nmodel:\n  tensor_model_parallel_size: 2\n",
        "NeMo YAML",
        "megatron",
    ),
    (
        "trainer:\n  strategy:\n    _target_: nemo.lightning.MegatronStrategy\n"
        "    tensor_model_parallel_size: 2\n",
        "NeMo 2 YAML",
        "megatron",
    ),
    (EVO, "InternLM or InternEvo config", "internevo"),
    ('{"zero_optimization": {"stage": 2}}', "DeepSpeed JSON", "deepspeed"),
    ('{"pipe-parallel-size": 2, "model-parallel-size": 2}', "GPT-NeoX YAML", "deepspeed"),
    (HOSTS, "DeepSpeed hostfile", "deepspeed"),
    (f"{FSDP}num_processes: 8\n", "Accelerate YAML", "fsdp"),
    ("parallelism_config:\n  parallelism_config_tp_size: 2\n", "Accelerate YAML", "accelerate"),
    (TITAN, "torchtitan TOML", "torchtitan"),
    (NANO, "nanotron YAML", "nanotron"),
    (PADDLE, "Paddle JSON", "paddle"),
    ("Distributed:\n  dp_degree: 2\n  mp_degree: 2\n", "PaddleFleetX YAML", "paddle"),
]


@pytest.mark.parametrize("name", ["run.sh", "config.yaml", "anything"])
@pytest.mark.parametrize(("text", "form", "framework"), KNOWN)
def test_a_file_is_known_by_its_content(
    name: str, text: str, form: str, framework: str | None
) -> None:
    config = read(text, name=name)
    assert (config.format, config.framework) == (form, framework)


UNKNOWN = [
    "",
    "hello",
    "echo hello\n",
    "ls -l | wc\n",
    "a: 1\nb: [2, 3]\n",
    '{"a": 1}',
    "[tool.ruff]\nline-length = 100\n",
    "x = 1\n",
    "jobs:\n  test:\n    steps:\n      - run: pytest\n",
    "a,b\n1,2\n",
    "# only a comment\n",
]


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_is_no_launch_file_is_said_to_be_none(text: str) -> None:
    with pytest.raises(InputError) as caught:
        read(text, name="file")
    assert str(caught.value).startswith(
        "file is no launch file that serried knows; it reads Megatron scripts and YAML, Slurm "
    )
