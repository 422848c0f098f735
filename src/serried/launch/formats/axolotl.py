"""Reads axolotl's YAML: DeepSpeed, FSDP, or the mesh of Accelerate's ParallelismConfig.

Names: axolotl src/axolotl/utils/schemas/config.py; what the sizes become:
src/axolotl/utils/distributed.py, build_parallelism_config.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from serried.errors import InputError
from serried.launch.facts.config import Reading
from serried.launch.facts.device_mesh import laid_over
from serried.launch.facts.emit import ADD_THE_REST, LaunchJob, yaml_lines
from serried.launch.facts.flags import Meaning
from serried.launch.facts.found import Facts, Found
from serried.launch.facts.keys import Keys, take
from serried.launch.formats import accelerate
from serried.launch.formats.huggingface import STRATEGIES, strategy_of
from serried.mesh.sizes import Sizes

MEANINGS = {
    "deepspeed": Meaning("_deepspeed", "text"),
    "tensor_parallel_size": Meaning("tp"),
    "context_parallel_size": Meaning("cp"),
    "sequence_parallel_degree": Meaning("cp"),
    "dp_shard_size": Meaning("dp_shard_size"),
    "dp_replicate_size": Meaning("dp_replicate_size"),
    "expert_parallel_size": Meaning("expert_parallel_size"),
    "fsdp": Meaning("_fsdp", "list"),
    "fsdp_config.sharding_strategy": Meaning("_strategy", "text"),
    "fsdp_config.fsdp_sharding_strategy": Meaning("_strategy", "text"),
    "fsdp_config.reshard_after_forward": Meaning("_reshard", "text"),
    "fsdp_config.fsdp_reshard_after_forward": Meaning("_reshard", "text"),
}
MESH = ("tp", "cp", "dp_shard_size", "dp_replicate_size")
MARKS = ("datasets", "micro_batch_size", "sequence_len", "adapter", "val_set_size")
"""Keys that axolotl's YAML has beside ``base_model``."""


def is_one(keys: Keys) -> bool:
    """Tells whether a YAML file is axolotl's."""
    return "base_model" in keys and sum(keys.has(mark) for mark in MARKS) > 1


def read(keys: Keys) -> Reading:
    """Returns what the file says."""
    facts = Facts(keys.file)
    take(facts, keys, MEANINGS, name_of=str)
    for name in (*MESH, "expert_parallel_size"):
        if facts.number(name) == 1:
            facts.drop(name)
    if facts.says("expert_parallel_size"):
        for name in ("_strategy", "_reshard", "_deepspeed", "_fsdp"):
            facts.drop(name)
        return Reading("axolotl YAML", facts, "devicemesh", derive=_with_experts)
    json, words = facts.drop("_deepspeed"), facts.drop("_fsdp")
    has_fsdp = words is not None or keys.has("fsdp_config") or keys.has("fsdp_version")
    if any(facts.says(name) for name in MESH):
        for name in ("_strategy", "_reshard"):
            facts.drop(name)
        return Reading("axolotl YAML", facts, "accelerate", derive=_filled)
    if json:
        for name in ("_strategy", "_reshard"):
            facts.drop(name)
        text = str(json.value)
        return Reading("axolotl YAML", facts, "deepspeed", names=text if "." in text else "")
    if has_fsdp:
        # Sharded over all ranks unless the file has another strategy of FSDP.
        facts.claim("_type", replace(words, value="FSDP") if words else Found("FSDP", keys.file))
        told = str(words.value).split() if words else []
        strategy = next((STRATEGIES[word] for word in told if word in STRATEGIES), None)
        if words and strategy and not facts.says("_strategy") and not facts.says("_reshard"):
            facts.claim("_strategy", replace(words, value=strategy))
        return accelerate.settle(facts, "axolotl YAML")
    return Reading("axolotl YAML", facts, "accelerate")


def _with_experts(sizes: Sizes) -> Sizes:
    """Returns the sizes with the mesh that has experts as its slowest axis.

    Each rank of that axis has batches of its own, so that data runs along it too. Raises
    InputError where axolotl would refuse.

    Source: axolotl src/axolotl/monkeypatch/accelerate/parallelism_config.py (the order), and
    src/axolotl/integrations/expert_parallel/plugin.py, _resolve_ep_group (what goes together).
    """
    options = dict(sizes.options)
    experts = int(options.pop("expert_parallel_size"))
    shard = int(options.pop("dp_shard_size", 1))
    copies = int(options.pop("dp_replicate_size", 1))
    axes = {"ep": experts, "dp_shard": shard, "cp": sizes.cp, "tp": sizes.tp}
    if copies > 1 or prod(axes.values()) != sizes.world_size:
        raise InputError(
            "ep={ep} x dp_shard={shard} x cp={cp} x tp={tp} is {total}, but there are {world} "
            "ranks; with experts axolotl fills none of them, and takes no dp_replicate_size",
            ep=experts,
            shard=shard,
            cp=sizes.cp,
            tp=sizes.tp,
            total=prod(axes.values()),
            world=sizes.world_size,
        )
    if sizes.tp > 1:
        raise InputError(
            "axolotl does not divide experts and tensors at once: ep={ep} and tp={tp}; set one "
            "of them to 1",
            ep=experts,
            tp=sizes.tp,
        )
    meshes = [axes, {"dp": experts * shard, "cp": sizes.cp}]
    if sizes.cp > 1:
        meshes.append({"dp_shard_cp": sizes.world_size})
    return laid_over(replace(sizes, options=options), meshes)


def _filled(sizes: Sizes) -> Sizes:
    """Returns the sizes with the data ranks as axolotl fills them once it knows the world."""
    options = dict(sizes.options)
    shard = int(options.pop("dp_shard_size", 0))
    copies = int(options.pop("dp_replicate_size", 1))
    left = sizes.world_size // max(1, sizes.tp * sizes.cp)
    if not shard and copies == 1:
        shard = left
    elif shard > 1 and copies == 1:
        copies = max(1, left // shard)
    made = {"dp_shard_size": str(max(1, shard)), "dp_replicate_size": str(copies)}
    return replace(sizes, options={**options, **made})


# ----------------------------------------------------------------------- writing


def write(job: LaunchJob) -> str:
    """Returns YAML of a job that axolotl trains; its marks stand for what is to be filled in."""
    head = ["base_model: MODEL", "datasets:", "  - path: DATA", "micro_batch_size: 1"]
    return "\n".join([job.mark, ADD_THE_REST, *head, *yaml_lines(_strategy(job)), ""])


def _strategy(job: LaunchJob) -> dict[str, object]:
    """Returns the keys that divide the ranks; none where each holds whole weights."""
    if job.framework == "deepspeed":
        return {"deepspeed": f"deepspeed_configs/zero{job.sizes.zero or 0}.json"}
    if job.framework == "fsdp":
        return {"fsdp_config": {"sharding_strategy": strategy_of(job).upper()}}
    degrees = {
        "expert_parallel_size": job.width("ep"),
        "tensor_parallel_size": job.width("tp"),
        "context_parallel_size": job.width("cp"),
        "dp_shard_size": job.width("dp_shard"),
        "dp_replicate_size": job.width("dp_replicate"),
    }
    wide = {key: size for key, size in degrees.items() if size > 1}
    if set(wide) <= {"dp_replicate_size"}:
        return {}
    return {"fsdp_version": 2, **wide}
