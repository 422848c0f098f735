"""Reads FlagScale's YAML: an experiment, and the task that it takes in, for Megatron-core.

    train.yaml        defaults: - train: 7b            experiment.runner: nnodes, nproc_per_node
    train/7b.yaml     system: the sizes                model: layers

Source: FlagScale examples/*/conf; flagscale/runner/runner_train.py (one node, and all GPUs of it,
where the runner does not say).
"""

from __future__ import annotations

from serried.finding import said
from serried.launch.facts.config import Reading
from serried.launch.facts.flags import Meaning, sizes
from serried.launch.facts.found import Facts
from serried.launch.facts.keys import Keys, leave_open, take
from serried.launch.formats.megatron import MEANINGS, PARALLEL, ask_for_version, complete

RUNNER = {"nnodes": Meaning("nodes"), "nproc_per_node": Meaning("gpus_per_node")}
SECTIONS = ("system", "train.system")
SWITCH = "hetero.enable_hetero"
MESHES = "hetero.hetero_process_meshes"


PARTS = ("tp", "cp", "ep", "dp", "pp")
"""What each mesh gives five sizes of, in the order of the file.

Source: FlagScale flagscale/train/hetero/parallel_context.py; stages of all meshes are one row.
"""


def is_one(keys: Keys) -> bool:
    """Tells whether a YAML file is an experiment of FlagScale that trains, or such a task."""
    if keys.has("experiment.runner", "experiment.task"):
        return keys.value("experiment.task.type") in (None, "train")
    return keys.has("system", "model") and any(
        key.startswith("system.") and key[len("system.") :].replace("_", "-") in PARALLEL
        for key in keys.entries
    )


def read(keys: Keys) -> Reading:
    """Returns what the file says, and what the task says that it takes in."""
    facts = Facts(keys.file)
    take(facts, keys, RUNNER, section="experiment.runner", name_of=str)
    for section in SECTIONS:
        take(facts, keys, MEANINGS, section=section)
    for section in ("model", "train.model"):
        take(facts, keys, sizes(num_layers="layers"), section=section)
    complete(facts)
    leave_open(facts, keys, ("tp", "pp"))  # the task holds them
    framework = None if ask_for_version(facts) else "megatron"
    for section in SECTIONS:
        if keys.value(f"{section}.{SWITCH}") is True and not _are_alike(facts, keys, section):
            framework = None
            facts.lack(
                "framework",
                said(
                    "{file} sets {key}, whose meshes of unlike parts serried does not lay out",
                    file=keys.file,
                    key=f"{section}.{SWITCH}",
                ),
            )
    return Reading("FlagScale YAML", facts, framework)


def _are_alike(facts: Facts, keys: Keys, section: str) -> bool:
    """Takes the sizes of meshes that differ in stages alone, which are those of one mesh.

    Tells whether they do: ``hetero_process_meshes: [2,1,1,1,3, 2,1,1,1,1]`` is tp 2 x pp 4.
    """
    key = f"{section}.{MESHES}"
    entries = keys.entries.get(key, [])
    flat = entries[0].value if len(entries) == 1 else None
    if not isinstance(flat, tuple) or len(flat) < 5 or len(flat) % 5:
        return False
    numbers = [each for each in flat if isinstance(each, int) and each > 0]
    meshes = [numbers[i : i + 5] for i in range(0, len(numbers), 5)]
    if len(numbers) != len(flat) or any(each[:4] != meshes[0][:4] for each in meshes):
        return False
    shape = [*meshes[0][:4], sum(each[4] for each in meshes)]
    for name, size in zip(PARTS, shape, strict=True):
        facts.drop(name)
        facts.add(name, size, entries[0].line, key)
    if not facts.says("nodes") and not facts.says("gpus_per_node"):
        tp, cp, _, dp, pp = shape
        facts.add("world_size", tp * cp * dp * pp, entries[0].line, key)
    return True
