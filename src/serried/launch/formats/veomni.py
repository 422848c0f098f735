"""Reads VeOmni's YAML: FSDP with parts of sequences, and experts over the same ranks.

    train.accelerator.ulysses_size 2, ep_size 4     dp_replicate · dp_shard · ulysses
                                                    ep_replicate · ep_fsdp · ep

Names, defaults and what is refused: VeOmni veomni/arguments/arguments_types.py, main branch of
August 2026; before it the names stood in ``train`` itself. Meshes:
veomni/distributed/parallel_state.py, init_parallel_state.
"""

from __future__ import annotations

from dataclasses import replace

from serried.errors import InputError
from serried.launch.facts.config import Reading
from serried.launch.facts.device_mesh import laid_over
from serried.launch.facts.flags import Meaning
from serried.launch.facts.found import Facts, Found
from serried.launch.facts.keys import Keys, take
from serried.mesh.sizes import Sizes

SECTION = "train.accelerator"
DEGREES = {
    "ulysses_size": Meaning("ulysses_size"),
    "ep_size": Meaning("ep_size"),
    "dp_replicate_size": Meaning("dp_replicate_size"),
    "dp_shard_size": Meaning("dp_shard_size"),
    "tp_size": Meaning("tp"),
    "pp_size": Meaning("pp"),
    "cp_size": Meaning("cp"),
}
EARLIER = {
    "ulysses_parallel_size": Meaning("ulysses_size"),
    "expert_parallel_size": Meaning("ep_size"),
    "data_parallel_replicate_size": Meaning("dp_replicate_size"),
    "data_parallel_shard_size": Meaning("dp_shard_size"),
}
OWN = ("ulysses_size", "ep_size", "dp_replicate_size", "dp_shard_size")
MODES = ("fsdp_config.fsdp_mode", "data_parallel_mode")


def is_one(keys: Keys) -> bool:
    """Tells whether a YAML file is VeOmni's."""
    if keys.has(SECTION, "model") or "train.data_parallel_mode" in keys:
        return True
    return any(f"train.{name}" in keys for name in EARLIER)


def read(keys: Keys) -> Reading:
    """Returns what the file says; it never says on how many ranks."""
    facts = Facts(keys.file)
    take(facts, keys, DEGREES, section=SECTION, name_of=str)
    take(facts, keys, EARLIER, section="train", name_of=str)
    for name in OWN:
        number = facts.number(name)
        if number is not None and number < (1 if name.startswith("dp") else 2):
            facts.drop(name)
    modes = [keys.value(f"{section}.{key}") for section in (SECTION, "train") for key in MODES]
    if "ddp" in modes:
        return Reading("VeOmni YAML", facts, "accelerate")
    facts.claim("zero", Found(3, default_of="VeOmni"))
    return Reading("VeOmni YAML", facts, "devicemesh", derive=_meshes)


def _meshes(sizes: Sizes) -> Sizes:
    """Returns the sizes with both meshes; raises InputError for what VeOmni refuses."""
    for name, size in (("tp", sizes.tp), ("pp", sizes.pp), ("cp", sizes.cp)):
        if size > 1:
            raise InputError(
                "VeOmni does not divide {axis}={size} yet; set it to 1", axis=name, size=size
            )
    options = dict(sizes.options)
    told = {name: int(options.pop(name, 0)) for name in OWN}
    parts = told["ulysses_size"] or 1
    data = max(1, sizes.world_size // parts)
    copies = told["dp_replicate_size"] or data // (told["dp_shard_size"] or data)
    shards = told["dp_shard_size"] or max(1, data // copies)
    experts = told["ep_size"] or 1
    if copies * shards != data or data * parts != sizes.world_size or (shards * parts) % experts:
        raise InputError(
            "{world} ranks cannot be dp_replicate={copies} x dp_shard={shards} x ulysses={parts} "
            "with ep={experts} inside dp_shard x ulysses",
            world=sizes.world_size,
            copies=copies,
            shards=shards,
            parts=parts,
            experts=experts,
        )
    meshes = [
        {"dp_replicate": copies, "dp_shard": shards, "ulysses": parts},
        {"dp": data, "ulysses": parts},
        {"dp_replicate": copies, "dp_shard_sp": shards * parts},
    ]
    if experts > 1:
        inside = {"ep_fsdp": shards * parts // experts, "ep": experts}
        meshes.append({"ep_replicate": copies, **inside})
    return laid_over(replace(sizes, options=options), meshes)
