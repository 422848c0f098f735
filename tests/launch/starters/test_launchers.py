"""How many ranks each launcher starts: its options, its defaults, hosts and the environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.launch.facts.config import LaunchConfig
from serried.launch.read import read
from serried.mesh import Placement
from tests.frameworks.goldens import FOLDER

PROGRAM = "pretrain_gpt.py --tensor-model-parallel-size 2"
HOSTS = {"hosts": "# two nodes\nnode-a slots=8\nnode-b slots=4\n"}
NAMES = {"names": "node-a\n# node-b\nnode-c\n"}


def config_of(command: str, beside: Mapping[str, str] = {}) -> LaunchConfig:
    return read(command.replace("PROGRAM", PROGRAM), name="run.sh", beside=beside)


COUNTED = [
    # torchrun and its elders
    ("torchrun PROGRAM", 1),
    ("torchrun --nproc_per_node=8 PROGRAM", 8),
    ("torchrun --nproc-per-node 8 --nnodes=4 --node_rank $RANK PROGRAM", 32),
    ("torchrun --nnodes 2:2 --nproc_per_node 4 PROGRAM", 8),
    ("python -m torch.distributed.run --nnodes 2 --nproc_per_node 8 PROGRAM", 16),
    ("python3 -u -m torch.distributed.launch --nproc_per_node 4 --use_env PROGRAM", 4),
    ("/opt/conda/bin/torchrun --nproc_per_node 4 PROGRAM", 4),
    ("CUDA_VISIBLE_DEVICES=0,1 OMP_NUM_THREADS=1 torchrun --nproc_per_node 2 PROGRAM", 2),
    ("numactl -N 0 torchrun --nproc_per_node 2 PROGRAM", 2),
    ("nohup torchrun --nproc_per_node 2 PROGRAM > log 2>&1 &", 2),
    ("docker run --gpus all -e A=1 image:tag torchrun --nproc_per_node 2 PROGRAM", 2),
    ("ssh node-a 'torchrun --nproc_per_node 2 --nnodes 2 PROGRAM'", 4),
    ("WORLD_SIZE=16 python PROGRAM", 16),
    # Slurm
    ("srun -N 4 --ntasks-per-node=8 python PROGRAM", 32),
    ("srun -N4 -n32 python PROGRAM", 32),
    ("srun --nodes=2 --ntasks-per-node 1 torchrun --nnodes 2 --nproc_per_node 8 PROGRAM", 16),
    ("srun -N 2 bash -c 'torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 PROGRAM'", 16),
    ("srun -N 2 --gres=gpu:4 --ntasks-per-node 4 python -u PROGRAM", 8),
    ("sbatch -N 2 --wrap 'srun --ntasks-per-node 8 python PROGRAM'", 16),
    # MPI
    ("mpirun -np 16 python PROGRAM", 16),
    ("mpiexec -n 4 --bind-to none python PROGRAM", 4),
    ("mpirun -H a:8,b:8 -x NCCL_DEBUG python PROGRAM", 16),
    # DeepSpeed
    ("deepspeed --num_gpus 4 PROGRAM", 4),
    ("deepspeed --num_nodes 2 --num_gpus=8 PROGRAM", 16),
    ("deepspeed --hostfile=/job/hosts PROGRAM", 12),
    ("deepspeed --hostfile hosts --include 'node-a:0,2@node-b' PROGRAM", 6),
    ("deepspeed --hostfile hosts --exclude node-b:0 PROGRAM", 11),
    ("deepspeed --hostfile hosts --num_nodes 1 PROGRAM", 8),
    ("deepspeed --hostfile hosts --num_gpus 2 PROGRAM", 4),
    ("deepspeed --include localhost:1,3,5 PROGRAM", 3),
    ("CUDA_VISIBLE_DEVICES=0,1,2 deepspeed PROGRAM", 3),
    # ezpz
    ("ezpz launch -n 16 python3 PROGRAM", 16),
    ("ezpz launch --nproc 24 --nproc_per_node 12 -- python3 -m pkg.PROGRAM", 24),
    ("ezpz launch -ppn 4 -nh 2 -- python3 PROGRAM", 8),
    # the program of a tool, and a command with blanks to spare
    ("$(which torchrun) --nproc_per_node 2 PROGRAM", 2),
    ("ezpz launch -n 2 $(command -v python3) PROGRAM", 2),
    ('C="torchrun  --nproc_per_node 2 PROGRAM  $X"\neval $(echo "$C" | sed -e \'s/  */ /g\')', 2),
    ("C=\"torchrun --nproc_per_node 2  PROGRAM $X\"\nC=$(echo $C | tr -s ' ')\neval $C", 2),
    # ColossalAI
    ("colossalai run --nproc_per_node 8 train.py --tp 2", 8),
    ("colossalai run --nproc_per_node 8 --host a,b,c train.py --tp 2", 24),
    ("colossalai run --nproc_per_node 8 --hostfile names train.py --tp 2", 16),
    ("colossalai run --nproc_per_node 8 --hostfile names --exclude node-c train.py --tp 2", 8),
    # Paddle
    ("python -m paddle.distributed.launch --gpus 0,1,2,3 run_pretrain.py --output_dir o", 4),
    ("python -m paddle.distributed.launch --devices 0,1 --nnodes 2 p.py --output_dir o", 4),
    ("python -m paddle.distributed.launch --ips a,b --gpus 0,1 p.py --output_dir o", 4),
    ("CUDA_VISIBLE_DEVICES=0,1 python -m paddle.distributed.launch p.py --output_dir o", 2),
    # Accelerate and ms-swift
    ("accelerate launch --num_processes 16 --num_machines 2 --use_fsdp train.py", 16),
    ("accelerate launch --multi_gpu --num_processes=4 train.py", 4),
    ("NNODES=2 NPROC_PER_NODE=8 megatron sft --tensor_model_parallel_size 2", 16),
    ("NPROC_PER_NODE=4 megatron sft --tensor_model_parallel_size 2", 4),
]


@pytest.mark.parametrize(("command", "ranks"), COUNTED)
def test_a_launcher_starts_so_many_ranks(command: str, ranks: int) -> None:
    world = config_of(command, {**HOSTS, **NAMES}).world_size
    assert world is not None
    assert world.value == ranks


NODES = [
    ("torchrun --nnodes 2 --nproc_per_node 4 PROGRAM", (2, 4)),
    ("srun -N 4 -n 16 python PROGRAM", (4, 4)),
    ("deepspeed --num_gpus 4 PROGRAM", (1, 4)),
    ("deepspeed --hostfile hosts --include node-a PROGRAM", (1, 8)),
    ("deepspeed --hostfile hosts PROGRAM", (2, None)),
    ("accelerate launch --num_processes 16 --num_machines 2 --use_fsdp train.py", (2, 8)),
]


@pytest.mark.parametrize(("command", "shape"), NODES)
def test_nodes_and_ranks_of_each_are_told_where_they_are_alike(
    command: str, shape: tuple[int, int | None]
) -> None:
    fields = config_of(command, HOSTS).fields
    found = [fields.get(name) for name in ("nodes", "gpus_per_node")]
    assert tuple(each and each.value for each in found) == shape


@pytest.mark.parametrize("path", sorted(FOLDER.glob("deepspeed__hostfile_*")), ids=lambda p: p.stem)
def test_hostfile_filters_leave_what_deepspeed_leaves(path: Path) -> None:
    golden = json.loads(path.read_text(encoding="utf-8"))
    config = golden["config"]
    filters = [f"--{key} {config[key]}" for key in ("include", "exclude") if key in config]
    hosts = {"hosts": (FOLDER / "hostfile_example").read_text(encoding="utf-8")}
    command = f"deepspeed --hostfile hosts {' '.join(filters)} PROGRAM"
    if "error" in golden:
        with pytest.raises(InputError):
            config_of(command, hosts)
        return
    slots = [len(each) for host in golden["groups"].values() for each in host]
    found = config_of(command, hosts)
    assert found.sizes().world_size == sum(slots)
    assert found.fields["nodes"].value == len(slots)
    place = found.placement(sum(slots))
    assert [len(place.ranks_on(node)) for node in range(place.num_nodes)] == slots


@pytest.mark.parametrize(
    ("command", "widths"),
    [
        ("deepspeed --hostfile hosts PROGRAM", [8, 4]),
        ("deepspeed --hostfile hosts --include 'node-b@node-a:3' PROGRAM", [1, 4]),
        ("deepspeed --hostfile hosts --exclude 'node-a:0,1,2' PROGRAM", [5, 4]),
        ("deepspeed --hostfile hosts --exclude 'node-a:0,1,2,3' PROGRAM", [4, 4]),
        ("deepspeed --hostfile elsewhere --include 'a:0,1,2@b:7' PROGRAM", [3, 1]),
        ("deepspeed --include localhost:1,3,5 PROGRAM", [3]),
    ],
)
def test_nodes_are_as_wide_as_the_slots_that_are_left(command: str, widths: list[int]) -> None:
    found = config_of(command, HOSTS)
    place = found.placement(sum(widths))
    assert [len(place.ranks_on(node)) for node in range(place.num_nodes)] == widths
    assert found.fields["nodes"].value == len(widths)


def test_nodes_that_differ_are_those_of_the_file_s_own_world() -> None:
    found = config_of("deepspeed --hostfile hosts PROGRAM", HOSTS)
    assert found.placement(16) == Placement(16, 8)
    assert found.placement(12, gpus_per_node=6) == Placement(12, 6)


def test_a_launcher_goes_before_the_config_it_is_given() -> None:
    config = {"acc.yaml": "distributed_type: FSDP\nnum_processes: 4\nnum_machines: 1\n"}
    command = "accelerate launch --config_file acc.yaml --num_processes 8 train.py"
    found = config_of(command, config).world_size
    assert (found and found.value, found and found.key) == (8, "--num_processes")


def test_two_commands_that_disagree_are_both_named() -> None:
    config = config_of("torchrun --nproc_per_node 8 PROGRAM\ntorchrun --nproc_per_node 4 PROGRAM")
    with pytest.raises(InputError) as caught:
        config.sizes()
    assert (
        "gpus_per_node: it is given as 8 (run.sh line 1, --nproc_per_node) and as 4 (run.sh line "
        "2, --nproc_per_node)"
    ) in str(caught.value)


# ----------------------------------------------------------------------- ms-swift


@pytest.mark.parametrize(
    "start",
    [
        "NPROC_PER_NODE=8 megatron sft",
        "NPROC_PER_NODE=8 megatron rlhf --rlhf_type dpo",
        "torchrun --nproc_per_node 8 swift/cli/_megatron/sft.py",
        "torchrun --nproc_per_node 8 -m swift.cli._megatron.pt",
    ],
)
def test_ms_swift_cuts_no_expert_by_tensors_unless_it_is_told(start: str) -> None:
    sizes = "--tensor_model_parallel_size 4 --expert_model_parallel_size 8"
    config = config_of(f"{start} {sizes}")
    assert (config.sizes().etp, str(config.fields["etp"].where)) == (1, "default of ms-swift")
    told = config_of(f"{start} {sizes} --expert_tensor_parallel_size 2")
    assert told.sizes().etp == 2


def test_megatron_itself_cuts_experts_as_it_cuts_the_rest() -> None:
    config = config_of("torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 4")
    assert "etp" not in config.fields


# ----------------------------------------------------------------------- ColossalAI

RUN = "colossalai run --nproc_per_node 8 {} train.py --tp 2"


@pytest.mark.parametrize(
    ("options", "nodes", "where"),
    [
        ("--hostfile names", 2, "run.sh line 2, --hostfile"),
        ("--hostfile names \\\n --include node-c", 1, "run.sh line 3, --include"),
        ("--hostfile names \\\n --exclude node-c", 1, "run.sh line 3, --exclude"),
        ("--hostfile names --num_nodes 1", 1, "run.sh line 2, --num_nodes"),
        ("--hostfile names --num_nodes 5", 2, "run.sh line 2, --hostfile"),
        ("--hostfile elsewhere --include a,b,c", 3, "run.sh line 2, --include"),
        ("--host a,b,c", 3, "run.sh line 2, --host"),
        ("--host a,b,c --include a", 3, "run.sh line 2, --host"),
        ("--num_nodes 4", 1, "default of colossalai run"),
    ],
)
def test_filters_of_colossalai_choose_among_the_hosts_of_a_file(
    options: str, nodes: int, where: str
) -> None:
    found = config_of(f"\n{RUN.format(options)}", NAMES).fields["nodes"]
    assert (found.value, str(found.where)) == (nodes, where)


def test_filters_of_colossalai_are_refused_where_it_refuses_them() -> None:
    with pytest.raises(InputError, match="host 'x' is not in the hostfile; hosts that are: node-a"):
        config_of(RUN.format("--hostfile names --include x"), NAMES)
    with pytest.raises(InputError, match="include and exclude do not go together"):
        config_of(RUN.format("--hostfile names --include node-a --exclude node-c"), NAMES)
    asked = config_of(RUN.format("--hostfile elsewhere --exclude node-c"), NAMES)
    assert asked.world_size is None


# ----------------------------------------------------------------------- verl

VERL = """#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
srun --nodes=1 --ntasks=1 -w "$head_node" ray start --head --block &
python3 examples/data_preprocess/gsm8k.py
PYTHONUNBUFFERED=1 srun --overlap --nodes=1 --ntasks=1 -w "$head_node" \\
    python3 -m verl.trainer.main_ppo {settings}
"""
ACTOR = "actor_rollout_ref.actor.megatron."


def test_the_driver_of_verl_is_not_the_world() -> None:
    settings = (
        f"{ACTOR}tensor_model_parallel_size=4 {ACTOR}pipeline_model_parallel_size=2 "
        "trainer.n_gpus_per_node=${SLURM_GPUS_PER_NODE} trainer.nnodes=${SLURM_NNODES}"
    )
    config = config_of(VERL.format(settings=settings))
    sizes = config.sizes()
    assert (config.framework, sizes.world_size, sizes.tp, sizes.pp) == ("megatron", 32, 4, 2)
    assert config.format == "verl command line under Slurm"


def test_verl_starts_what_its_own_defaults_say_where_it_is_told_nothing() -> None:
    config = config_of(VERL.format(settings="trainer.nnodes=2"))
    assert config.world_size is not None
    assert config.world_size.value == 16
    assert [str(part.where) for part in config.world_size.parts] == [
        "run.sh line 8, trainer.nnodes",
        "default of verl",
    ]
    assert config.framework_at == "fsdp"


def test_ranks_that_verl_starts_by_torchrun_are_those_of_torchrun() -> None:
    command = "torchrun --nnodes 2 --nproc_per_node 4 -m verl.trainer.fsdp_sft_trainer data=x"
    world = config_of(command).world_size
    assert world is not None
    assert world.value == 8


def test_a_script_that_mpirun_starts_has_the_options_of_its_own_program() -> None:
    script = "python pretrain_gpt.py --tensor-model-parallel-size 4\n"
    config = read(
        "mpirun -np 16 --npernode 8 -x A=1 bash train.sh\n",
        name="run.sh",
        beside={"train.sh": script},
    )
    assert (config.framework, config.sizes().world_size, config.sizes().tp) == ("megatron", 16, 4)


def test_a_job_that_is_handed_to_ray_has_its_ranks_from_ray() -> None:
    text = (
        "#SBATCH -N 2\nsrun --overlap -N 1 -n 1 ray job submit --address=x -- python3 -m "
        "openrlhf.cli.train_ppo_ray --actor_num_nodes 2 --actor_num_gpus_per_node 4\n"
    )
    assert read(text, name="run.sh", beside={}).sizes().world_size == 8


def test_experts_of_megablocks_lie_over_the_data_ranks() -> None:
    text = (
        "torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 2 "
        "--moe-num-experts 64 --moe-expert-model-parallelism\n"
    )
    assert read(text, name="run.sh", beside={}).sizes().ep == 4


def test_ezpz_takes_every_gpu_of_the_job_unless_told() -> None:
    config = config_of("ezpz launch python3 PROGRAM")
    assert [(each.name, str(each.because)) for each in config.missing] == [
        ("world_size", "ezpz on line 1 takes every GPU it finds")
    ]


@pytest.mark.parametrize(
    ("name", "framework"),
    [("ds_args", "deepspeed"), ("DEEPSPEED_ARGS", "deepspeed"), ("ARGS", "megatron")],
)
def test_options_of_deepspeed_are_known_by_the_variable_that_holds_them(
    name: str, framework: str
) -> None:
    config = config_of(f"torchrun --nproc_per_node 8 PROGRAM ${name}")
    assert config.framework == framework


@pytest.mark.parametrize(
    ("other", "framework"),
    [("python -m paddle.distributed.launch --gpus $CUDA", "paddle"), ("torchrun", "accelerate")],
)
def test_a_program_that_paddle_starts_elsewhere_in_a_script_is_paddles(
    other: str, framework: str
) -> None:
    text = (
        "CMD='train.py --per_device_train_batch_size 2'\n"
        'if [ "$1" = many ]; then RUN="PLACE $CMD"; else RUN="python $CMD"; fi\n'
        "python $CMD\n"
    )
    assert config_of(text.replace("PLACE", other)).framework == framework
