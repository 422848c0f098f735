"""Reads YAML of NeMo 1, NeMo 2 and Megatron-Bridge, which all hand sizes to Megatron-core.

NeMo 1: examples/nlp/language_modeling/conf (``trainer`` and ``model``). NeMo 2: a
``MegatronStrategy`` below ``trainer.strategy``. Megatron-Bridge: ``model``, ``dist``, ``ddp``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from serried.finding import said
from serried.launch.facts.config import Reading
from serried.launch.facts.flags import Flag, Meaning
from serried.launch.facts.found import Facts, Found, all_of_a_node, not_a_number
from serried.launch.facts.keys import Keys, take
from serried.launch.facts.whole_number import count
from serried.launch.formats import recipe
from serried.launch.formats.megatron import MEANINGS, SIZES, ask_for_version, complete
from serried.launch.formats.nvidia import bridge

SECTIONS = (
    "model",
    "model.config",
    "trainer.strategy",
    "strategy",
    "dist",
    "ddp",
    "trainer.strategy.ddp",
)
BRIDGE = "Megatron-Bridge YAML"
TRAINER = {"num-nodes": Meaning("nodes")}
PARALLEL = tuple(name.replace("-", "_") for name in SIZES if name != "num-layers")


PROGRAM = re.compile(
    r"(?:.*/)?megatron_\w*(?:train|tuning|sft|eval|dpo|ppo|_rm|reward|generate|config|continue)\w*"
    r"\.py"
)
"""Programs of NeMo 1: megatron_gpt_pretraining.py and its like."""

NAMED = "recipe"
"""The section in which a YAML names a recipe of Megatron-Bridge, and hands it sizes."""


def read_program(keys: Keys) -> Reading:
    """Returns what settings on the command line of such a program say, its own config below them.

    A config that the command names and that is not given leaves the sizes open.
    """
    reading = read(keys)
    reading.format = "NeMo YAML"
    for name in ("tp", "pp", "cp", "ep"):
        reading.facts.lacks.pop(name, None)
    for config in keys.missing:
        for name in ("tp", "pp"):
            if not reading.facts.says(name):
                because = said("{config} is not given beside it", config=config)
                reading.facts.lack(name, because)
    return reading


def is_one(keys: Keys) -> bool:
    """Tells whether a YAML file is one of these: a parallel size stands in a known section,
    or the sections are those that a recipe of Megatron-Bridge has.
    """
    if any(f"{section}.{name}" in keys for section in SECTIONS for name in PARALLEL):
        return True
    if _names_recipe(keys):
        return True
    return keys.has("model", "train", "checkpoint") and (keys.has("dist") or keys.has("ddp"))


def read(keys: Keys, flags: Sequence[Flag] | None = None) -> Reading:
    """Returns what the file says, or the settings of a command that runs a recipe.

    ``flags`` are the options of such a command, None for a file.
    """
    facts = Facts(keys.file)
    for section in SECTIONS:
        take(facts, keys, MEANINGS, section=section)
    take(facts, keys, TRAINER, section="trainer")
    if _names_recipe(keys):
        take(facts, keys, recipe.MEGATRON, section=NAMED, name_of=str)
    # Options go before settings only where these say nothing, as run_recipe.py has it.
    handed = Facts(keys.file)
    bridge.take_flags(handed, flags or ())
    facts.give_way(handed)
    _devices(facts, keys)
    for name in ("tp", "pp", "cp", "ep", "etp", "virtual_pipeline_model_parallel_size"):
        if facts.number(name) == 0:
            facts.drop(name)
    complete(facts)
    framework = None if ask_for_version(facts) else "megatron"
    if flags is not None or _names_recipe(keys):
        named = bridge.named_by(flags or ()) or str(keys.value(f"{NAMED}._target_") or "")
        bridge.complete(facts, named)
    elif _format(keys) == BRIDGE:
        bridge.ask(facts, is_named=False)
    return Reading(BRIDGE if flags is not None else _format(keys), facts, framework)


def _names_recipe(keys: Keys) -> bool:
    return str(keys.value(f"{NAMED}._target_") or "").startswith("megatron.bridge.")


def _format(keys: Keys) -> str:
    if keys.has("trainer.strategy") or keys.has("strategy"):
        return "NeMo 2 YAML"
    return "NeMo YAML" if keys.has("trainer") else BRIDGE


def _devices(facts: Facts, keys: Keys) -> None:
    """Reads ``trainer.devices``: a number, a list of GPUs, or -1 for all that a node has."""
    for entry in keys.entries.get("trainer.devices", []):
        entry = keys.resolved(entry)
        value = len(entry.value) if isinstance(entry.value, tuple) else entry.value
        # 'devices: "8"' in quotes is a number; a list such as [0, 1] was counted above.
        if isinstance(value, str) and (number := count(value)) is not None:
            value = number
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            facts.add("gpus_per_node", value, entry.line, "trainer.devices", entry.via)
        elif entry.why is not None:
            facts.lack("gpus_per_node", said("{key}: {why}", key="trainer.devices", why=entry.why))
        elif value is not None:
            where = Found(str(value), keys.file, entry.line, "trainer.devices", entry.via).where
            is_all = value in (-1, "auto", "gpu")
            why = all_of_a_node(where, value) if is_all else not_a_number(where, value)
            facts.lack("gpus_per_node", why)
