"""Reads NeMo Automodel's YAML: a DeviceMesh of stages, data, context and tensors, and of experts.

    dp_size none, tp 4, pp 2, ep 8     pp · dp_replicate · dp_shard · cp · tp
    over 32 ranks                      pp · ep_shard · ep

Names and defaults: NeMo Automodel nemo_automodel/recipes/_dist_utils.py. The meshes:
nemo_automodel/components/distributed/mesh_utils.py, of its main branch in August 2026.
"""

from __future__ import annotations

from dataclasses import replace

from serried.errors import InputError
from serried.launch.facts.config import Reading
from serried.launch.facts.device_mesh import laid_over
from serried.launch.facts.flags import Meaning
from serried.launch.facts.flags import sizes as size_meanings
from serried.launch.facts.found import Facts
from serried.launch.facts.keys import Keys, leave_open, take
from serried.mesh.sizes import Sizes

SECTION = "distributed"
DEGREES = {
    "tp_size": Meaning("tp"),
    "cp_size": Meaning("cp"),
    "pp_size": Meaning("pp"),
    "ep_size": Meaning("expert_size"),
    "dp_size": Meaning("dp_size"),
    "dp_replicate_size": Meaning("dp_replicate_size"),
}
LAYERS = size_meanings(num_hidden_layers="layers")
PRODUCT = {"dp_size": None, "tp": 1, "cp": 1, "pp": 1}
"""Sizes that make the world, where that of data is told."""

ALONE = ("dp_size", "expert_size", "dp_replicate_size")
"""Sizes that are settings here, which one rank leaves out."""

WHOLE = "ddp"
"""The strategy that leaves whole weights on each rank."""


def is_one(keys: Keys) -> bool:
    """Tells whether a YAML file is NeMo Automodel's."""
    if not any(f"{SECTION}.{name}" in keys for name in ("strategy", "_target_", *DEGREES)):
        return False
    return keys.has("step_scheduler") or any(
        str(entry.value).startswith("nemo_automodel.")
        for entries in keys.entries.values()
        for entry in entries
    )


def read(keys: Keys) -> Reading:
    """Returns what the file says; on how many ranks, only where it gives the size of data."""
    facts = Facts(keys.file)
    take(facts, keys, DEGREES, section=SECTION, name_of=str)
    take(facts, keys, LAYERS, section="model.config")
    # Below one a size counts as not given, as in _degree and _infer_dp_size.
    for name in (*ALONE, "tp", "cp", "pp"):
        number = facts.number(name)
        if number is not None and (number < 1 or (number == 1 and name in ALONE[1:])):
            facts.drop(name)
    leave_open(facts, keys, ("tp", "cp", "pp"))
    if str(keys.value(f"{SECTION}.strategy") or "").lower() == WHOLE:
        return Reading("NeMo Automodel YAML", facts, "accelerate")
    return Reading("NeMo Automodel YAML", facts, "devicemesh", product=PRODUCT, derive=_meshes)


def _meshes(sizes: Sizes) -> Sizes:
    """Returns the sizes with both meshes; raises InputError where copies do not divide data.

    One of the copies of data, or of the shards of experts, is no axis of its own.
    """
    options = dict(sizes.options)
    copies = int(options.pop("dp_replicate_size", 1))
    experts = int(options.pop("expert_size", 1))
    told = int(options.pop("dp_size", 0))
    data = told or max(1, sizes.world_size // (sizes.tp * sizes.cp * sizes.pp))
    dense = {"pp": sizes.pp, "dp": data, "cp": sizes.cp, "tp": sizes.tp}
    if data % copies or (copies > 1 and copies >= data):
        raise InputError(
            "dp_replicate_size={copies} must divide dp={data} and be less",
            copies=copies,
            data=data,
        )
    meshes = [dense]
    if copies > 1:
        shards = {"dp_replicate": copies, "dp_shard": data // copies}
        meshes.append({"pp": sizes.pp, **shards, "cp": sizes.cp, "tp": sizes.tp})
    if sizes.cp > 1:
        meshes.append({"pp": sizes.pp, "dp_cp": data * sizes.cp, "tp": sizes.tp})
    if experts > 1:
        wide = data * sizes.cp * sizes.tp
        if wide % experts:
            raise InputError(
                "ep_size={experts} does not divide the {ranks} ranks of a stage",
                experts=experts,
                ranks=wide,
            )
        meshes.append({"pp": sizes.pp, "ep_shard": wide // experts, "ep": experts})
    return laid_over(replace(sizes, options=options), meshes)
