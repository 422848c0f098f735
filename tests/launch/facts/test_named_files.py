"""Files that a launch file names by a path: found in its repository, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from serried.launch.facts.named_files import meant, texts
from serried.launch.read import read_path
from serried.limits import NAMED_DEPTH, NAMED_FILES

RUN = "deepspeed --num_gpus 8 train.py --deepspeed {}\n"
ZERO = '{{"zero_optimization": {{"stage": {}}}}}'


def laid_down(root: Path, **files: str) -> Path:
    """Writes files named ``a__b_json`` below a repository's root, which it returns."""
    (root / ".git").mkdir(parents=True)
    for key, text in files.items():
        path = root / key.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    "path", ["conf/z.json", "$ROOT/conf/z.json", "${DIR}/../conf/z.json", "../conf/z.json"]
)
def test_a_path_is_looked_for_from_the_folder_up_to_the_root(tmp_path: Path, path: str) -> None:
    root = laid_down(tmp_path / "r", conf__z_json=ZERO.format(3), run__a_sh=RUN.format(path))
    assert read_path(root / "run" / "a.sh").sizes().zero == 3


def test_of_two_files_with_one_name_the_path_decides(tmp_path: Path) -> None:
    files = {"a__z_json": ZERO.format(1), "b__z_json": ZERO.format(2), "z_json": ZERO.format(3)}
    root = laid_down(tmp_path / "r", **files, run_sh=f"# not a/z.json\n{RUN.format('b/z.json')}")
    assert read_path(root / "run.sh").sizes().zero == 2


def test_nothing_outside_the_repository_is_read(tmp_path: Path) -> None:
    (tmp_path / "z.json").write_text(ZERO.format(3), encoding="utf-8")
    root = laid_down(tmp_path / "r", run_sh=RUN.format("../z.json"))
    (root / "conf").mkdir()
    (root / "conf" / "z.json").symlink_to(tmp_path / "z.json")
    assert texts(root / "run.sh", RUN.format("../z.json")) == {}
    assert texts(root / "run.sh", RUN.format("conf/z.json")) == {}


def test_a_file_of_no_repository_finds_what_is_below_its_folder(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "z.json").write_text(ZERO.format(3), encoding="utf-8")
    (tmp_path / "z.json").write_text(ZERO.format(1), encoding="utf-8")
    assert [*texts(tmp_path / "run.sh", RUN.format("conf/z.json"))] == ["conf/z.json"]
    assert texts(tmp_path / "conf" / "run.sh", RUN.format("../z.json")) == {}


def test_a_sourced_script_names_files_too_but_not_without_end(tmp_path: Path) -> None:
    chain = {f"s{i}__a_sh": f"source s{i + 1}/a.sh\n" for i in range(9)}
    root = laid_down(tmp_path / "r", **chain)
    found = texts(root / "run.sh", "source s0/a.sh")
    assert [*found] == [f"s{i}/a.sh" for i in range(NAMED_DEPTH.most + 1)]
    many = laid_down(tmp_path / "m", **{f"d__{i}_sh": "" for i in range(99)})
    names = "".join(f"d/{i}.sh\n" for i in range(99))
    assert len(texts(many / "run.sh", names)) == NAMED_FILES.most


def test_what_defaults_of_hydra_take_in_is_found_below_their_group(tmp_path: Path) -> None:
    run = "defaults:\n  - train: 7b\n  - override /serve: 1b\n  - _self_\n"
    root = laid_down(tmp_path / "r", conf__train__7b_yaml="", conf__serve__1b_yaml="")
    assert [*texts(root / "conf" / "run.yaml", run)] == ["train/7b.yaml", "serve/1b.yaml"]


def test_a_config_of_verl_is_the_one_that_stands_in_its_repository(tmp_path: Path) -> None:
    config = "actor_rollout_ref:\n  actor:\n    megatron:\n      tensor_model_parallel_size: 4\n"
    run = "python3 -m verl.trainer.main_ppo --config-path=x --config-name='ppo_megatron_trainer'"
    files = {"verl__trainer__config__ppo_megatron_trainer.yaml": config, "run.sh": run}
    root = laid_down(tmp_path / "r")
    for key, text in files.items():
        path = root / key.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert read_path(root / "run.sh").sizes().tp == 4


def test_a_file_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    root = laid_down(tmp_path / "r")
    (root / "c").mkdir()
    (root / "c" / "z.json").write_bytes(b"\x00\xff")
    assert texts(root / "run.sh", RUN.format("c/z.json")) == {}


@pytest.mark.parametrize(
    ("path", "expected"),
    [("x/b/z.json", "b/z.json"), ("z.json", "a/z.json"), ("/b/z.json", "b/z.json"), ("y", None)],
)
def test_the_longest_common_end_is_meant(path: str, expected: str | None) -> None:
    assert meant(path, ["a/z.json", "b/z.json"]) == expected


@pytest.mark.parametrize("command", ["bash", "sh", "source", ".", "sbatch --wait x; bash"])
def test_a_script_without_a_folder_is_looked_for_at_the_root_as_well(
    tmp_path: Path, command: str
) -> None:
    train = "torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 2\n"
    root = laid_down(
        tmp_path / "r", train_sh=train, jobs__run_sh=f"#!/bin/bash\n{command} train.sh\n"
    )
    assert read_path(root / "jobs" / "run.sh").sizes().tp == 2


def test_a_path_of_the_machine_of_the_job_is_looked_for_by_its_end(tmp_path: Path) -> None:
    path = "/home/me/r/conf/z.json"
    root = laid_down(tmp_path / "r", conf__z_json=ZERO.format(3), run__a_sh=RUN.format(path))
    assert read_path(root / "run" / "a.sh").sizes().zero == 3
    other = laid_down(tmp_path / "o", other__z_json=ZERO.format(3), run__a_sh=RUN.format(path))
    assert read_path(other / "run" / "a.sh").fields.get("zero") is None
