"""Jobs spread over several files: sourced settings, scripts that start scripts, folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from serried.errors import InputError
from serried.launch.facts.config import LaunchConfig
from serried.launch.read import read, read_among, read_path

CLUSTER = """# Settings of one of our clusters; sourced by every job.
export GPUS_PER_NODE=8
NNODES=${NNODES:-4}
DATA=$HOME/data
"""
MODEL = """# shellcheck shell=bash
MODEL_ARGS=(
    --num-layers 48       # 15B
    --hidden-size 6144
)
PARALLEL_ARGS=(
    --tensor-model-parallel-size ${TP:-4}
    --pipeline-model-parallel-size ${PP}
)
"""
TRAIN = """#!/bin/bash
set -euo pipefail
cd "$(dirname "$0")" || exit 1
source ./cluster.sh
PP=2
. ./model_15B.sh
torchrun --nnodes $NNODES --nproc_per_node $GPUS_PER_NODE \\
    ../pretrain_gpt.py "${MODEL_ARGS[@]}" "${PARALLEL_ARGS[@]}" "$@"
"""
FIGURE = """#!/bin/bash
# Runs one line of the table: 1T parameters on as many nodes as the table says.
TP=8; PP=8; NODES=8
. CONFIG.sh
. SBATCH.sh
"""
CONFIG = """OPTIONS=" \\
    --tensor-model-parallel-size ${TP} \\
    --pipeline-model-parallel-size ${PP} \\
    --num-layers 96"
export OPTIONS
"""
SBATCH = "sbatch --nodes=${NODES} SRUN.sh\nexit 0\n"
SRUN = """#!/bin/bash
#SBATCH --ntasks-per-node=8 --gres=gpu:8
DIR=`pwd`
run_cmd="python -u ${DIR}/pretrain_gpt.py ${OPTIONS}"
srun -l --output=$DIR/logs/%x.log sh -c "${run_cmd}"
"""
WORKER = """#!/bin/bash
export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID
exec "$@"
"""
WRAPPED = """#!/bin/bash
#SBATCH -N 2 --ntasks-per-node=8
srun ./worker.sh python pretrain_gpt.py --tensor-model-parallel-size 4
"""
COLLECTED = {"cluster.sh": CLUSTER, "model_15B.sh": MODEL, "train.sh": TRAIN}


def config_of(name: str, files: dict[str, str]) -> LaunchConfig:
    return read(files[name], name=name, beside=files)


def test_sourced_files_are_followed_and_their_lines_told() -> None:
    config = config_of("train.sh", COLLECTED)
    sizes = config.sizes()
    assert (sizes.world_size, sizes.tp, sizes.pp) == (32, 4, 2)
    assert str(config.fields["tp"].where) == (
        "model_15B.sh line 7, --tensor-model-parallel-size by way of ${TP:-4}"
    )
    assert str(config.fields["pp"].where) == (
        "train.sh line 5, --pipeline-model-parallel-size by way of PP"
    )


def test_a_sourced_file_that_is_not_given_leaves_its_variables_open() -> None:
    config = read(TRAIN, name="train.sh", beside={"cluster.sh": CLUSTER})
    assert "train.sh line 6: it reads ./model_15B.sh, which is not given beside it" in [
        str(note) for note in config.notes
    ]
    assert config.framework == "megatron"
    assert {"tp", "pp"} <= {each.name for each in config.missing}


def test_a_script_that_submits_a_script_that_starts_a_script_is_followed() -> None:
    files = {"fig.sh": FIGURE, "CONFIG.sh": CONFIG, "SBATCH.sh": SBATCH, "SRUN.sh": SRUN}
    sizes = config_of("fig.sh", files).sizes()
    assert (sizes.world_size, sizes.tp, sizes.pp) == (64, 8, 8)


def test_a_wrapper_around_the_program_is_looked_through() -> None:
    sizes = config_of("job.sh", {"job.sh": WRAPPED, "worker.sh": WORKER}).sizes()
    assert (sizes.world_size, sizes.tp) == (16, 4)


def test_a_wrapper_that_is_not_given_is_taken_for_one() -> None:
    sizes = config_of("job.sh", {"job.sh": WRAPPED}).sizes()
    assert (sizes.world_size, sizes.tp) == (16, 4)


def test_a_folder_is_read_by_the_file_that_names_the_others(tmp_path: Path) -> None:
    for name, text in COLLECTED.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "README.md").write_text("How to run train.sh\n", encoding="utf-8")
    (tmp_path / "logo.png").write_bytes(b"\x89PNG\x00\x00")
    config = read_path(tmp_path)
    assert (config.file, config.sizes().world_size) == ("train.sh", 32)


def test_files_of_the_folder_stand_beside_a_file(tmp_path: Path) -> None:
    for name, text in COLLECTED.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_path(tmp_path / "train.sh").sizes().world_size == 32


def test_a_python_config_that_another_imports_is_no_second_job_of_a_folder() -> None:
    base = "parallel = dict(zero1=8, tensor=dict(size=2, mode='mtp'), pipeline=dict(size=2))\n"
    job = f"from configs.base import *\n{base.replace('size=2', 'size=4', 1)}"
    config = read_among({"base.py": base, "job.py": job}, called="configs")
    assert (config.file, config.sizes({"world_size": 64}).tp) == ("job.py", 4)


def test_a_hostfile_is_no_second_job_of_a_folder() -> None:
    texts = {
        "hosts": "node1 slots=8\nnode2 slots=8",
        "ds.json": '{"zero_optimization": {"stage": 1}}',
    }
    config = read_among(texts, called="runs")
    assert (config.file, config.sizes().world_size) == ("ds.json", 16)
    alone = read_among({"hosts": texts["hosts"]}, called="runs")
    assert (alone.file, alone.sizes().world_size) == ("hosts", 16)


def test_a_hostfile_that_merely_lies_beside_a_config_counts_no_ranks(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("node1 slots=8\nnode2 slots=8", encoding="utf-8")
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 1}}', encoding="utf-8")
    script = tmp_path / "run.sh"
    script.write_text("deepspeed --hostfile hosts x.py --deepspeed ds.json\n", encoding="utf-8")
    assert read_path(tmp_path / "ds.json").world_size is None
    # The script names it.
    assert read_path(script).sizes().world_size == 16


def test_the_usual_hostfile_counts_only_where_a_script_names_it(tmp_path: Path) -> None:
    (tmp_path / "hostfile").write_text("node1 slots=8\n", encoding="utf-8")
    script = tmp_path / "run.sh"
    script.write_text("deepspeed x.py --deepspeed ds.json\n", encoding="utf-8")
    assert read_path(script).world_size is None


def test_a_folder_with_two_jobs_asks_which(tmp_path: Path) -> None:
    command = "torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size"
    (tmp_path / "a.sh").write_text(f"{command} 2", encoding="utf-8")
    (tmp_path / "b.sh").write_text(f"{command} 4", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_path(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path.name} holds 2 launch files: a.sh, b.sh; give one of them"
    )
