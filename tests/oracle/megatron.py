"""Megatron-core: module variables of every version, fields from 0.16.1 on.

PyPI has 0.5.0 to 0.16.1. The others are read from a clone of NVIDIA/Megatron-LM where
SERRIED_ORACLE_MEGATRON names one, and are left out where it does not.
"""

from __future__ import annotations

import importlib.util
import os
import random
import subprocess
import sys
import types
import warnings
from functools import cache
from typing import Any

import torch.distributed as dist

from tests.oracle.recording import Lists, Recorded, Recorder, refusal, stub
from tests.oracle.wheels import unpacked

CLONE = os.environ.get("SERRIED_ORACLE_MEGATRON", "")
TAGGED = ("0.4.0", "0.17.0", "0.18.0", "0.19.0") if CLONE else ()
VERSIONS = (
    *("0.5.0", "0.6.0", "0.7.0", "0.8.0", "0.9.0", "0.10.0", "0.11.0", "0.12.0"),
    *("0.13.0", "0.14.0", "0.15.0", "0.16.1", *TAGGED),
)
BY_FIELD = ("0.16.1", "0.17.0", "0.18.0", "0.19.0")
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
    "GTP_WEIGHT_REMAT_GROUP": "gtp_remat",
    "EXPERT_GTP_WEIGHT_REMAT_GROUP": "expt_gtp_remat",
    "DATA_PARALLEL_GROUP_WITH_GTP_REMAT": "dp_gtp_remat",
    "DATA_PARALLEL_GROUP_WITH_CP_WITH_GTP_REMAT": "dp_cp_gtp_remat",
    "EXPERT_DATA_PARALLEL_GROUP_WITH_GTP_REMAT": "expt_dp_gtp_remat",
    "EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP_WITH_EGTP": "tp_ep_pp_with_egtp_remat",
}
"""group_desc of a recorded group -> field of ProcessGroupCollection."""


def golden(config: dict[str, Any], version: str) -> dict[str, Any]:
    """Returns what megatron-core ``version`` makes of ``config``, as a golden."""
    made: dict[str, Any] = {"oracle": f"megatron-core {version}", "config": config}
    try:
        by_field = version in BY_FIELD
        groups = _fields(config, version) if by_field else _variables(config, version)
        made["groups"], made["created"] = groups
    except (RuntimeError, AssertionError, KeyError, ValueError, TypeError) as error:
        made["error"] = refusal(error)
    return made


def _fields(config: dict[str, Any], version: str) -> tuple[dict[str, Lists], list[str]]:
    groups: dict[str, Lists] = {}
    for call in _initialised(config, version, rank=config.get("rank_offset", 0))[1]:
        name = FIELDS.get(call.group_desc or "", call.group_desc or "")
        groups.setdefault(name, []).append(call.ranks)
    return groups, list(groups)


def _variables(config: dict[str, Any], version: str) -> tuple[dict[str, Lists], list[str]]:
    """Returns what each rank finds in the module's variables, the union over ranks.

    Beside it the variables in the order in which their first groups were made, one for each;
    the places of a list, which ranks of a separate encoder hold, are made in turns.
    """
    groups: dict[str, Lists] = {}
    made: dict[str, int] = {}
    for rank in range(config["world"]):
        module, calls = _initialised(config, version, rank)
        places = {call: place for place, call in enumerate(calls)}
        for name, value in vars(module).items():
            for key, group in _held(name, value):
                made[key] = min(places[group], made.get(key, len(calls)))
                if group.ranks not in groups.setdefault(key, []):
                    groups[key].append(group.ranks)
    first = {place: name for name, place in made.items() if "PIPELINE_MODEL" not in name}
    return groups, [first[place] for place in sorted(first)]


def _held(name: str, value: object) -> list[tuple[str, Recorded]]:
    if isinstance(value, Recorded):
        return [(name, value)]
    if isinstance(value, list) and value and isinstance(value[0], Recorded):
        return [(f"{name}[{i}]", group) for i, group in enumerate(value)]
    return []


@cache
def _code(version: str) -> types.CodeType:
    inside = "megatron/core/parallel_state.py"
    if version in TAGGED:
        command = ["git", "-C", CLONE, "show", f"core_v{version}:{inside}"]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    else:
        folder = unpacked("megatron-core", version, only="megatron/core/")
        text = (folder / inside).read_text(encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(text, f"megatron-core {version}", "exec")


def _initialised(
    config: dict[str, Any], version: str, rank: int
) -> tuple[types.ModuleType, list[Recorded]]:
    if importlib.util.find_spec("einops") is None:
        sys.path.insert(0, str(unpacked("einops", "0.8.1")))
    for name in ("megatron", "megatron.core"):
        stub(name)
    buffers = {"GlobalMemoryBuffer": object, "GlobalSymmetricMemoryBuffer": object}
    stub("megatron.core.utils", **buffers, is_torch_min_version=lambda _: True)
    stub("megatron.core.inference")
    stub("megatron.core.inference.symmetric_memory", SymmetricMemoryManager=object)
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
    if version not in BY_FIELD:
        world = min(world, 24)
    config: dict[str, Any] = {
        "world": world,
        "tensor_model_parallel_size": rng.choice((1, 2, 2, 4, 3)),
        "pipeline_model_parallel_size": rng.choice((1, 2, 2, 3, 4)),
        "context_parallel_size": rng.choice((1, 1, 2, 2, 4)),
        "expert_model_parallel_size": rng.choice((1, 2, 2, 4)),
        "virtual_pipeline_model_parallel_size": rng.choice((None, None, None, 2)),
    }
    limit = 48 if version in BY_FIELD else 24
    if rng.random() < 0.7:
        fitting = _ranks(config, decoder=True) * rng.choice((1, 2, 2, 3, 4))
        config["world"] = fitting if fitting <= limit else world
    if rng.random() < 0.3 and number >= (0, 7):
        config["order"] = _random_order(rng, version)
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
    if number >= (0, 17) and rng.random() < 0.15:
        config["rank_offset"] = config["local_world_size"] = config["world"]
        config["world"] *= 2
    if number >= (0, 19) and rng.random() < 0.6:
        config["gtp_remat_size"] = rng.choice((1, 1, 2, 2, 4))
        config["expert_gtp_remat_size"] = rng.choice((1, 1, 2, 2, 4))
    if rng.random() < 0.08:
        config |= _of_some_version(rng)
    return config


def _of_some_version(rng: random.Random) -> dict[str, Any]:
    """Returns a setting that some versions have and others never had, or have no longer."""
    return rng.choice(
        (
            {"pipeline_model_parallel_split_rank": 0},
            {"encoder_pipeline_model_parallel_size": 0},
            {"create_all_gather_group": True},
            {"create_gloo_process_groups": False},
            {"hybrid_context_parallel": False},
            {"num_distributed_optimizer_instances": 1},
            {"expert_tensor_parallel_size": 1},
            {"gtp_remat_size": 1},
            {"rank_offset": 0},
        )
    )


def _ranks(config: dict[str, Any], *, encoder: bool = False, decoder: bool = False) -> int:
    """Returns how many ranks one copy of the model takes, of its encoder, decoder or both."""
    tp, pp = config["tensor_model_parallel_size"], config["pipeline_model_parallel_size"]
    ranks = tp * pp if decoder else 0
    if encoder:
        own = config["encoder_tensor_model_parallel_size"] or tp
        ranks += own * config["encoder_pipeline_model_parallel_size"]
    return ranks * int(config["context_parallel_size"])


def _random_order(rng: random.Random, version: str) -> str:
    if rng.random() < 0.3:
        return "tp-cp-ep-pp-dp"
    axes = ["tp", "cp", "ep", "dp", "pp"]
    if rng.random() < 0.5:
        rng.shuffle(axes)
    if rng.random() < 0.5:
        axes = [axis for axis in axes if rng.random() < 0.8] or axes
    if version == "0.19.0" and rng.random() < 0.2:
        axes.insert(rng.randint(0, len(axes)), "gtp_remat")
    if rng.random() < 0.15:
        axes = [axis.upper() if rng.random() < 0.5 else axis for axis in axes]
    text = "-".join(axes)
    return text.upper() if rng.random() < 0.1 else text
