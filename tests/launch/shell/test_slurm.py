"""Slurm scripts: what #SBATCH lines, srun and sbatch options settle, and where they stand."""

from __future__ import annotations

import pytest

from serried.launch.facts.config import LaunchConfig
from serried.launch.facts.words import text_of
from serried.launch.read import read
from serried.launch.shell.slurm import job_of, variables

HEAD = "#!/bin/bash\n"
PROGRAM = "pretrain_gpt.py --tensor-model-parallel-size 2"


def config_of(lines: str, command: str, **beside: str) -> LaunchConfig:
    return read(f"{HEAD}{lines}\n{command}", name="job.sh", beside=beside)


ASKED = [
    ("#SBATCH --nodes=4", "nodes", 4),
    ("#SBATCH --nodes 4", "nodes", 4),
    ("#SBATCH -N 4", "nodes", 4),
    ("#SBATCH -N4", "nodes", 4),
    ("#SBATCH --nodes=4-4", "nodes", 4),
    ("#SBATCH --nodes=2-4", "nodes", None),
    ("#SBATCH --nodes={nodes}", "nodes", None),
    ("#SBATCH --nodes=4 # as many as are free", "nodes", 4),
    ("#SBATCH --job-name=x --nodes=4", "nodes", 4),
    ("##SBATCH --nodes=4", "nodes", None),
    ("# SBATCH --nodes=4", "nodes", None),
    ("#SBATCH -n 32", "ntasks", 32),
    ("#SBATCH --ntasks-per-node=8", "ntasks_per_node", 8),
    ("#SBATCH --tasks-per-node 8", "ntasks_per_node", 8),
    ("#SBATCH --gpus-per-node=8", "gpus_per_node", 8),
    ("#SBATCH --gpus-per-node=a100:8", "gpus_per_node", 8),
    ("#SBATCH --gres=gpu:8", "gpus_per_node", 8),
    ("#SBATCH --gres=gpu:h100:4(S:0-1)", "gpus_per_node", 4),
    ("#SBATCH --gres=craynetwork:1,gpu:4", "gpus_per_node", 4),
    ("#SBATCH --gres=gpu", "gpus_per_node", 1),
    ("#SBATCH --gres=nvme:1", "gpus_per_node", None),
    ("#SBATCH -G 16", "gpus", 16),
]


@pytest.mark.parametrize(("line", "name", "figure"), ASKED)
def test_a_line_asks_for_so_many(line: str, name: str, figure: int | None) -> None:
    assert job_of(f"{HEAD}{line}\necho", "job.sh").number(name) == figure


def test_lines_after_a_command_do_not_count() -> None:
    job = job_of(f"{HEAD}#SBATCH -N 2\n\n# then\nmodule load x\n#SBATCH -n 8", "job.sh")
    assert (job.number("nodes"), job.number("ntasks")) == (2, None)


def test_slurm_sets_variables_of_what_the_lines_settle() -> None:
    job = job_of(f"{HEAD}#SBATCH -N 2 --ntasks-per-node=4\n#SBATCH --gres=gpu:4", "job.sh")
    assert {name: text_of(value) for name, value in variables(job).items()} == {
        "SLURM_NNODES": "2",
        "SLURM_JOB_NUM_NODES": "2",
        "SLURM_NTASKS": "8",
        "SLURM_NPROCS": "8",
        "SLURM_NTASKS_PER_NODE": "4",
        "SLURM_TASKS_PER_NODE": "4",
        "SLURM_GPUS_PER_NODE": "4",
        "SLURM_GPUS_ON_NODE": "4",
    }


COUNTED = [
    ("#SBATCH -N 2 --ntasks-per-node=8", f"srun python {PROGRAM}", 16),
    ("#SBATCH -N 2 -n 16", f"srun python {PROGRAM}", 16),
    ("#SBATCH -N 4 --ntasks-per-node=8", f"srun -N 2 python {PROGRAM}", 16),
    (
        "#SBATCH -N 2 --ntasks-per-node=1 --gpus-per-node=8",
        f"srun torchrun --nnodes $SLURM_NNODES --nproc_per_node $SLURM_GPUS_ON_NODE {PROGRAM}",
        16,
    ),
    (
        "#SBATCH -N 2",
        "NODES=($(scontrol show hostnames $SLURM_JOB_NODELIST))\nsrun torchrun --nnodes "
        f"${{#NODES[@]}} --nproc_per_node 8 {PROGRAM}",
        16,
    ),
    (
        "#SBATCH -N 2",
        "N=$(scontrol show hostnames $SLURM_JOB_NODELIST | wc -l)\n"
        f"srun torchrun --nnodes $N --nproc_per_node 8 {PROGRAM}",
        16,
    ),
    (
        "#SBATCH -N 2",
        f'srun -l --label bash -c "torchrun --nnodes=\\$SLURM_NNODES --nproc_per_node=4 {PROGRAM}"',
        8,
    ),
    (
        "#SBATCH -N 2",
        f"CMD='{PROGRAM}'\nLAUNCH='torchrun --nnodes 2 --nproc_per_node 8'\n"
        'clear; srun --jobid $SLURM_JOBID bash -c "$LAUNCH $CMD" 2>&1 | tee log',
        16,
    ),
    ("#SBATCH -N 2 --ntasks-per-node=4", f"mpirun -np $SLURM_NTASKS python {PROGRAM}", 8),
    (
        "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1",
        "export WORLD_SIZE=$((SLURM_NNODES * 8))\nsrun accelerate launch --num_processes "
        "$WORLD_SIZE --num_machines $SLURM_NNODES --use_fsdp train.py",
        16,
    ),
]


@pytest.mark.parametrize(("lines", "command", "ranks"), COUNTED)
def test_a_job_starts_so_many_ranks(lines: str, command: str, ranks: int) -> None:
    config = config_of(lines, command)
    assert config.sizes().world_size == ranks
    assert config.format.endswith("under Slurm")


def test_a_figure_is_placed_on_its_line() -> None:
    config = config_of(
        "#SBATCH --nodes=2", f"srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 {PROGRAM}"
    )
    assert str(config.fields["nodes"].where) == (
        "job.sh line 2, --nnodes by way of #SBATCH --nodes"
    )


def test_options_of_sbatch_go_before_the_lines_of_the_script_it_starts() -> None:
    job = f"{HEAD}#SBATCH --nodes=2\nsrun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 "
    config = read("sbatch --nodes=4 job.sh", name="go.sh", beside={"job.sh": job + PROGRAM})
    assert config.sizes().world_size == 32


def test_a_script_that_submits_itself_is_followed_once() -> None:
    text = (
        f'{HEAD}#SBATCH --nodes=2\nif [ -z $SLURM_JOB_ID ]; then\n  sbatch "$0"\n  exit\nfi\n'
        f"srun torchrun --nnodes 2 --nproc_per_node 8 {PROGRAM}"
    )
    assert read(text, name="job.sh").sizes().world_size == 16


def test_a_job_written_by_a_script_is_followed() -> None:
    text = (
        f"{HEAD}for TP in 4; do\ncat > job.sbatch <<EOF\n#!/bin/bash\n#SBATCH --nodes=2\n"
        "srun torchrun --nnodes \\$SLURM_NNODES --nproc_per_node 8 pretrain_gpt.py "
        "--tensor-model-parallel-size $TP\nEOF\nsbatch job.sbatch\ndone"
    )
    sizes = read(text, name="sweep.sh").sizes()
    assert (sizes.world_size, sizes.tp) == (16, 4)


def test_no_nodes_are_a_blank_to_be_filled_in() -> None:
    job = job_of("#!/bin/bash\n#SBATCH --nodes=0 --ntasks-per-node=8\n", "x.sh")
    assert (job.number("nodes"), job.number("ntasks_per_node")) == (None, 8)
