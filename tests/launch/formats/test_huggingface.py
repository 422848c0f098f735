"""Trainers of Hugging Face's family: what their options and YAML make of the ranks."""

from __future__ import annotations

import pytest

from tests.launch.formats.asking import groups, open_of, settled, told

RUN = "torchrun --nnodes 2 --nproc_per_node 4 train.py --per_device_train_batch_size 1 {}"
JSON = '{"zero_optimization": {"stage": 3}}'
YAML = "model_name_or_path: x\nper_device_train_batch_size: 1\n"


@pytest.mark.parametrize(
    ("words", "strategy", "zero"),
    [
        ('--fsdp "full_shard auto_wrap"', "FULL_SHARD", 3),
        ('--fsdp="shard_grad_op auto_wrap"', "SHARD_GRAD_OP", 2),
        ("--fsdp no_shard", "NO_SHARD", 0),
        ("--fsdp true --fsdp_config c.json", "FULL_SHARD", 3),
    ],
)
def test_fsdp_takes_its_strategy_from_the_words(words: str, strategy: str, zero: int) -> None:
    config = told(RUN.format(words), "run.sh")
    assert (config.framework, config.sizes().world_size) == ("fsdp", 8)
    assert (settled(config)["sharding_strategy"], config.sizes().zero) == (strategy, zero)


def test_a_hybrid_strategy_shards_over_the_ranks_that_torchrun_starts_on_a_node() -> None:
    config = told(RUN.format('--fsdp "hybrid_shard auto_wrap"'), "run.sh")
    assert groups(config)["dp_shard"] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_deepspeed_goes_before_fsdp_and_takes_the_stage_from_its_json() -> None:
    config = told(RUN.format("--fsdp full_shard --deepspeed conf/z3.json"), "run.sh", z3_json=JSON)
    assert (config.framework, config.sizes().zero) == ("deepspeed", 3)
    assert config.format == "torchrun command line, DeepSpeed JSON"


@pytest.mark.parametrize("words", ["--deepspeed", "--deepspeed $CONFIG", "--deepspeed=a.json"])
def test_deepspeed_is_told_by_its_option_whatever_its_value(words: str) -> None:
    assert told(RUN.format(words), "run.sh").framework == "deepspeed"


def test_neither_makes_copies_and_says_so() -> None:
    config = told(RUN.format(""), "run.sh")
    assert groups(config)["dp_replicate"] == [list(range(8))]
    assert [str(note) for note in config.notes] == [
        "run.sh names neither deepspeed nor fsdp, so each rank holds whole weights, unless the "
        "config of 'accelerate launch' says otherwise"
    ]


def test_a_strategy_that_is_not_known_leaves_the_framework_open() -> None:
    config = told(RUN.format('--fsdp "$FSDP"'), "run.sh")
    assert open_of(config)["framework"] == "--fsdp: FSDP on line 1 is not set in the file"


# ----------------------------------------------------------------------- YAML


def test_yaml_names_deepspeed_or_holds_its_config() -> None:
    assert told(f"{YAML}deepspeed: ds/z3.json\n", z3_json=JSON).sizes({"world_size": 8}).zero == 3
    inline = f"{YAML}deepspeed:\n  zero_optimization:\n    stage: 2\n"
    assert told(inline).sizes({"world_size": 8}).zero == 2
    [note] = told(f"{YAML}deepspeed: ds/z3.json\n").notes
    assert str(note) == (
        "x.yaml names ds/z3.json, which is not given beside it; what it says is not known"
    )


def test_yaml_leaves_only_the_ranks_open() -> None:
    assert [*open_of(told(f"{YAML}deepspeed: z3.json\n"))] == ["world_size"]
    config = told(f"{YAML}fsdp: full_shard auto_wrap\n")
    assert groups(config, 4)["dp_shard"] == [[0, 1, 2, 3]]


# ----------------------------------------------------------------------- those built upon it


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_ms_swift_has_configs_of_its_own(stage: int) -> None:
    text = f"NPROC_PER_NODE=4 swift sft --model x --deepspeed zero{stage}"
    config = told(text, "run.sh")
    assert (config.format, config.framework) == ("ms-swift command line", "deepspeed")
    assert (config.sizes().world_size, config.sizes().zero) == (4, stage)


def test_ms_swift_starts_torchrun_by_variables() -> None:
    text = (
        "export NNODES=2\nexport NPROC_PER_NODE=8\nswift rlhf --model x --deepspeed zero3_offload"
    )
    assert told(text, "run.sh").sizes().world_size == 16
    assert told("swift sft --model x", "run.sh").sizes().world_size == 1
    yaml = f"{YAML}deepspeed: zero2\nENV:\n  NPROC_PER_NODE: 4\n  NNODES: 2\n"
    assert told(yaml).sizes().world_size == 8


def test_ms_swift_cuts_sequences_over_neighbours() -> None:
    text = "NPROC_PER_NODE=4 swift sft --deepspeed zero3 --sequence_parallel_size 2"
    config = told(text, "run.sh")
    found = groups(config)
    assert found["sequence"] == [[0, 1], [2, 3]] and found["data"] == [[0, 2], [1, 3]]
    assert config.sizes().zero == 3
    assert str(config.notes[0]) == (
        "run.sh line 1, --sequence_parallel_size: ms-swift cuts it into ring x sequence where it "
        "does not divide the attention heads; here they are one axis"
    )


def test_parts_of_sequences_are_no_ms_swifts_elsewhere() -> None:
    config = told(RUN.format("--deepspeed --sequence_parallel_size 2"), "run.sh")
    assert (config.framework, config.sizes().world_size) == ("deepspeed", 8)


def test_the_megatron_command_of_ms_swift_needs_no_size() -> None:
    config = told("NPROC_PER_NODE=2 megatron sft --model x", "run.sh")
    assert (config.framework, config.sizes().world_size, config.sizes().etp) == ("megatron", 2, 1)


def test_llama_factory_takes_the_gpus_that_the_script_makes_visible() -> None:
    run = "CUDA_VISIBLE_DEVICES=0,1 llamafactory-cli train a.yaml"
    config = told(run, "run.sh", a_yaml=f"{YAML}deepspeed: z2.json\n")
    assert (config.framework, config.sizes().world_size) == ("deepspeed", 2)
    run = "FORCE_TORCHRUN=1 NNODES=2 NPROC_PER_NODE=8 llamafactory-cli train a.yaml"
    assert told(run, "run.sh", a_yaml=YAML).sizes().world_size == 16
    alone = open_of(told("llamafactory-cli train a.yaml", "run.sh", a_yaml=YAML))
    assert alone["gpus_per_node"] == "llamafactory on line 1 takes every GPU it finds"


def test_hosts_of_accelerate_are_no_setting_of_the_layout() -> None:
    text = (
        "distributed_type: DEEPSPEED\nnum_machines: 2\nnum_processes: 16\ndeepspeed_config:\n"
        "  zero_stage: 2\n  deepspeed_hostfile: hosts\n  deepspeed_inclusion_filter: a@b\n"
    )
    assert groups(told(text))["data"] == [[*range(16)]]


def test_a_config_of_accelerate_by_a_name_that_is_not_known_is_asked_for_by_it() -> None:
    config = told("accelerate launch --config_file $C train.py\n", "run.sh")
    assert open_of(config)["framework"] == "--config-file: C on line 1 is not set in the file"
