"""Launch files as people write them, long and with site quirks: what is read from each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from serried import frameworks
from serried.launch.facts.config import LaunchConfig
from serried.launch.facts.found import Found
from serried.launch.read import read

FOLDER = Path(__file__).parent / "files"
TEXTS = {
    path.name.removesuffix(".txt") if path.name.endswith(".py.txt") else path.name: path.read_text(
        encoding="utf-8"
    )
    for path in sorted(FOLDER.iterdir())
}
"""Python configs end in .py.txt there, so that no tool takes them for modules of ours."""


class Said(NamedTuple):
    """What a file says: format, framework, ranks, sizes other than one, and settings."""

    format: str
    framework: str
    world_size: int | None
    sizes: Mapping[str, int | str]
    options: Mapping[str, str] = {}


MEGATRON = "Megatron script"
INTERN = "InternLM or InternEvo config"
EVO_32K = {"tensor.mode": "isp", "weight.size": "4", "zero1.fsdp": "false"}
EVO_MOE = {"expert.size": "8", "expert.no_tp": "true", "expert_weight.size": "2"}
OVERLAP = {"pipeline.interleaved_overlap": "true"}

FILES = {
    "megatron_gpt_175b.sh": Said(MEGATRON, "megatron", 128, {"tp": 8, "pp": 16}),
    "megatron_llama3_fp8.sh": Said(MEGATRON, "megatron", 32, {"tp": 2, "cp": 2, "zero": 1}),
    "megatron_mixtral.sbatch": Said(
        f"{MEGATRON} under Slurm",
        "megatron",
        128,
        {"tp": 2, "pp": 8, "ep": 8, "etp": 1, "zero": 1},
        {"virtual_pipeline_model_parallel_size": "7"},
    ),
    "pai_deepseek.sh": Said(MEGATRON, "megatron", 8, {"tp": 2, "pp": 2, "ep": 2, "zero": 1}),
    "megatron_cases.sh": Said(MEGATRON, "megatron", 8, {"cp": 4}),
    "megatron_submit.sh": Said(
        f"{MEGATRON} under Slurm", "megatron", 32, {"tp": 2, "ep": 8, "etp": 1, "zero": 3}
    ),
    "megatron_recipe.yaml": Said(
        "Megatron functional-test YAML",
        "megatron",
        None,
        {"tp": 2, "pp": 2, "cp": 2, "etp": 4},
        {
            "use_tp_pp_dp_mapping": "true",
            "create_gloo_process_groups": "false",
            "virtual_pipeline_model_parallel_size": "2",
        },
    ),
    "megatron_cfg.yaml": Said("Megatron --yaml-cfg", "megatron", None, {"tp": 4, "pp": 2}),
    "verl_grpo.sh": Said(
        "verl command line", "megatron", 16, {"tp": 4, "pp": 2, "ep": 2, "etp": 1, "zero": 1}
    ),
    "verl_ppo.yaml": Said(
        "verl YAML", "devicemesh", 16, {"zero": 3}, {"fsdp_size": "8", "ulysses_size": "2"}
    ),
    "swift_sft.sh": Said("ms-swift command line", "deepspeed", 4, {"zero": 2}),
    "fsdp_trainer.sh": Said(
        "torchrun command line under Slurm",
        "fsdp",
        16,
        {},
        {"sharding_strategy": "HYBRID_SHARD", "devices_per_node": "8"},
    ),
    "llama_factory.yaml": Said("Hugging Face trainer YAML", "deepspeed", None, {"zero": 3}),
    "openrlhf_grpo.sh": Said(
        "OpenRLHF command line", "devicemesh", 8, {"zero": 3}, {"ring_attn_size": "2"}
    ),
    "maxtext_gpu.yml": Said(
        "MaxText YAML",
        "devicemesh",
        32,
        {},
        {
            "dcn_data_parallelism": "2",
            "dcn_fsdp_parallelism": "2",
            "ici_fsdp_parallelism": "4",
            "ici_tensor_parallelism": "2",
        },
    ),
    "flagscale_task.yaml": Said(
        "FlagScale YAML", "megatron", None, {"tp": 2, "pp": 2, "ep": 2, "zero": 1}
    ),
    "primus_pretrain.yaml": Said("Primus YAML", "megatron", None, {"tp": 2, "ep": 8, "zero": 1}),
    "automodel_sft.yaml": Said(
        "NeMo Automodel YAML",
        "devicemesh",
        16,
        {"tp": 2, "pp": 2},
        {"dp_size": "4", "expert_size": "8"},
    ),
    "skyrl_grpo.sh": Said(
        "SkyRL command line", "devicemesh", 16, {"zero": 3}, {"ulysses_size": "2"}
    ),
    "veomni_sft.yaml": Said(
        "VeOmni YAML", "devicemesh", None, {"zero": 3}, {"ulysses_size": "2", "ep_size": "4"}
    ),
    "swift_ray.yaml": Said("ms-swift YAML for Ray", "megatron", 8, {"tp": 2, "pp": 2, "etp": 1}),
    "skypilot_task.yaml": Said("Megatron script under SkyPilot", "megatron", 16, {"tp": 4}),
    "nemo_rl_grpo.yaml": Said("NeMo-RL YAML", "devicemesh", 16, {"tp": 2, "cp": 2}),
    "axolotl_fsdp.yml": Said("axolotl YAML", "accelerate", None, {"tp": 2}, {"dp_shard_size": "4"}),
    "llm_foundry.yaml": Said(
        "llm-foundry YAML",
        "fsdp",
        16,
        {"zero": 3},
        {"data_parallel_shard_degree": "8", "data_parallel_replicate_degree": "2"},
    ),
    "nemo_gpt.yaml": Said("NeMo YAML", "megatron", 32, {"tp": 4, "pp": 2}),
    "nemo2.yaml": Said(
        "NeMo 2 YAML",
        "megatron",
        128,
        {"tp": 8, "pp": 4},
        {"virtual_pipeline_model_parallel_size": "5", "use_tp_pp_dp_mapping": "true"},
    ),
    "bridge.yaml": Said(
        "Megatron-Bridge YAML",
        "megatron",
        None,
        {"tp": 2, "ep": 8, "etp": 1},
        {"num_distributed_optimizer_instances": "2", "use_tp_pp_dp_mapping": "false"},
    ),
    "internlm_7B_sft.py": Said(INTERN, "internlm", None, {"tp": 4, "pp": 2, "zero1": 8}),
    "train_7B.slurm": Said(
        f"srun command line, {INTERN} under Slurm",
        "internlm",
        64,
        {"tp": 4, "pp": 2, "zero1": 8},
    ),
    "internevo_20B_isp.py": Said(
        INTERN, "internevo", None, {"tp": 8, "pp": 2, "zero1": 2}, EVO_32K | OVERLAP
    ),
    "internevo_moe.py": Said(
        INTERN,
        "internevo@develop-2025-01",
        None,
        {"zero1": -1},
        {"num_experts": "128", "tensor.mode": "isp", "weight.size": "8"} | EVO_MOE | OVERLAP,
    ),
    "internevo_demo.py": Said(
        INTERN,
        "internevo",
        None,
        {"tp": 2, "pp": 4, "zero1": -1},
        {"tensor.mode": "mtp", "weight.size": "1"} | OVERLAP,
    ),
    "ds_zero3.json": Said("DeepSpeed JSON", "deepspeed", 24, {"zero": 3}),
    "ds_hosts": Said("DeepSpeed hostfile", "deepspeed", 24, {}),
    "ds_train.sh": Said("deepspeed command line, DeepSpeed JSON", "deepspeed", 15, {"zero": 3}),
    "bloom.slurm": Said(
        "Megatron-DeepSpeed script under Slurm",
        "deepspeed",
        384,
        {"tp": 4, "pp": 12, "zero": 0},
    ),
    "ds_moe.sh": Said("Megatron-DeepSpeed script", "deepspeed", 64, {"ep": 64}),
    "neox_20B.yml": Said("GPT-NeoX YAML", "deepspeed", None, {"tp": 2, "pp": 4, "zero": 1}),
    "accelerate_nd.yaml": Said(
        "Accelerate YAML",
        "accelerate",
        16,
        {"tp": 2, "cp": 2},
        {"dp_replicate_size": "2", "dp_shard_size": "2", "use_fsdp": "true"},
    ),
    "accelerate_hybrid.yaml": Said(
        "Accelerate YAML",
        "fsdp",
        32,
        {},
        {"sharding_strategy": "HYBRID_SHARD", "devices_per_node": "8"},
    ),
    "accelerate_megatron.yaml": Said("Accelerate YAML", "megatron", 8, {"tp": 2, "pp": 2}),
    "accelerate_deepspeed.yaml": Said("Accelerate YAML", "deepspeed", 8, {"zero": 3}),
    "accelerate_job.slurm": Said(
        "accelerate launch command line under Slurm",
        "fsdp",
        16,
        {"zero": 3},
        {"sharding_strategy": "FULL_SHARD"},
    ),
    "titan_deepseek.toml": Said(
        "torchtitan TOML",
        "torchtitan@0.2.2",
        32,
        {"tp": 2, "pp": 2, "ep": 4, "etp": 1},
        {"data_parallel_replicate_degree": "2", "data_parallel_shard_degree": "4"},
    ),
    "titan_old.toml": Said(
        "torchtitan TOML",
        "torchtitan@0.1.0",
        None,
        {"tp": 8, "pp": 4},
        {"data_parallel_replicate_degree": "1"},
    ),
    "titan_run.sh": Said(
        "torchtitan command line",
        "torchtitan@0.1.0",
        8,
        {"tp": 2, "pp": 4},
        {"data_parallel_replicate_degree": "1"},
    ),
    "titan_multinode.slurm": Said(
        "torchtitan command line under Slurm",
        "torchtitan",
        32,
        {"tp": 4},
        {"data_parallel_replicate_degree": "2"},
    ),
    "nanotron_llama.yaml": Said(
        "nanotron YAML", "nanotron", 32, {"tp": 2, "pp": 2, "cp": 2, "dp": 4, "zero": 0}
    ),
    "nanotron_job.slurm": Said(
        "torchrun command line, nanotron YAML under Slurm",
        "nanotron",
        32,
        {"tp": 2, "pp": 2, "cp": 2, "dp": 4, "zero": 0},
    ),
    "swift_node1.sh": Said(MEGATRON, "megatron", 8, {"tp": 2, "ep": 4}),
    "colossalai_70B.sh": Said(
        "ColossalAI command line",
        "colossalai",
        16,
        {"tp": 4, "pp": 2, "zero": 1},
        {"plugin": "hybrid"},
    ),
}
PADDLE = {
    "paddle_pretrain.json": ("Paddle JSON", None, "dp,pp,sharding,sep,mp", 2, 8),
    "paddle_run.sh": ("Paddle command line, Paddle JSON", 16, "dp,pp,sharding,sep,mp", 2, 2),
    "paddleformers_sft.yaml": (
        "Paddle YAML",
        None,
        "dp,moe_sharding,cp,sharding,pp,sep,ep,mp",
        16,
        1,
    ),
}
NOT_READ_ALONE = {"hosts.txt", "default_runtime.py", "fsdp_config.yaml"}
"""Files that stand beside others."""


def config_of(name: str) -> LaunchConfig:
    return read(TEXTS[name], name=name, beside=TEXTS)


def test_every_file_here_is_read_by_a_test() -> None:
    assert set(TEXTS) == {*FILES, *PADDLE} | NOT_READ_ALONE


@pytest.mark.parametrize("name", FILES)
def test_a_file_says_its_format_framework_and_sizes(name: str) -> None:
    said, config = FILES[name], config_of(name)
    found = {key: each.value for key, each in config.fields.items() if each.value != 1}
    about_nodes = ("world_size", "nodes", "gpus_per_node", "node_gpus", "layers", "chunks")
    sizes = {key: value for key, value in found.items() if key not in about_nodes}
    ones = {key: 1 for key, each in config.fields.items() if each.value == 1 and key in said.sizes}
    world = config.world_size.value if config.world_size else None
    assert (
        Said(
            config.format,
            config.framework_at,
            int(world) if world else None,
            sizes | ones,
            {key: str(each.value) for key, each in config.options.items()},
        )
        == said
    )


@pytest.mark.parametrize("name", [*FILES, *PADDLE])
def test_a_file_makes_a_layout_once_the_number_of_ranks_is_known(name: str) -> None:
    config = config_of(name)
    sizes = config.sizes({} if config.world_size else {"world_size": 64})
    layout = frameworks.layout(config.framework_at, sizes)
    assert layout.world_size == sizes.world_size
    assert all(layout.groups(kind.name) for kind in layout.kinds)


@pytest.mark.parametrize("name", [*FILES, *PADDLE])
def test_every_value_says_where_it_came_from(name: str) -> None:
    config = config_of(name)
    for key, found in {**config.fields, **config.options}.items():
        assert found.default_of or (found.file in TEXTS and found.key), key
        if found.line is not None:
            row = TEXTS[found.file].split("\n")[found.line - 1]
            assert _shows(row, found), (key, found, row)


def _shows(row: str, found: Found) -> bool:
    """Tells whether a line holds the value, the variable it came by, or the key it is under."""
    key = found.key.split(".")[-1].lstrip("-")
    return any(word and word in row for word in (str(found.value), found.via, key))


@pytest.mark.parametrize("name", PADDLE)
def test_paddle_trainers_hand_fleet_an_order_and_every_degree(name: str) -> None:
    format_, world, order, sharding, dp = PADDLE[name]
    config = config_of(name)
    sizes = config.sizes({} if world else {"world_size": 64})
    assert (config.format, config.framework, sizes.order) == (format_, "paddle", order)
    assert sizes.options["sharding_degree"] == str(sharding)
    assert sizes.options["dp_degree"] == str(dp)


PLACES = [
    ("megatron_gpt_175b.sh", "tp", "megatron_gpt_175b.sh line 59, --tensor-model-parallel-size"),
    (
        "megatron_llama3_fp8.sh",
        "nodes",
        "megatron_llama3_fp8.sh line 15, --nnodes by way of ${NUM_NODES:-4}",
    ),
    (
        "megatron_mixtral.sbatch",
        "pp",
        "megatron_mixtral.sbatch line 22, --pipeline-model-parallel-size by way of ${PP:-8}",
    ),
    ("megatron_mixtral.sbatch", "nodes", "megatron_mixtral.sbatch line 5, --nodes"),
    ("nemo_gpt.yaml", "tp", "nemo_gpt.yaml line 30, model.tensor_model_parallel_size"),
    (
        "internevo_20B_isp.py",
        "weight.size",
        "internevo_20B_isp.py line 60, parallel.weight.size by way of GPUS_PER_NODE // 2",
    ),
    ("internevo_demo.py", "pp", "default_runtime.py line 5, parallel.pipeline.size"),
    ("train_7B.slurm", "tp", "internlm_7B_sft.py line 75, parallel.tensor"),
    ("ds_zero3.json", "zero", "ds_zero3.json line 7, zero_optimization.stage"),
    ("ds_zero3.json", "world_size", "ds_hosts, hostfile"),
    ("titan_run.sh", "nodes", "default of torchrun"),
    ("titan_run.sh", "tp", "titan_run.sh line 19, --training.tensor_parallel_degree"),
    ("titan_run.sh", "pp", "titan_old.toml line 21, experimental.pipeline_parallel_degree"),
    ("paddle_run.sh", "nodes", "paddle_run.sh line 12, --ips"),
    ("swift_node1.sh", "gpus_per_node", "swift_node1.sh line 9, NPROC_PER_NODE"),
]


@pytest.mark.parametrize(("name", "key", "place"), PLACES)
def test_a_place_names_file_line_and_key(name: str, key: str, place: str) -> None:
    config = config_of(name)
    assert str({**config.fields, **config.options}[key].where) == place


def test_ranks_are_nodes_times_ranks_per_node_and_say_so() -> None:
    world = config_of("megatron_gpt_175b.sh").world_size
    assert world is not None
    assert str(world.where) == (
        "16 (megatron_gpt_175b.sh line 13, --nnodes by way of NUM_NODES) x "
        "8 (megatron_gpt_175b.sh line 9, --nproc_per_node by way of GPUS_PER_NODE)"
    )


def test_layers_and_chunks_are_read_for_whoever_spreads_them() -> None:
    fields = config_of("megatron_mixtral.sbatch").fields
    assert (fields["layers"].value, fields["chunks"].value) == (56, 7)


def test_remarks_say_what_a_reader_could_not_follow() -> None:
    notes = [str(note) for name in FILES for note in config_of(name).notes]
    assert [note for note in notes if "bloom" in note] == [
        "bloom.slurm line 15: it reads start-py38-pt111, which is not given beside it"
    ]
    assert config_of("ds_train.sh").placement(15).widths == (8, 7)
    assert any("is read as classic InternLM" in note for note in notes)
