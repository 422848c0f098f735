"""Reads SkyRL's settings: where the policy's ranks run, and what divides them.

    trainer.placement.policy_num_gpus_per_node=8     a command that trains by reinforcement
    placement.num_gpus_per_node=8                    skyrl.train.main_sft

Names and defaults: SkyRL 0.4 skyrl/train/config/config.py and sft_config.py. Meshes of FSDP:
skyrl/backends/skyrl_train/distributed/fsdp_utils.py (ddp x fsdp) and workers/worker.py (dp x sp).
How many GPUs a node gives where nothing is said changed between releases, so it is asked for.
"""

from __future__ import annotations

import re

from serried.finding import said
from serried.launch.facts.config import Reading
from serried.launch.facts.flags import Meaning
from serried.launch.facts.found import Facts, Found
from serried.launch.facts.keys import Keys, take
from serried.launch.formats import megatron
from serried.launch.formats.reinforcement import weights_and_sequences

REINFORCED = "trainer.policy"
PLACES = {
    "trainer.placement.policy_num_nodes": Meaning("nodes"),
    "trainer.placement.policy_num_gpus_per_node": Meaning("gpus_per_node"),
    "placement.num_nodes": Meaning("nodes"),
    "placement.num_gpus_per_node": Meaning("gpus_per_node"),
}
SHARDS = {
    "fsdp_config.fsdp_size": Meaning("fsdp_size"),
    "sequence_parallel_size": Meaning("ulysses_size"),
}
PROGRAM = re.compile(r"(?:.*[./])?skyrl(?:_train)?[./](?:\w+[./])*main_(?!generate)\w+(?:\.py)?")
"""Programs of SkyRL that train; one that answers or only generates is none."""


def is_one(keys: Keys) -> bool:
    """Tells whether settings are SkyRL's."""
    return any(name in keys for name in PLACES) or keys.has("trainer.policy", "trainer.strategy")


def read(keys: Keys) -> Reading:
    """Returns what the settings say of the policy, which is what is trained."""
    facts = Facts(keys.file)
    is_sft = keys.has("placement") and not keys.has("trainer")
    section = "" if is_sft else REINFORCED
    take(facts, keys, PLACES, name_of=str)
    if not facts.says("nodes"):
        facts.claim("nodes", Found(1, default_of="SkyRL"))
    if not facts.says("gpus_per_node"):
        facts.lack(
            "gpus_per_node", said("{file} does not say how many GPUs a node has", file=facts.file)
        )
    key = "strategy" if is_sft else "trainer.strategy"
    default = "megatron" if is_sft else "fsdp"
    if str(keys.value(key) or default) == "megatron":
        inner = "megatron_config" if is_sft else f"{section}.megatron_config"
        take(facts, keys, megatron.MEANINGS, section=inner)
        if not facts.says("_distributed_optimizer"):
            facts.claim("_distributed_optimizer", Found("true", default_of="SkyRL"))
        megatron.complete(facts)
        return Reading("SkyRL YAML", facts, "megatron")
    take(facts, keys, SHARDS, section=section, name_of=str)
    return weights_and_sequences.reading_of(facts, "SkyRL YAML", Found(3, default_of="SkyRL"))
