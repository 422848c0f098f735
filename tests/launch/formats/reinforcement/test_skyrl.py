"""SkyRL: settings on the command line, which Ray's driver takes."""

from __future__ import annotations

import pytest

from tests.launch.formats.asking import groups, open_of, settled, told

RUN = "uv run --isolated --extra fsdp -m {module} {settings}"
PLACE = "trainer.placement.policy_num_gpus_per_node"


def asked(settings: str, module: str = "skyrl.train.entrypoints.main_base") -> str:
    return RUN.format(module=module, settings=settings)


def test_the_policy_is_sharded_over_all_its_ranks() -> None:
    config = told(asked(f"{PLACE}=8 trainer.placement.policy_num_nodes=2"), "run.sh")
    assert (config.format, config.framework) == ("SkyRL command line", "fsdp")
    assert (config.sizes().world_size, config.sizes().zero) == (16, 3)


def test_shards_and_sequences_are_two_meshes() -> None:
    settings = (
        f"{PLACE}=8 trainer.strategy=fsdp trainer.policy.fsdp_config.fsdp_size=4 "
        "trainer.policy.sequence_parallel_size=2"
    )
    found = groups(told(asked(settings), "run.sh"))
    assert (found["ddp"][0], found["fsdp"][0]) == ([0, 4], [0, 1, 2, 3])
    assert (found["dp"][0], found["sp"][0]) == ([0, 2, 4, 6], [0, 1])


def test_megatron_core_takes_the_sizes_of_the_policy() -> None:
    inner = "trainer.policy.megatron_config"
    settings = (
        f"trainer.strategy=megatron {PLACE}=8 {inner}.tensor_model_parallel_size=2 "
        f"{inner}.pipeline_model_parallel_size=2 trainer.ref.megatron_config."
        "tensor_model_parallel_size=8"
    )
    sizes = told(asked(settings, "examples.train.dapo.main_dapo"), "run.sh").sizes()
    assert (sizes.world_size, sizes.tp, sizes.pp, sizes.zero) == (8, 2, 2, 1)


def test_its_trainer_for_sft_has_shorter_names_and_megatron_core_unless_told() -> None:
    settings = "placement.num_gpus_per_node=4 megatron_config.tensor_model_parallel_size=2"
    config = told(asked(settings, "skyrl.train.main_sft"), "run.sh")
    assert (config.framework, config.sizes().tp, config.sizes().world_size) == ("megatron", 2, 4)
    plain = told(asked(f"strategy=fsdp {settings}", "skyrl.train.main_sft"), "run.sh")
    assert plain.framework == "fsdp"


def test_gpus_that_are_not_told_are_asked_for() -> None:
    config = told(asked("trainer.strategy=fsdp trainer.policy.model.path=x"), "run.sh")
    assert open_of(config)["gpus_per_node"] == "run.sh does not say how many GPUs a node has"


def test_a_value_of_an_option_of_uv_is_no_command() -> None:
    text = f"uv run --extra megatron -m skyrl.train.main_dapo {PLACE}=2"
    assert settled(told(text, "run.sh"))["gpus_per_node"] == 2


@pytest.mark.parametrize("start", ["python -m", "uv run python -m", "uv run -m"])
def test_a_module_is_found_behind_what_starts_it(start: str) -> None:
    text = f"{start} skyrl.train.main_sft placement.num_gpus_per_node=2"
    assert settled(told(text, "run.sh"))["gpus_per_node"] == 2
