"""Every group kind that a framework can make, found by trying versions, sizes and settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from serried import frameworks
from serried.frameworks import FRAMEWORKS, Sizes
from serried.mesh import Layout

Tried = tuple[str, Sizes]
ENCODER = {"encoder_tensor_model_parallel_size": "2", "encoder_pipeline_model_parallel_size": "1"}
INSTANCES = {"num_distributed_optimizer_instances": "2"}
QGZ = {"zero_quantized_gradients": "true"}
GTP = {"gtp_remat_size": "2", "expert_gtp_remat_size": "2"}
PLANE = {
    "sequence_2D.enable": "true",
    "sequence_2D.head_size": "2",
    "sequence_2D.context_size": "4",
    "sequence_2D.window_size": "2",
}


def megatron() -> Iterator[Tried]:
    for version in FRAMEWORKS["megatron"].versions:
        for names in ("fields", "variables"):
            yield version, Sizes(32, tp=2, pp=2, ep=2, options={"names": names})
    for version in ("0.10.0", "0.13.0", "0.16.1", "0.19.0"):
        for names in ("fields", "variables"):
            yield version, Sizes(32, tp=2, pp=2, options=INSTANCES | {"names": names})
    settings: list[Tried] = [
        ("0.16.1", Sizes(32, tp=2, cp=2, options={"create_all_gather_group": "true"})),
        ("0.16.1", Sizes(32, tp=2, options=INSTANCES)),
        ("0.16.1", Sizes(32, tp=2, cp=2, options={"hybrid_context_parallel": "true"})),
        ("0.16.1", Sizes(16, cp=16, options={"hierarchical_context_parallel_sizes": "2 2 4"})),
        ("0.19.0", Sizes(32, tp=2, pp=2, ep=2, options={"gtp_remat_size": "2"})),
        ("0.19.0", Sizes(32, tp=2, ep=2, options={"expert_gtp_remat_size": "2"})),
        ("0.19.0", Sizes(32, tp=2, ep=2, options=GTP)),
        ("0.19.0", Sizes(16, tp=2, options={"rank_offset": "8", "local_world_size": "8"})),
        ("0.9.0", Sizes(20, tp=4, pp=2, options=ENCODER)),
        ("0.12.0", Sizes(20, tp=4, pp=2, options=ENCODER)),
    ]
    for version, sizes in settings:
        yield version, sizes
        for names in ("variables", "recorded"):
            yield version, replace(sizes, options={**sizes.options, "names": names})


def internlm() -> Iterator[Tried]:
    options = {"num_experts": "2", "zero1.fsdp": "true", "args_sanity_check": "false"}
    for version in FRAMEWORKS["internlm"].versions:
        yield version, Sizes(16, tp=2, pp=2, zero1=2, options=options | {"dummy": "true"})


def internevo() -> Iterator[Tried]:
    plain = {"args_sanity_check": "false", "dummy": "true"}
    experts = plain | {"num_experts": "4"}
    isp = experts | {"tensor.mode": "isp", "weight.size": "2"}
    for version in FRAMEWORKS["internevo"].versions:
        yield version, Sizes(16, tp=2, pp=2, options=experts)
        if FRAMEWORKS["internevo"].at(version).version < "0.3":
            continue
        yield version, Sizes(16, tp=2, pp=2, options=isp)
    yield "0.5.2", Sizes(64, tp=32, options=plain | {"gqa": "true"})
    yield "0.5.2", Sizes(16, tp=2, zero1=2, options=plain | {"zero1.fsdp": "true"})
    for version in ("develop-2024-12", "develop-2025-01"):
        yield version, Sizes(16, tp=8, options=plain | PLANE)
        yield version, Sizes(16, tp=2, options=experts | {"expert.no_tp": "true"})
        yield version, Sizes(16, tp=2, options=isp | {"expert_weight.size": "2"})


def deepspeed() -> Iterator[Tried]:
    settings: list[Tried] = [
        ("0.19.8", Sizes(16, pp=2, tp=2)),
        ("0.19.8", Sizes(16, options={"topology": "default"})),
        ("0.19.8", Sizes(24, options={"axes": "a,data,c", "dims": "2,3,4"})),
        ("0.19.8", Sizes(16, pp=2, tp=2, ep=2)),
        ("0.19.8", Sizes(16, options={"autotp_size": "2", "autoep_size": "4"})),
        ("0.19.8", Sizes(16, options={"autotp_size": "2"})),
        ("0.19.8", Sizes(16, options={"sequence_parallel_size": "4"})),
        ("0.19.8", Sizes(16, options={"sequence_parallel_size": "4", "data_parallel_size": "4"})),
        ("0.19.8", Sizes(16, options={"zero_hpz_partition_size": "8"})),
        ("0.19.8", Sizes(16, options=QGZ)),
        ("0.19.8", Sizes(16, options=QGZ | {"names": "keys"})),
        ("0.19.8", Sizes(4, options={"hostfile": "worker-0 slots=2\nworker-1 slots=2"})),
    ]
    yield from settings
    mics = {"mics_shard_size": "16", "mics_hierarchical_params_gather": "true"}
    yield "0.18.9", Sizes(32, options=mics)


def torchtitan() -> Iterator[Tried]:
    shared = {"data_parallel_replicate_degree": "2"}
    for version in FRAMEWORKS["torchtitan"].versions:
        has_ep, has_etp = version >= "0.2", "0.2" <= version < "0.3"
        yield version, Sizes(64, tp=2, pp=2, cp=2, options=shared)
        if has_ep:
            yield version, Sizes(64, tp=2, pp=2, cp=2, ep=4, options=shared)
        if has_etp:
            yield version, Sizes(64, tp=2, pp=2, cp=2, ep=4, etp=2, options=shared)
        if version >= "0.3":
            settings = shared | {"spmd_backend": "spmd_types"}
            yield version, Sizes(64, tp=2, pp=2, cp=2, ep=4, options=settings)


def devicemesh() -> Iterator[Tried]:
    yield "2.13.0", Sizes(64, tp=2, pp=2, cp=2)
    merged = {"mesh_dim_names": "dp,cp,lane", "flatten": "dp_cp=dp+cp;all=dp+cp+lane"}
    yield "2.13.0", Sizes(16, options={"mesh_shape": "4,2,2"} | merged)
    yield "2.13.0", Sizes(16, options={"mesh_shape": "2,8"})


def accelerate() -> Iterator[Tried]:
    shards = {"dp_replicate_size": "2", "dp_shard_size": "2"}
    yield FRAMEWORKS["accelerate"].version, Sizes(16, tp=2, cp=2, options=shards)
    yield FRAMEWORKS["accelerate"].version, Sizes(16, options={"sp_size": "4"})


def fsdp() -> Iterator[Tried]:
    yield FRAMEWORKS["fsdp"].version, Sizes(16, tp=2, options={"dp_shard": "4"})


def colossalai() -> Iterator[Tried]:
    for version in FRAMEWORKS["colossalai"].versions:
        yield version, Sizes(16, tp=2, pp=2, options=_split("all_to_all", sp_size="2"))
        yield version, Sizes(16, tp=2, pp=2, options=_split("split_gather"))
        yield version, Sizes(16, tp=2, pp=2, options=_split("ring"))
        rings = _split("ring_attn", sp_size="4", inner_ring_size="2")
        yield version, Sizes(16, tp=2, pp=2, options=rings)
        yield version, Sizes(16, tp=2, ep=2, options=_split("all_to_all", sp_size="2"))
        yield version, Sizes(16, tp=2, ep=2)
        for plugin in ("gemini", "low_level_zero"):
            yield version, Sizes(16, options={"plugin": plugin, "extra_dp_size": "2"})


def _split(mode: str, **settings: str) -> dict[str, str]:
    return {"sequence_parallelism_mode": mode, **settings}


def nanotron() -> Iterator[Tried]:
    for version in FRAMEWORKS["nanotron"].versions:
        yield version, Sizes(16, tp=2, pp=2)


def paddle() -> Iterator[Tried]:
    for version in FRAMEWORKS["paddle"].versions:
        shards = {"sharding_degree": "2", "sep_degree": "2", "four_directions_p2p": "true"}
        yield version, Sizes(16, tp=2, pp=2, options=shards)
        experts = {"sharding_degree": "4", "moe_sharding_degree": "2"}
        yield version, Sizes(16, tp=2, pp=2, cp=2, ep=4, options=experts)


def custom() -> Iterator[Tried]:
    yield "1", Sizes(64, tp=2, pp=2, cp=2, ep=2)
    merged = {"axes": "blue=2 dp=4 cp=2", "groups": "model=blue+dp dp_cp=dp+cp"}
    yield "1", Sizes(16, options=merged)


TRIED = {
    "megatron": megatron,
    "internlm": internlm,
    "internevo": internevo,
    "deepspeed": deepspeed,
    "torchtitan": torchtitan,
    "devicemesh": devicemesh,
    "accelerate": accelerate,
    "fsdp": fsdp,
    "colossalai": colossalai,
    "nanotron": nanotron,
    "paddle": paddle,
    "custom": custom,
}
"""What is tried of each framework; a test holds that no framework is forgotten."""


@cache
def layouts_tried(framework: str) -> tuple[Layout, ...]:
    """Returns a layout for everything that is tried of one framework."""
    tried = TRIED[framework]()
    return tuple(frameworks.layout(f"{framework}@{version}", sizes) for version, sizes in tried)


@cache
def kinds_made(framework: str) -> tuple[str, ...]:
    """Returns the names of all kinds, each once."""
    layouts = layouts_tried(framework)
    return tuple(dict.fromkeys(kind.name for layout in layouts for kind in layout.kinds))
