"""Files of every kind that are cut short, empty, binary, too large, or say more than is known."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.launch.facts.config import LaunchConfig
from serried.launch.read import read, read_path
from serried.limits import LAUNCH_BYTES

FOLDER = Path(__file__).parents[1] / "files"
NAMES = (
    *("verl_grpo.sh", "verl_ppo.yaml", "swift_sft.sh", "fsdp_trainer.sh", "llama_factory.yaml"),
    *("openrlhf_grpo.sh", "maxtext_gpu.yml", "flagscale_task.yaml", "primus_pretrain.yaml"),
    *("nemo_rl_grpo.yaml", "axolotl_fsdp.yml", "llm_foundry.yaml", "automodel_sft.yaml"),
    *("skyrl_grpo.sh", "swift_ray.yaml", "skypilot_task.yaml", "veomni_sft.yaml"),
)
TEXTS = {name: (FOLDER / name).read_text(encoding="utf-8") for name in NAMES}
TWICE = {
    "verl_grpo.sh": ("trainer.nnodes=$NNODES", "trainer.nnodes=4"),
    "verl_ppo.yaml": ("  n_gpus_per_node: 8", "  n_gpus_per_node: 4"),
    "swift_sft.sh": ("--deepspeed zero2", "--deepspeed zero3"),
    "fsdp_trainer.sh": ("--nproc_per_node 8", "--nproc_per_node 4"),
    "openrlhf_grpo.sh": ("--ds.zero_stage 3", "--ds.zero_stage 2"),
    "maxtext_gpu.yml": ("dcn_fsdp_parallelism: 2", "dcn_fsdp_parallelism: 4"),
    "flagscale_task.yaml": (
        "  tensor_model_parallel_size: 2",
        "  tensor_model_parallel_size: 4",
    ),
    "primus_pretrain.yaml": (
        "      tensor_model_parallel_size: ${PRIMUS_TP:2}",
        "      tensor_model_parallel_size: ${PRIMUS_TP:4}",
    ),
    "nemo_rl_grpo.yaml": ("  num_nodes: 2", "  num_nodes: 4"),
    "automodel_sft.yaml": ("  dp_size: 4", "  dp_size: 8"),
    "skyrl_grpo.sh": (
        "trainer.placement.policy_num_nodes=2",
        "trainer.placement.policy_num_nodes=4",
    ),
    "veomni_sft.yaml": ("    ulysses_size: 2", "    ulysses_size: 4"),
    "swift_ray.yaml": ("  gpus: 8", "  gpus: 4"),
    "axolotl_fsdp.yml": ("tensor_parallel_size: 2", "tensor_parallel_size: 4"),
    "llm_foundry.yaml": (
        "  data_parallel_shard_degree: 8",
        "  data_parallel_shard_degree: 4",
    ),
}
"""A size of each file, and another value for it."""


def answer(config: LaunchConfig) -> tuple[object, ...]:
    values = {name: each.value for name, each in {**config.fields, **config.options}.items()}
    return config.format, config.framework, values


@pytest.mark.parametrize("name", NAMES)
def test_a_file_cut_short_is_read_or_refused_in_a_sentence(name: str) -> None:
    text = TEXTS[name]
    for end in range(0, len(text), 37):
        try:
            read(text[:end], name=name).sizes({"world_size": 64})
        except InputError as error:
            assert str(error)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_a_binary_and_a_huge_file_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    for data in (b"", b"\x00\x01" + TEXTS[name].encode(), b"#" * (LAUNCH_BYTES.most + 1)):
        path.write_bytes(data)
        with pytest.raises(InputError, match=name):
            read_path(path)


@pytest.mark.parametrize("name", NAMES)
def test_a_gigabyte_is_refused_by_its_size_and_not_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.touch()
    os.truncate(path, 2**30)
    with pytest.raises(InputError) as caught:
        read_path(path)
    assert str(caught.value) == (
        f"{path} holds more than 1 MB, the most that serried reads of a launch file"
    )


@pytest.mark.parametrize("name", [each for each in NAMES if not each.endswith(".sh")])
def test_keys_that_are_not_known_change_nothing(name: str) -> None:
    more = f"{TEXTS[name]}unheard_of:\n  tp: 3\n  dp: [1, 2]\nnor_this: true\n"
    assert answer(read(more, name=name)) == answer(read(TEXTS[name], name=name))


@pytest.mark.parametrize("name", TWICE)
def test_two_sizes_that_contradict_are_both_named(name: str) -> None:
    said, other = TWICE[name]
    joined = f"{said} {other}" if name.endswith(".sh") else f"{said}\n{other}"
    config = read(TEXTS[name].replace(said, joined), name=name)
    reasons = " ".join(str(each.because) for each in config.missing)
    assert "it is given as " in reasons and " and as " in reasons
