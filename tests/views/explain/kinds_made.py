"""Every group kind that a framework can make, found by trying versions, sizes and settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from serried import frameworks
from serried.frameworks import FRAMEWORKS, Sizes

Tried = tuple[str, Sizes]
ENCODER = {"encoder_tensor_model_parallel_size": "2", "encoder_pipeline_model_parallel_size": "1"}


def megatron() -> Iterator[Tried]:
    for version in FRAMEWORKS["megatron"].versions:
        for names in ("fields", "variables"):
            yield version, Sizes(32, tp=2, pp=2, ep=2, options={"names": names})
    settings: list[Tried] = [
        ("0.16.1", Sizes(32, tp=2, cp=2, options={"create_all_gather_group": "true"})),
        ("0.16.1", Sizes(32, tp=2, options={"num_distributed_optimizer_instances": "2"})),
        ("0.16.1", Sizes(32, tp=2, cp=2, options={"hybrid_context_parallel": "true"})),
        ("0.16.1", Sizes(16, cp=16, options={"hierarchical_context_parallel_sizes": "2 2 4"})),
        ("0.19.0", Sizes(32, tp=2, pp=2, ep=2, options={"gtp_remat_size": "2"})),
        ("0.19.0", Sizes(32, tp=2, ep=2, options={"expert_gtp_remat_size": "2"})),
        ("0.9.0", Sizes(20, tp=4, pp=2, options=ENCODER)),
    ]
    for version, sizes in settings:
        yield version, sizes
        yield version, replace(sizes, options={**sizes.options, "names": "variables"})


def internlm() -> Iterator[Tried]:
    options = {"num_experts": "2", "zero1.fsdp": "true", "args_sanity_check": "false"}
    yield FRAMEWORKS["internlm"].version, Sizes(16, tp=2, pp=2, zero1=2, options=options)


TRIED = {"megatron": megatron, "internlm": internlm}


@cache
def kinds_made(framework: str) -> tuple[str, ...]:
    """Returns the names of all kinds, each once."""
    tried = TRIED[framework]()
    layouts = (frameworks.layout(f"{framework}@{version}", sizes) for version, sizes in tried)
    return tuple(dict.fromkeys(kind.name for layout in layouts for kind in layout.kinds))
