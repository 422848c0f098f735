"""verl's settings, as YAML and on the command line, beside the meshes that verl itself makes."""

from __future__ import annotations

import pytest

from serried.errors import InputError
from serried.launch.facts.config import LaunchConfig
from serried.launch.read import read
from serried.launch.request import LayoutRequest

RUN = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo {settings}"
ACTOR = "actor_rollout_ref.actor"
YAML = """
actor_rollout_ref:
  actor:
    strategy: {strategy}
    ulysses_sequence_parallel_size: {ulysses}
    fsdp_config:
      fsdp_size: {fsdp}
    megatron:
      tensor_model_parallel_size: 4
      pipeline_model_parallel_size: 2
  rollout:
    tensor_model_parallel_size: 8
trainer:
  nnodes: 2
  n_gpus_per_node: 8
"""


def told(settings: str, **beside: str) -> LaunchConfig:
    files = {name.replace("__", "."): text for name, text in beside.items()}
    return read(RUN.format(settings=settings), name="run.sh", beside=files)


def groups(config: LaunchConfig) -> dict[str, list[list[int]]]:
    layout = LayoutRequest.of(config=config).layout()
    return {kind.name: layout.groups(kind.name).lists() for kind in layout.kinds}


def test_the_world_of_a_driver_is_eight_gpus_of_one_node_unless_it_says_otherwise() -> None:
    assert told("data.train_batch_size=8").sizes().world_size == 8
    assert told("trainer.nnodes=4 +trainer.n_gpus_per_node=16").sizes().world_size == 64


def test_weights_are_sharded_over_all_ranks() -> None:
    config = told("trainer.nnodes=2")
    assert (config.format, config.framework) == ("verl command line", "fsdp")
    assert groups(config)["dp_shard"] == [list(range(16))]
    assert config.sizes().zero == 3


@pytest.mark.parametrize("size", [-1, 16, 64])
def test_a_shard_as_wide_as_the_world_makes_no_copies(size: int) -> None:
    config = told(f"trainer.nnodes=2 {ACTOR}.fsdp_config.fsdp_size={size}")
    assert groups(config)["dp_replicate"] == [[rank] for rank in range(16)]


def test_a_narrower_shard_leaves_copies() -> None:
    config = told(f"trainer.nnodes=2 {ACTOR}.fsdp_config.fsdp_size=8")
    assert groups(config)["dp_shard"] == [[*range(8)], [*range(8, 16)]]


def test_sequences_divide_the_same_ranks_once_more() -> None:
    # init_device_mesh of (2, 4) as ddp, fsdp, and of (4, 2) as dp, sp, as verl calls it.
    settings = f"trainer.n_gpus_per_node=8 {ACTOR}.ulysses_sequence_parallel_size=2"
    found = groups(told(f"{settings} {ACTOR}.fsdp_config.fsdp_size=4"))
    assert found["ddp"] == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert found["fsdp"] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert found["dp"] == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert found["sp"] == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_a_shard_and_a_sequence_that_cut_one_another_are_refused() -> None:
    settings = f"trainer.n_gpus_per_node=12 {ACTOR}.ulysses_sequence_parallel_size=3"
    with pytest.raises(InputError) as caught:
        groups(told(f"{settings} {ACTOR}.fsdp_config.fsdp_size=4"))
    assert str(caught.value) == (
        "12 ranks cannot be divided as ddp=3 x fsdp=4; dp=4 x sp=3 at once: 3 does not divide 4"
    )


def test_megatron_core_takes_the_sizes_of_the_actor_and_not_those_of_the_answers() -> None:
    config = read(YAML.format(strategy="megatron", ulysses=1, fsdp=-1), name="x.yaml")
    sizes = config.sizes()
    assert (config.format, config.framework, sizes.world_size) == ("verl YAML", "megatron", 16)
    assert (sizes.tp, sizes.pp, sizes.zero) == (4, 2, 1)


def test_the_strategy_goes_before_sizes_of_the_other_engine() -> None:
    config = read(YAML.format(strategy="fsdp2", ulysses=1, fsdp=-1), name="x.yaml")
    assert (config.framework, config.sizes().tp) == ("fsdp", 1)


def test_the_config_of_megatron_core_is_known_by_its_name() -> None:
    sized = f"{ACTOR}.megatron.tensor_model_parallel_size=2"
    assert told(f"--config-name=ppo_megatron_trainer.yaml {ACTOR}.optim.lr=1").framework == (
        "megatron"
    )
    assert told(f"--config-name='ppo_megatron_trainer' {sized}").sizes().tp == 2
    assert not told(f"--config-name='ppo_megatron_trainer' {sized}").notes


def test_settings_go_before_the_config_that_the_command_names() -> None:
    yaml = YAML.format(strategy="megatron", ulysses=1, fsdp=-1)
    settings = f"--config-name=mine {ACTOR}.megatron.tensor_model_parallel_size=8"
    config = told(settings, mine__yaml=yaml)
    assert (config.sizes().tp, config.sizes().pp, config.sizes().world_size) == (8, 2, 16)
    assert str(config.fields["pp"].where).startswith("mine.yaml line 10, ")


def test_a_config_that_is_missing_is_named() -> None:
    [note] = told("--config-name=mine trainer.nnodes=1").notes
    assert str(note).startswith("run.sh line 1 names mine.yaml, which is not given beside it")


def test_a_trainer_of_answers_alone_takes_its_ranks_from_torchrun() -> None:
    run = "torchrun --nnodes 2 --nproc_per_node 8 -m verl.trainer.fsdp_sft_trainer {}"
    config = read(run.format("model.partial_pretrain=x trainer.n_gpus_per_node=4"), name="x.sh")
    assert (config.framework, config.sizes().world_size) == ("fsdp", 16)
    engine = "data.train_files=x engine=megatron engine.tensor_model_parallel_size=2"
    config = read(run.format(f"{engine} engine.strategy=megatron"), name="x.sh")
    assert (config.framework, config.sizes().tp) == ("megatron", 2)


@pytest.mark.parametrize(
    ("engine", "framework"),
    [
        ("engine=megatron trainer.n_gpus_per_node=16", "megatron"),
        ("engine=megatron engine.tensor_model_parallel_size=4", "megatron"),
        ("engine.tensor_model_parallel_size=4", "megatron"),
        ("engine=fsdp engine.fsdp_size=4", "fsdp"),
    ],
)
def test_the_engine_that_is_chosen_trains(engine: str, framework: str) -> None:
    run = "torchrun --nproc_per_node 16 -m verl.trainer.sft_trainer data.train_files=x"
    config = read(f"{run} {engine}", name="x.sh")
    assert (config.framework, config.sizes().world_size) == (framework, 16)


EASY = "worker:\n  actor:\n    fsdp:\n      fsdp_size: 4\ntrainer:\n  nnodes: 1\n"


def test_easy_r1_names_its_yaml_by_a_setting() -> None:
    run = "python3 -m verl.trainer.main config=examples/config.yaml worker.actor.ulysses_size=2"
    config = read(run, name="x.sh", beside={"config.yaml": EASY})
    assert groups(config)["fsdp"] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert groups(config)["sp"] == [[0, 1], [2, 3], [4, 5], [6, 7]]


@pytest.mark.parametrize("program", ["main_generation", "main_eval"])
def test_what_only_writes_answers_is_no_training(program: str) -> None:
    run = f"python3 -m verl.trainer.{program} trainer.nnodes=1 rollout.name=vllm"
    with pytest.raises(InputError, match="trains nothing"):
        read(run, name="run.sh")


def test_a_setting_that_a_comment_cut_off_is_pointed_out() -> None:
    [note] = told("trainer.nnodes=2 \\\n# a comment\ntrainer.n_gpus_per_node=4").notes
    assert str(note).startswith("run.sh line 3: 'trainer.n_gpus_per_node=4' begins a command")


def test_what_a_variable_leaves_open_is_asked_for() -> None:
    missing = told(f"{ACTOR}.ulysses_sequence_parallel_size=$SP").missing
    assert [each.name for each in missing] == ["ulysses_size"]
    assert "SP on line 1 is not set in the file" in str(missing[0].because)


def test_two_settings_that_contradict_are_both_named() -> None:
    text = YAML.format(strategy="megatron", ulysses=1, fsdp=-1).replace(
        "pipeline_model", "tensor_model"
    )
    [tp] = read(text, name="x.yaml").missing
    assert "it is given as 4 (x.yaml line 9, " in str(tp.because)
    assert " and as 2 (x.yaml line 10, " in str(tp.because)


@pytest.mark.parametrize(
    ("base", "framework"), [("ppo_trainer", "fsdp"), ("ppo_megatron_trainer", "megatron")]
)
def test_a_config_that_overrides_little_is_known_by_what_it_takes_in(
    base: str, framework: str
) -> None:
    text = f"defaults:\n  - {base}\n  - _self_\nalgorithm:\n  filter_groups: {{enable: true}}\n"
    config = read(text, name="dapo_trainer.yaml")
    assert (config.format, config.framework) == ("verl YAML", framework)
    assert config.sizes().world_size == 8
