"""FSDP whose ranks divide sequences besides weights: two meshes over the same ranks.

    ddp x fsdp      copies of the weights, and shards of each      fsdp_size
    dp x sp         batches, and parts of sequences (Ulysses)      ulysses_size

verl 0.7 verl/workers/fsdp_workers.py, and SkyRL after it.
"""

from __future__ import annotations

from dataclasses import replace

from serried.launch.facts.config import Reading
from serried.launch.facts.device_mesh import laid_over
from serried.launch.facts.found import Facts, Found
from serried.mesh.sizes import Sizes


def reading_of(facts: Facts, name: str, stage: Found) -> Reading:
    """Returns what facts with ``fsdp_size`` and ``ulysses_size`` come to, where either counts."""
    for size, least in (("fsdp_size", 1), ("ulysses_size", 2)):
        number = facts.number(size)
        if number is not None and number < least:
            facts.drop(size)
    facts.claim("zero", stage)
    framework = "devicemesh" if facts.says("ulysses_size") else "fsdp"
    return Reading(name, facts, framework, derive=_meshes)


def _meshes(sizes: Sizes) -> Sizes:
    """Returns the sizes with the meshes that are made once the number of ranks is known."""
    options = dict(sizes.options)
    shard = int(options.pop("fsdp_size", 0) or 0)
    sequence = int(options.pop("ulysses_size", 1) or 1)
    bare = replace(sizes, options=options)
    world = sizes.world_size
    # A shard as wide as the world, or wider, is all ranks: there are no copies then.
    shard = shard if 0 < shard < world else world
    if sequence == 1:
        return replace(bare, options={**options, "dp_shard": str(shard)})
    weights = {"ddp": world // shard, "fsdp": shard}
    return laid_over(bare, [weights, {"dp": world // sequence, "sp": sequence}])
