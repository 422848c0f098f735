from __future__ import annotations

from pathlib import Path

import pytest

from serried.launch.facts.keys import ConfigValue, Keys
from serried.launch.facts.training import NAMES, of_keys
from serried.launch.read import read, read_path

FILES = Path(__file__).parents[1] / "files"


@pytest.mark.parametrize(
    ("file", "told"),
    [
        (
            "megatron_gpt_175b.sh",
            {"layers": 96, "hidden": 12288, "heads": 96, "sequence": 2048, "global_batch": 1536},
        ),
        ("megatron_mixtral.sbatch", {"experts": 8, "top_k": 2, "sequence_parallel": "true"}),
        ("verl_grpo.sh", {"model": "/models/qwen3-30b-a3b"}),
        ("nemo_gpt.yaml", {"precision": "bf16", "micro_batch": 4, "hidden": 2048}),
        ("titan_deepseek.toml", {"kind": "deepseek_v3", "flavor": "16B", "sequence": 4096}),
        ("llama_factory.yaml", {"model": "/models/llama-3-8b", "micro_batch": 1}),
        ("llm_foundry.yaml", {"hidden": 2048, "layers": 24, "global_batch": 256}),
        ("internlm_7B_sft.py.txt", {"hidden": 4096, "vocab": 103168, "accumulation": 4}),
        ("swift_sft.sh", {"model": "Qwen/Qwen2.5-7B-Instruct", "accumulation": 4}),
        ("titan_run.sh", {"kind": "llama3", "flavor": "405B"}),
    ],
)
def test_files_of_every_kind_say_what_they_train(file: str, told: dict[str, object]) -> None:
    found = read_path(FILES / file).training
    assert {name: found[name].value for name in told} == told


def test_a_value_knows_its_place() -> None:
    found = read_path(FILES / "megatron_gpt_175b.sh").training["hidden"]
    assert str(found.where) == "megatron_gpt_175b.sh line 33, --hidden-size"


def test_the_command_goes_before_the_config_that_it_names() -> None:
    yaml = "model:\n  tensor_model_parallel_size: 2\n  hidden_size: 1024\n  num_layers: 4\n"
    script = "torchrun --nproc_per_node 8 megatron_gpt_pretraining.py --config-name c.yaml "
    config = read(f"{script} model.hidden_size=2048\n", name="run.sh", beside={"c.yaml": yaml})
    assert config.training["hidden"].value == 2048


def test_what_hangs_on_a_condition_is_left_out() -> None:
    script = "if docker ps; then ARGS='--hidden-size 64'; fi\n"
    script += "torchrun --nproc_per_node 8 t.py --tensor-model-parallel-size 2 $ARGS\n"
    assert "hidden" not in read(script, name="run.sh").training


def test_no_key_means_two_things_and_other_models_are_left_out() -> None:
    known = [each for several in NAMES.values() for each in several]
    assert len(known) == len(set(known))
    keys = Keys("x.yaml")
    keys.add("critic.model.hidden_size", ConfigValue(64))
    keys.add("data.train_batch_size", ConfigValue(64))
    assert of_keys(keys) == {}
