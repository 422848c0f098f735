"""Reads verl's settings: YAML that Hydra composes, and the same keys on the command line.

Names and defaults: verl 0.7 verl/trainer/config (ppo_trainer, ppo_megatron_trainer, sft_trainer,
sft_trainer_engine), and EasyR1's examples/config.yaml (``worker.actor``). What lays out the model
that is trained is the actor's; the engine that writes answers has sizes of its own beside it.

    strategy    what divides the ranks                        source
    fsdp        ddp x fsdp, and dp x sp over the same ranks   verl/workers/fsdp_workers.py
    megatron    Megatron-core                                 verl/workers/megatron_workers.py
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from serried.launch.facts.config import Reading
from serried.launch.facts.emit import ADD_THE_REST, LaunchJob, settings, yaml_lines
from serried.launch.facts.flags import Meaning
from serried.launch.facts.found import Facts, Found
from serried.launch.facts.keys import Keys, take
from serried.launch.formats import megatron
from serried.launch.formats.reinforcement import weights_and_sequences

ACTOR = "actor_rollout_ref.actor"
EASY = "worker.actor"
ENGINE = "engine"
"""Where sft_trainer_engine holds what the actor of the other trainers does."""

OWN = frozenset(
    (
        *("ppo_trainer", "ppo_megatron_trainer", "sft_trainer", "sft_trainer_engine"),
        *("dp_actor", "megatron_actor", "legacy_data", "reward_manager", "dp_ref", "rollout"),
        *("hf_model", "dp_critic", "dp_reward_loop", "dp_reward_model", "rollout_correction"),
        *("megatron_ref", "megatron_critic", "megatron_reward_loop", "megatron_reward_model"),
        *("fsdp", "profiler", "megatron", "algorithm"),
    )
)
"""Configs of the package itself, whose defaults this module knows."""

TRAINERS = ("ppo_trainer", "ppo_megatron_trainer")
"""Those of its configs that others take in to train by reinforcement."""

MEGATRON_CONFIG = "ppo_megatron_trainer"
"""The one of its configs that trains with Megatron-core unless told otherwise."""

NODES = {"nnodes": Meaning("nodes"), "n_gpus_per_node": Meaning("gpus_per_node")}
DEFAULTS = {"nodes": 1, "gpus_per_node": 8}
SHARDS = {
    "fsdp_config.fsdp_size": Meaning("fsdp_size"),
    "fsdp.fsdp_size": Meaning("fsdp_size"),
    "fsdp_size": Meaning("fsdp_size"),
    "fsdp_config.ulysses_sequence_parallel_size": Meaning("ulysses_size"),
    "ulysses_sequence_parallel_size": Meaning("ulysses_size"),
    "ulysses_size": Meaning("ulysses_size"),
}
RESHARD = {
    "fsdp_config.reshard_after_forward": Meaning("_whole_weights", "no"),
    "fsdp.enable_full_shard": Meaning("_whole_weights", "no"),
    "reshard_after_forward": Meaning("_whole_weights", "no"),
}
STRATEGY = {"strategy": Meaning("_strategy", "text")}


def is_one(keys: Keys) -> bool:
    """Tells whether keys are verl's: an actor to be trained, or its trainer for SFT."""
    if keys.has("actor_rollout_ref") or keys.has(EASY, "trainer"):
        return True
    if any(PurePosixPath(name).stem in TRAINERS for name in keys.missing):
        return True
    # What writes answers alone has a section 'rollout' at the top, and trains nothing.
    has_trainer = "trainer.n_gpus_per_node" in keys and not keys.has("rollout")
    if keys.has("algorithm.adv_estimator") or has_trainer:
        return True
    return _is_sft(keys)


def _is_sft(keys: Keys) -> bool:
    if keys.has("actor_rollout_ref") or keys.has(EASY):
        return False
    if keys.has("model.partial_pretrain") or keys.has("ulysses_sequence_parallel_size", "data"):
        return True
    return keys.has(ENGINE, "data") and any(
        f"{ENGINE}.{name}" in keys
        for name in ("strategy", "fsdp_size", "tensor_model_parallel_size", *SHARDS)
    )


def read(keys: Keys) -> Reading:
    """Returns what the keys say of the model that is trained."""
    facts = Facts(keys.file)
    section = next((each for each in (ACTOR, EASY) if keys.has(each)), "")
    if section or not _is_sft(keys):
        section = section or ACTOR
        take(facts, keys, NODES, section="trainer", name_of=str)
        for name, default in DEFAULTS.items():
            if not facts.says(name):
                facts.claim(name, Found(default, default_of="verl"))
    else:
        section = ENGINE if keys.has(ENGINE) else ""
    take(facts, keys, STRATEGY, section=section, name_of=str)
    strategy = _strategy(facts, keys)
    if strategy == "megatron":
        return _megatron(facts, keys, section)
    return _fsdp(facts, keys, section)


def _strategy(facts: Facts, keys: Keys) -> str:
    """Returns what trains: as it is told, else as the config taken in, or the keys, have it."""
    told = facts.drop("_strategy")
    if told:
        return str(told.value)
    if MEGATRON_CONFIG in {name.removesuffix(".yaml") for name in keys.missing}:
        return "megatron"
    # 'engine=megatron' chooses one of the engines' configs of verl, and so which sizes it has.
    chosen = (keys.value(ENGINE), keys.value("model_engine"))
    sized = keys.has(f"{ACTOR}.megatron") or f"{ENGINE}.tensor_model_parallel_size" in keys
    return "megatron" if "megatron" in chosen or sized else "fsdp"


def _megatron(facts: Facts, keys: Keys, section: str) -> Reading:
    inner = f"{section}.megatron" if section != ENGINE else ENGINE
    take(facts, keys, megatron.MEANINGS, section=inner)
    if not facts.says("_distributed_optimizer"):
        facts.claim("_distributed_optimizer", Found("true", default_of="verl"))
    megatron.complete(facts)
    return Reading("verl YAML", facts, "megatron")


def _fsdp(facts: Facts, keys: Keys, section: str) -> Reading:
    take(facts, keys, {**SHARDS, **RESHARD}, section=section, name_of=str)
    whole = facts.drop("_whole_weights")
    found = whole if whole and whole.value == "true" else Found("", default_of="verl")
    stage = 2 if whole and whole.value == "true" else 3
    return weights_and_sequences.reading_of(facts, "verl YAML", replace(found, value=stage))


# ----------------------------------------------------------------------- writing


def write(job: LaunchJob) -> str:
    """Returns YAML of a job that verl trains, under Megatron-core or FSDP."""
    tree: dict[str, object] = {
        "actor_rollout_ref": {"actor": _actor(job)},
        "trainer": {"nnodes": job.num_nodes, "n_gpus_per_node": job.ranks_per_node},
    }
    return "\n".join([job.mark, ADD_THE_REST, *yaml_lines(tree), ""])


def _actor(job: LaunchJob) -> dict[str, object]:
    if job.framework == "megatron":
        sizes = settings(job, megatron.WRITTEN)
        sizes["use_distributed_optimizer"] = job.sizes.zero == 1
        return {"strategy": "megatron", "megatron": sizes}
    # Under sequences the mesh of the weights is ddp x fsdp, without them dp_replicate x dp_shard.
    shard = max(job.width("fsdp"), job.width("dp_shard"))
    config: dict[str, object] = {"fsdp_size": shard if shard < job.sizes.world_size else -1}
    if job.sizes.zero == 2:
        config["reshard_after_forward"] = False
    return {
        "strategy": "fsdp",
        "ulysses_sequence_parallel_size": job.width("sp"),
        "fsdp_config": config,
    }
