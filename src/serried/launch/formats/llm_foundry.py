"""Reads llm-foundry's YAML, which Composer trains under FSDP.

Names: llm-foundry scripts/train/yamls; composer 0.32 composer/utils/parallelism.py (FSDPConfig,
TPConfig). The mesh is (dp_replicate, dp_shard, tp), slowest first: composer/core/state.py,
_create_device_mesh; hybrid strategies need a degree of copies there, and are plain ones without.
"""

from __future__ import annotations

from dataclasses import replace

from serried.launch.facts.config import Reading
from serried.launch.facts.device_mesh import filled
from serried.launch.facts.flags import Meaning
from serried.launch.facts.found import Facts, Found
from serried.launch.facts.keys import Keys, take
from serried.mesh.sizes import Sizes

FSDP = {
    "sharding_strategy": Meaning("_strategy", "text"),
    "data_parallel_shard_degree": Meaning("data_parallel_shard_degree"),
    "data_parallel_replicate_degree": Meaning("data_parallel_replicate_degree"),
}
TENSOR = {"tensor_parallel_degree": Meaning("tp")}
FSDP_SECTIONS = ("fsdp_config", "parallelism_config.fsdp", "trainer.parallelism_config.fsdp")
TENSOR_SECTIONS = ("tp_config", "parallelism_config.tp", "trainer.parallelism_config.tp")
PLATFORM = "parameters"
"""Where a run of MosaicML's platform (mcli) holds the YAML."""
COMPUTE = {"compute.gpus": Meaning("world_size"), "gpu_num": Meaning("world_size")}
LAYERS = {"n_layers": Meaning("layers")}
STAGES = {"FULL_SHARD": 3, "SHARD_GRAD_OP": 2, "NO_SHARD": 0}


def is_one(keys: Keys) -> bool:
    """Tells whether a YAML file is llm-foundry's."""
    own = keys.below(PLATFORM) if keys.has(PLATFORM) else keys
    batch = ("global_train_batch_size", "device_train_microbatch_size")
    return own.has("max_duration") and any(each in own for each in batch)


def read(keys: Keys) -> Reading:
    """Returns what the file says; one for MosaicML's platform also says on how many GPUs."""
    facts = Facts(keys.file)
    take(facts, keys, COMPUTE, name_of=str)
    if keys.has(PLATFORM):
        keys = keys.below(PLATFORM)
    for section in FSDP_SECTIONS:
        take(facts, keys, FSDP, section=section, name_of=str)
    for section in TENSOR_SECTIONS:
        take(facts, keys, TENSOR, section=section, name_of=str)
    take(facts, keys, LAYERS, section="model", name_of=str)
    strategy = facts.drop("_strategy")
    if not any(keys.has(section) for section in FSDP_SECTIONS):
        # Without FSDP each rank holds whole weights.
        facts.claim("sharding_strategy", Found("NO_SHARD", default_of="Composer"))
        return Reading("llm-foundry YAML", facts, "fsdp")
    plain = (
        str(strategy.value).upper().replace("HYBRID_SHARD_ZERO2", "SHARD_GRAD_OP")
        if strategy
        else ""
    )
    plain = "FULL_SHARD" if plain in ("", "HYBRID_SHARD") else plain.lstrip("_")
    place = strategy or Found("", default_of="Composer")
    facts.claim("zero", replace(place, value=STAGES.get(plain, 3)))
    if plain == "NO_SHARD":
        facts.claim("sharding_strategy", replace(place, value=plain))
        return Reading("llm-foundry YAML", facts, "fsdp")
    product = {"data_parallel_shard_degree": None, "data_parallel_replicate_degree": 1, "tp": 1}
    return Reading("llm-foundry YAML", facts, "fsdp", product=product, derive=_mesh)


def _mesh(sizes: Sizes) -> Sizes:
    """Returns the sizes with the degree of shards, which is what the others leave unless told."""
    options = dict(sizes.options)
    degrees = {
        "data_parallel_replicate_degree": int(options.pop("data_parallel_replicate_degree", 1)),
        "data_parallel_shard_degree": int(options.pop("data_parallel_shard_degree", -1)),
        "tensor_parallel_degree": sizes.tp,
    }
    shard = filled(degrees, sizes.world_size)["data_parallel_shard_degree"]
    return replace(sizes, options={**options, "dp_shard": str(shard)})
