"""Reads ms-swift's YAML for Ray: how many GPUs train, beside those that write answers.

    train: gpus: 4, tensor_model_parallel_size: 2     Megatron-core trains on four GPUs
    device_groups: nproc_per_node: 4                  a trainer of Hugging Face's family, on the
      default: ranks: list(range(0, 4))               ranks of the group that its worker is in

Names: ms-swift examples/ray, examples/train/multi-node/ray; swift/ray_utils/resource_manager.py.
"""

from __future__ import annotations

import re

from serried.launch.facts.config import Reading
from serried.launch.facts.flags import Meaning
from serried.launch.facts.found import Facts, Found
from serried.launch.facts.keys import Keys, take
from serried.launch.formats import huggingface, megatron

TRAIN, GROUPS = "train", "device_groups"
COUNT = {"gpus": Meaning("world_size")}
WORKER = "default"
"""The worker that trains, by the name that a group lists it under."""

# 'list(range(0, 4))', which ms-swift evaluates and serried reads.
RANGE = re.compile(r"list\(range\(\s*(\d{1,7})\s*,\s*(\d{1,7})\s*\)\)")


def is_one(keys: Keys) -> bool:
    """Tells whether a YAML file is one of these."""
    return f"{TRAIN}.gpus" in keys or f"{GROUPS}.nproc_per_node" in keys


def read(keys: Keys) -> Reading:
    """Returns what the file says of the ranks that train."""
    if f"{TRAIN}.gpus" not in keys:
        return _of_groups(keys)
    facts = Facts(keys.file)
    take(facts, keys, COUNT, section=TRAIN)
    # What the section of the trainer does not say, the top says for all.
    own, common = Facts(keys.file), Facts(keys.file)
    take(own, keys, megatron.MEANINGS, section=TRAIN)
    take(common, keys, megatron.MEANINGS)
    facts.give_way(own)
    facts.give_way(common)
    if not facts.says("etp"):
        facts.claim("etp", Found(1, default_of="ms-swift"))
    megatron.complete(facts)
    return Reading("ms-swift YAML for Ray", facts, "megatron")


def _of_groups(keys: Keys) -> Reading:
    """Returns what a trainer's YAML says, on as many ranks as the trainer's group has."""
    reading = huggingface.read_yaml(keys)
    reading.format = "ms-swift YAML for Ray"
    facts = reading.facts
    for name in ("world_size", "nodes", "gpus_per_node"):
        facts.drop(name)
    take(facts, keys, {"nproc_per_node": Meaning("gpus_per_node")}, section=GROUPS, name_of=str)
    for key, entries in keys.under(GROUPS):
        group, _, rest = key.partition(".")
        workers = keys.value(f"{GROUPS}.{group}.workers")
        if rest == "ranks" and isinstance(workers, tuple) and WORKER in workers:
            number = _count(entries[0].value)
            if number:
                facts.add("world_size", number, entries[0].line, f"{GROUPS}.{key}")
    return reading


def _count(ranks: object) -> int | None:
    """Returns how many ranks are meant: 4, [0, 1, 2, 3] or 'list(range(0, 4))'.

    >>> _count("list(range(2, 6))"), _count((0, 1)), _count(8), _count("all")
    (4, 2, 8, None)
    """
    if isinstance(ranks, int):
        return ranks
    if isinstance(ranks, tuple):
        return len(ranks)
    found = RANGE.fullmatch(str(ranks).strip())
    return int(found[2]) - int(found[1]) if found else None
