"""Reads and writes torchtitan's TOML, and reads the same options on its command line.

Sections by version: 0.1 and 0.2 ``[parallelism]``; before that ``[training]`` and
``[experimental]`` (torchtitan/config_manager.py). 0.3 reads no TOML, only options.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from serried.errors import listed
from serried.finding import Sentence, said
from serried.frameworks.framework import at_least
from serried.launch.facts.config import Reading
from serried.launch.facts.emit import LaunchJob
from serried.launch.facts.flags import Flag, sizes
from serried.launch.facts.found import Facts
from serried.launch.facts.keys import Keys, take

DEGREES = sizes(
    tensor_parallel_degree="tp",
    pipeline_parallel_degree="pp",
    context_parallel_degree="cp",
    expert_parallel_degree="ep",
    expert_tensor_parallel_degree="etp",
    data_parallel_replicate_degree="data_parallel_replicate_degree",
    data_parallel_shard_degree="data_parallel_shard_degree",
    data_parallel_degree="data_parallel_shard_degree",
)
SECTIONS = ("parallelism", "training", "experimental")
FLAGS = {f"{section}.{name}": each for section in SECTIONS for name, each in DEGREES.items()}
"""The same as options: ``--parallelism.tensor_parallel_degree 2``."""

NEWEST_TOML = "0.2.2"
"""The last release that reads TOML."""

PROGRAM = re.compile(r"(?:.*[./])?torchtitan[./]train(?:\.py)?")
"""What a command that trains with torchtitan starts."""

ASKED = ("tp", "pp", "cp", "ep")
"""Sizes that a config may set and that this reader asks for when the config is not given."""

PRODUCT = {
    "data_parallel_replicate_degree": 1,
    "data_parallel_shard_degree": None,
    "cp": 1,
    "tp": 1,
    "pp": 1,
}
"""Factors of the world; a shard degree that is not given is what the others leave."""


def is_one(keys: Keys) -> bool:
    """Tells whether a TOML file is torchtitan's."""
    names = [name.replace("-", "_") for name in DEGREES]
    has_degree = any(f"{section}.{name}" in keys for section in SECTIONS for name in names)
    return has_degree or keys.has("job", "model", "training")


def read(keys: Keys) -> Reading:
    """Returns what the file says."""
    facts = Facts(keys.file)
    for section in SECTIONS:
        take(facts, keys, DEGREES, section=section)
    tidy(facts)
    version = _version(keys)
    if version == NEWEST_TOML:
        facts.note(
            said(
                "{file} is read for torchtitan {version}, the last that reads TOML; for another "
                "give it, such as --framework torchtitan@0.2.0",
                file=keys.file,
                version=version,
            )
        )
    return Reading("torchtitan TOML", facts, "torchtitan", version, PRODUCT)


def tidy(facts: Facts) -> None:
    """Leaves out a shard degree of -1, which torchtitan derives from the world."""
    if facts.number("data_parallel_shard_degree") == -1:
        facts.drop("data_parallel_shard_degree")


def lack_sizes(facts: Facts, because: Sentence) -> None:
    """Says that sizes which the command does not give stand in a config that is not here."""
    for name in ASKED:
        if not facts.says(name):
            facts.lack(name, because)


def lack_registry(facts: Facts, flags: Sequence[Flag]) -> None:
    """Says so when sizes may stand in the Python registry of torchtitan 0.3, ``--config NAME``."""
    named = {flag.name: flag.values[0] for flag in flags if flag.values}
    if not {"module", "config"} <= set(named):
        return
    word = named["config"]
    because = said(
        "line {line} names {config} of torchtitan's Python registry, which is not read",
        line=word.line,
        config=word.text or "--config",
    )
    missing = [name for name in ASKED if not facts.says(name)]
    # Without any size on the line the config may set each; with some there, the line is taken at
    # its word, with a remark.
    if len(missing) == len(ASKED):
        lack_sizes(facts, because)
    elif missing:
        facts.note(
            said("{because}; {names} are taken as 1", because=because, names=listed(missing))
        )


def tell_rest(reading: Reading) -> None:
    """Settles what it can of sizes in a config that is not here, and asks for the rest at once."""
    if reading.framework == "torchtitan":
        _settle_sharded(reading.facts)
        ask_once(reading.facts)


def _settle_sharded(facts: Facts) -> None:
    """Takes sizes for one where shards and copies take every rank."""
    nodes, gpus = facts.number("nodes"), facts.number("gpus_per_node")
    shard = facts.number("data_parallel_shard_degree")
    copies = facts.number("data_parallel_replicate_degree") or 1
    if nodes and gpus and shard and shard * copies == nodes * gpus:
        for name in ("tp", "pp", "cp"):
            if name in facts.lacks and name not in facts.claims:
                facts.drop(name)


def ask_once(facts: Facts) -> None:
    """Makes one question of sizes that are open for the same reason.

    It says what the others are unless they are given with it.
    """
    names = [name for name in ASKED if name in facts.lacks and name not in facts.claims]
    because = facts.lacks[names[0]][0] if names else None
    first, *others = [name for name in names if facts.lacks[name] == [because]] or [""]
    if because is None or not others:
        return
    for name in (first, *others):
        facts.drop(name)
    facts.lack(
        first,
        said(
            "{because}; {names} are taken as 1 unless they are given too",
            because=because,
            names=listed(others),
        ),
    )


def _version(keys: Keys) -> str:
    """Returns the newest version that the file can be for."""
    has_experts = any(
        f"parallelism.{name}" in keys
        for name in ("expert_parallel_degree", "expert_tensor_parallel_degree")
    )
    return NEWEST_TOML if has_experts or keys.has("parallelism") else "0.1.0"


def arguments(job: LaunchJob) -> list[str]:
    """Returns the degrees of a job as options of the command line."""
    return [f"--parallelism.{key} {size}" for key, size in _degrees(job).items()]


def write(job: LaunchJob) -> str:
    """Returns TOML for the versions that read it, else a script with the same options."""
    if at_least(job.version, "0.3"):
        return _script(job)
    lines = [f"{key} = {size}" for key, size in _degrees(job).items()]
    head = [job.mark, "# Layout only: add the model, its data and the other sections."]
    return "\n".join([*head, "[parallelism]", *lines, ""])


def _degrees(job: LaunchJob) -> dict[str, int]:
    names = [(key.replace("-", "_"), meaning.name) for key, meaning in DEGREES.items()]
    found = {
        key: size
        for key, name in names
        if key != "data_parallel_degree" and (size := job.size(name)) is not None
    }
    found.setdefault("data_parallel_shard_degree", -1)
    if found["data_parallel_shard_degree"] == -1:
        others = found.get("data_parallel_replicate_degree", 1)
        others *= job.sizes.tp * job.sizes.pp * job.sizes.cp
        found["data_parallel_shard_degree"] = max(1, job.sizes.world_size // others)
    # 0.1 has no expert parallelism.
    if job.version.startswith("0.1"):
        found.pop("expert_parallel_degree", None)
    return found


def _script(job: LaunchJob) -> str:
    ranks = f"--nnodes {job.num_nodes} --nproc_per_node {job.ranks_per_node}"
    rows = [f"    {line} \\" for line in arguments(job)]
    return "\n".join(
        [
            "#!/bin/bash",
            job.mark,
            "# Layout only: name your module and config, and where ranks meet.",
            f"torchrun {ranks} --rdzv_backend c10d \\",
            '    --rdzv_endpoint "${MASTER_ADDR:-localhost}:29500" \\',
            "    -m torchtitan.train --module llama3 --config llama3_8b \\",
            *rows,
            '    "$@"',
            "",
        ]
    )
