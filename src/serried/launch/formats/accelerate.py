"""Reads and writes Accelerate's YAML, and reads the same settings on its command line.

Keys: accelerate 1.15.0 src/accelerate/commands/launch.py and utils/dataclasses.py. The kind
of job decides the framework: FSDP with a ``parallelism_config`` is Accelerate's own mesh,
without one plain FSDP; DEEPSPEED and MEGATRON_LM hand over to those.
"""

from __future__ import annotations

from dataclasses import replace

from serried.finding import said
from serried.launch.facts.config import Reading
from serried.launch.facts.emit import LaunchJob, yaml_lines
from serried.launch.facts.flags import Meaning, sizes
from serried.launch.facts.found import Facts, Found
from serried.launch.facts.keys import Keys, take
from serried.launch.facts.whole_number import count

LAUNCH = sizes(num_processes="world_size", num_machines="nodes")
PARALLELISM = sizes(
    parallelism_config_tp_size="tp",
    parallelism_config_cp_size="cp",
    parallelism_config_sp_size="sp_size",
    parallelism_config_dp_replicate_size="dp_replicate_size",
    parallelism_config_dp_shard_size="dp_shard_size",
)
FSDP = {
    "fsdp-sharding-strategy": Meaning("_strategy", "text"),
    "fsdp-reshard-after-forward": Meaning("_reshard", "text"),
    "fsdp-version": Meaning("_fsdp_version"),
}
DEEPSPEED = {
    "zero-stage": Meaning("zero"),
    "deepspeed-config-file": Meaning("_deepspeed_config", "text"),
    "deepspeed-hostfile": Meaning("_hostfile", "text"),
    "deepspeed-inclusion-filter": Meaning("_include", "text"),
    "deepspeed-exclusion-filter": Meaning("_exclude", "text"),
}
MEGATRON = sizes(
    megatron_lm_tp_degree="tp",
    megatron_lm_pp_degree="pp",
    megatron_lm_context_parallel_size="cp",
    megatron_lm_expert_model_parallel_size="ep",
    megatron_lm_expert_tensor_parallel_size="etp",
)
TYPE = {"distributed-type": Meaning("_type", "text")}
SECTIONS = {
    "parallelism_config": PARALLELISM,
    "fsdp_config": FSDP,
    "deepspeed_config": DEEPSPEED,
    "megatron_lm_config": MEGATRON,
}
FLAGS = {**LAUNCH, **PARALLELISM, **FSDP, **DEEPSPEED, **MEGATRON}
"""The same as options of ``accelerate launch``, whatever the section."""

KINDS = {
    "use-fsdp": "FSDP",
    "use-deepspeed": "DEEPSPEED",
    "use-megatron-lm": "MEGATRON_LM",
    "multi-gpu": "MULTI_GPU",
}
"""Switches of the command line -> ``distributed_type``."""

ALONE = ("NO", "FALSE")
"""What ``distributed_type: NO`` reads as, with quotes and without: one process is started."""

STRATEGIES = ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2")
"""In the order of their numbers, from 1."""

STAGES = {"FULL_SHARD": 3, "SHARD_GRAD_OP": 2, "NO_SHARD": 0}
PRIVATE = (
    *("_type", "_strategy", "_reshard", "_fsdp_version", "_deepspeed_config"),
    # num_machines and num_processes count the ranks; these only say on which hosts.
    *("_hostfile", "_include", "_exclude"),
)


def is_one(keys: Keys) -> bool:
    """Tells whether a YAML file is Accelerate's."""
    if "compute_environment" in keys or "distributed_type" in keys:
        return True
    if keys.has("parallelism_config") or keys.has("megatron_lm_config"):
        return True
    # num_processes stands in other configs too, so a section of Accelerate's must be beside it.
    return "num_processes" in keys and any(keys.has(section) for section in SECTIONS)


def read(keys: Keys) -> Reading:
    """Returns what the file says."""
    return settle(facts_of(keys), "Accelerate YAML")


def facts_of(keys: Keys) -> Facts:
    """Returns what the keys of the file say, not yet settled."""
    facts = Facts(keys.file)
    take(facts, keys, {**LAUNCH, **TYPE})
    for section, meanings in SECTIONS.items():
        take(facts, keys, meanings, section=section)
    return facts


def settle(facts: Facts, name: str) -> Reading:
    """Decides the framework, and leaves only what its layout needs."""
    declared = facts.settled().get("_type")
    kind = str(declared.value).upper() if declared else ""
    if declared and kind in ALONE:
        _alone(facts, declared)
    _gpus_per_node(facts)
    named = facts.text("_deepspeed_config") or ""
    has_mesh = any(facts.says(each) for each in ("sp_size", "dp_replicate_size", "dp_shard_size"))
    strategy = _strategy(facts)
    for private in PRIVATE:
        facts.drop(private)
    # Megatron-LM and DeepSpeed lay their ranks out themselves. Only with sp_size > 1 a job of
    # DeepSpeed stays Accelerate's, whose parallelism_config sets that size.
    if kind == "MEGATRON_LM":
        return Reading(name, facts, "megatron")
    is_deepspeed = kind == "DEEPSPEED" or (not kind and facts.says("zero"))
    if is_deepspeed and (facts.number("sp_size") or 1) == 1:
        return Reading(name, facts, "deepspeed", names=named)
    if has_mesh or facts.says("tp") or facts.says("cp"):
        if kind == "FSDP" and declared:
            facts.claim("use_fsdp", replace(declared, value="true"))
        return Reading(name, facts, "accelerate")
    if kind == "FSDP" or strategy:
        return _fsdp(facts, name, strategy)
    return Reading(name, facts, "accelerate")


def _alone(facts: Facts, declared: Found) -> None:
    """Counts one rank, whatever else is given: Accelerate then starts one process."""
    asked = facts.number("world_size") or 1
    if asked > 1:
        facts.note(
            said(
                "{where} is NO, so accelerate starts one process and leaves num_processes {count}",
                where=declared.where,
                count=asked,
            )
        )
    for name in ("world_size", "nodes"):
        facts.drop(name)
        facts.claim(name, replace(declared, value=1))


def _gpus_per_node(facts: Facts) -> None:
    if facts.says("world_size") and not facts.says("nodes"):
        facts.claim("nodes", Found(1, default_of="accelerate"))
    world, nodes = facts.settled().get("world_size"), facts.settled().get("nodes")
    if not world or not nodes:
        return
    # num_processes counts the ranks of all machines: each starts its share of them.
    if isinstance(world.value, int) and isinstance(nodes.value, int) and nodes.value > 0:
        if world.value % nodes.value == 0:
            per_node = Found(world.value // nodes.value, facts.file, world.line, "num_processes")
            facts.claim("gpus_per_node", per_node)
        else:
            facts.lack(
                "gpus_per_node",
                said(
                    "num_processes is {world} and num_machines {nodes}, which does not divide it",
                    world=world.value,
                    nodes=nodes.value,
                ),
            )


def _strategy(facts: Facts) -> Found | None:
    """Returns FSDP's sharding strategy by name, from a name, a number or reshard_after_forward."""
    found = facts.settled().get("_strategy")
    if found is None:
        found = facts.settled().get("_reshard")
        if found is None:
            return None
    text = str(found.value).upper()
    # 'fsdp_sharding_strategy: 1' is FULL_SHARD; 'fsdp_reshard_after_forward' is true or false, or a
    # strategy again.
    if (place := count(text)) and place <= len(STRATEGIES):
        text = STRATEGIES[place - 1]
    text = {"TRUE": "FULL_SHARD", "FALSE": "SHARD_GRAD_OP"}.get(text, text)
    return Found(text, found.file, found.line, found.key)


def _fsdp(facts: Facts, name: str, strategy: Found | None) -> Reading:
    """Returns plain FSDP: hybrid strategies shard inside a node and replicate across nodes."""
    if strategy is None:
        strategy = Found("FULL_SHARD", default_of="accelerate")
    facts.claim("sharding_strategy", strategy)
    # These are stages of ZeRO over all ranks; hybrid ones shard over the ranks of a node only.
    if str(strategy.value) in STAGES:
        facts.claim("zero", replace(strategy, value=STAGES[str(strategy.value)]))
    per_node = facts.settled().get("gpus_per_node")
    if str(strategy.value).startswith("HYBRID"):
        if per_node:
            facts.claim("devices_per_node", per_node)
        elif not facts.says("gpus_per_node"):
            facts.lack(
                "devices_per_node",
                said("{file} does not say how many GPUs a node has", file=facts.file),
            )
    return Reading(name, facts, "fsdp")


def tell_nodes(reading: Reading) -> None:
    """Says how wide a node is, as a launcher told: hybrid strategies shard over the ranks of it."""
    facts = reading.facts
    strategy, found = facts.text("sharding_strategy") or "", facts.settled().get("gpus_per_node")
    if reading.framework == "fsdp" and strategy.startswith("HYBRID") and found:
        facts.drop("devices_per_node")
        facts.claim("devices_per_node", found)


def write(job: LaunchJob) -> str:
    """Returns the YAML of a job that Accelerate's own mesh lays out."""
    sizes_of = {meaning.name: key.replace("-", "_") for key, meaning in PARALLELISM.items()}
    degrees = {key: job.size(name) or 1 for name, key in sizes_of.items()}
    tree: dict[str, object] = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "FSDP" if job.is_on("use_fsdp") else "MULTI_GPU",
        "num_machines": job.placement.num_nodes,
        "num_processes": job.sizes.world_size,
    }
    if any(size > 1 for size in degrees.values()):
        tree["parallelism_config"] = degrees
    if job.is_on("use_fsdp"):
        tree["fsdp_config"] = {"fsdp_version": 2}
    return "\n".join([job.mark, *yaml_lines(tree), ""])
