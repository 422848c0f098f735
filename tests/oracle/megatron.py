"""Megatron-core from PyPI: module variables of every version, fields of 0.16.1."""

from __future__ import annotations

import importlib.util
import random
import sys
import types
import warnings
from functools import cache
from typing import Any

import torch.distributed as dist

from tests.oracle.recording import Lists, Recorded, Recorder, refusal, stub
from tests.oracle.wheels import unpacked

VERSIONS = (
    *("0.5.0", "0.6.0", "0.7.0", "0.8.0", "0.9.0", "0.10.0", "0.11.0", "0.12.0"),
    *("0.13.0", "0.14.0", "0.15.0", "0.16.1"),
)
FIELDS = {
    "DATA_PARALLEL_GROUP_WITH_CP": "dp_cp",
    "DATA_PARALLEL_GROUP_WITH_CP_AG": "dp_cp_ag",
    "DATA_PARALLEL_GROUP_WITH_CP_GLOO": "dp_cp_gloo",
    "INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP": "intra_dp_cp",
    "INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP_GLOO": "intra_dp_cp_gloo",
    "DATA_PARALLEL_GROUP": "dp",
    "DATA_PARALLEL_GROUP_GLOO": "dp_gloo",
    "CONTEXT_PARALLEL_GROUP": "cp",
    "MODEL_PARALLEL_GROUP": "mp",
    "TENSOR_MODEL_PARALLEL_GROUP": "tp",
    "PIPELINE_MODEL_PARALLEL_GROUP": "pp",
    "EMBEDDING_GROUP": "embd",
    "POSITION_EMBEDDING_GROUP": "pos_embd",
    "TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP": "tp_dp_cp",
    "TENSOR_AND_DATA_PARALLEL_GROUP": "tp_dp",
    "TENSOR_AND_CONTEXT_PARALLEL_GROUP": "tp_cp",
    "EXPERT_MODEL_PARALLEL_GROUP": "ep",
    "EXPERT_TENSOR_PARALLEL_GROUP": "expt_tp",
    "EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP": "tp_ep",
    "EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP": "tp_ep_pp",
    "EXPERT_DATA_PARALLEL_GROUP": "expt_dp",
    "EXPERT_DATA_PARALLEL_GROUP_GLOO": "expt_dp_gloo",
    "HIERARCHICAL_EXPERT_DATA_PARALLEL_GROUP_L0": "intra_expt_dp",
    "HIERARCHICAL_EXPERT_DATA_PARALLEL_GROUP_GLOO_L0": "intra_expt_dp_gloo",
    "HIERARCHICAL_EXPERT_DATA_PARALLEL_GROUP_L1": "inter_dist_opt",
    "HIERARCHICAL_EXPERT_DATA_PARALLEL_GROUP_GLOO_L1": "inter_dist_opt_gloo",
    "INTRA_DISTRIBUTED_OPTIMIZER_INSTANCE_GROUP": "intra_dist_opt",
}
"""group_desc of a recorded group -> field of ProcessGroupCollection."""


def golden(config: dict[str, Any], version: str) -> dict[str, Any]:
    """Returns what megatron-core ``version`` makes of ``config``, as a golden."""
    made: dict[str, Any] = {"oracle": f"megatron-core {version}", "config": config}
    try:
        by_field = version == "0.16.1"
        made["groups"] = _fields(config, version) if by_field else _variables(config, version)
    except (RuntimeError, AssertionError, KeyError, ValueError) as error:
        made["error"] = refusal(error)
    return made


def _fields(config: dict[str, Any], version: str) -> dict[str, Lists]:
    groups: dict[str, Lists] = {}
    for call in _initialised(config, version, rank=0)[1]:
        name = FIELDS.get(call.group_desc or "", call.group_desc or "")
        groups.setdefault(name, []).append(call.ranks)
    return groups


def _variables(config: dict[str, Any], version: str) -> dict[str, Lists]:
    """Returns what each rank finds in the module's variables, the union over ranks."""
    groups: dict[str, Lists] = {}
    for rank in range(config["world"]):
        for name, value in vars(_initialised(config, version, rank)[0]).items():
            for key, group in _held(name, value):
                if group.ranks not in groups.setdefault(key, []):
                    groups[key].append(group.ranks)
    return groups


def _held(name: str, value: object) -> list[tuple[str, Recorded]]:
    if isinstance(value, Recorded):
        return [(name, value)]
    if isinstance(value, list) and value and isinstance(value[0], Recorded):
        return [(f"{name}[{i}]", group) for i, group in enumerate(value)]
    return []


@cache
def _code(version: str) -> types.CodeType:
    path = unpacked("megatron-core", version, only="megatron/core/")
    file = path / "megatron" / "core" / "parallel_state.py"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(file.read_text(encoding="utf-8"), str(file), "exec")


def _initialised(
    config: dict[str, Any], version: str, rank: int
) -> tuple[types.ModuleType, list[Recorded]]:
    if importlib.util.find_spec("einops") is None:
        sys.path.insert(0, str(unpacked("einops", "0.8.1")))
    for name in ("megatron", "megatron.core"):
        stub(name)
    buffers = {"GlobalMemoryBuffer": object, "GlobalSymmetricMemoryBuffer": object}
    stub("megatron.core.utils", **buffers, is_torch_min_version=lambda _: True)
    module = types.ModuleType("megatron.core.parallel_state")
    module.__package__ = "megatron.core"
    exec(_code(version), module.__dict__)
    sizes = {key: value for key, value in config.items() if key != "world"}
    recorder = Recorder(config["world"], rank)
    with recorder.patched(dist), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module.initialize_model_parallel(**sizes)
    return module, recorder.calls


def random_config(rng: random.Random, version: str) -> dict[str, Any]:
    """Returns a config that is valid more often than not."""
    number = tuple(map(int, version.split(".")))
    world = rng.choice((8, 16, 16, 24, 32, 48))
    if number < (0, 16):
        world = min(world, 24)
    config: dict[str, Any] = {
        "world": world,
        "tensor_model_parallel_size": rng.choice((1, 2, 2, 4, 3)),
        "pipeline_model_parallel_size": rng.choice((1, 2, 2, 3, 4)),
        "context_parallel_size": rng.choice((1, 1, 2, 2, 4)),
        "expert_model_parallel_size": rng.choice((1, 2, 2, 4)),
        "virtual_pipeline_model_parallel_size": rng.choice((None, None, None, 2)),
    }
    limit = 48 if number >= (0, 16) else 24
    if rng.random() < 0.7:
        fitting = _ranks(config, decoder=True) * rng.choice((1, 2, 2, 3, 4))
        config["world"] = fitting if fitting <= limit else world
    if rng.random() < 0.3 and number >= (0, 7):
        config["order"] = _random_order(rng)
    if rng.random() < 0.4 and number >= (0, 10):
        config["expert_tensor_parallel_size"] = rng.choice((1, 1, 2, 4))
    if rng.random() < 0.3 and number >= (0, 10):
        config["num_distributed_optimizer_instances"] = rng.choice((1, 2, 2, 4))
    if rng.random() < 0.3 and number >= (0, 10) and config["context_parallel_size"] > 1:
        cp = config["context_parallel_size"]
        config["hierarchical_context_parallel_sizes"] = rng.choice(([2, cp // 2], [cp], [2, 3]))
    if rng.random() < 0.2 and number >= (0, 16):
        config["hybrid_context_parallel"] = True
    if rng.random() < 0.2 and number >= (0, 16):
        config["create_all_gather_group"] = True
    if rng.random() < 0.2 and number >= (0, 12):
        config["create_gloo_process_groups"] = False
    if rng.random() < 0.25 and (0, 9) <= number < (0, 14):
        config["encoder_tensor_model_parallel_size"] = rng.choice((0, 1, 2))
        config["encoder_pipeline_model_parallel_size"] = rng.choice((0, 1, 1, 2))
        fitting = _ranks(config, encoder=True, decoder=True) * rng.choice((1, 2, 2, 3))
        random_world = rng.choice((12, 16, 20, 24, 32))
        config["world"] = fitting if fitting <= 36 and rng.random() < 0.8 else random_world
    if rng.random() < 0.1 and number < (0, 14) and config["pipeline_model_parallel_size"] > 1:
        stages = config["pipeline_model_parallel_size"]
        config["pipeline_model_parallel_split_rank"] = rng.randrange(stages)
    return config


def _ranks(config: dict[str, Any], *, encoder: bool = False, decoder: bool = False) -> int:
    """Returns how many ranks one copy of the model takes, of its encoder, decoder or both."""
    tp, pp = config["tensor_model_parallel_size"], config["pipeline_model_parallel_size"]
    ranks = tp * pp if decoder else 0
    if encoder:
        own = config["encoder_tensor_model_parallel_size"] or tp
        ranks += own * config["encoder_pipeline_model_parallel_size"]
    return ranks * int(config["context_parallel_size"])


def _random_order(rng: random.Random) -> str:
    if rng.random() < 0.3:
        return "tp-cp-ep-pp-dp"
    axes = ["tp", "cp", "ep", "dp", "pp"]
    rng.shuffle(axes)
    if rng.random() < 0.5:
        axes = axes[: rng.randint(2, 5)]
    text = "-".join(axes)
    return text.upper() if rng.random() < 0.1 else text
