"""What Megatron shards: its distributed optimizer, Megatron-FSDP and torch's FSDP2.

Read from megatron-core 0.16.1: distributed/param_and_grad_buffer.py (bucket_size_divisor),
distributed/fsdp/mcore_fsdp_adapter.py (_init_dist_index) and megatron_fsdp/param_and_grad_buffer.py
(data_parallel_sharding_strategy, which 0.12 is the first to have).

    0  no_shard             gradients are all-reduced over dp_cp
    1  optim                --use-distributed-optimizer, over dp_cp, or over intra_dp_cp where
                            there are several instances of it
    2  optim_grads          Megatron-FSDP
    3  optim_grads_params   Megatron-FSDP; also --use-torch-fsdp2

Experts are sharded over expt_dp (intra_expt_dp) in the same way.
"""

from __future__ import annotations

from serried.errors import InputError
from serried.finding import Sentence, said
from serried.frameworks.framework import at_least
from serried.frameworks.sharding.cuts import by_stage, named, over, refuse_unknown
from serried.mesh import Layout
from serried.mesh.sharding import Cut, Sharding, StateCuts, Weights
from serried.mesh.sizes import Sizes

STRATEGIES = ("no_shard", "optim", "optim_grads", "optim_grads_params")
INSTANCES = "num_distributed_optimizer_instances"
INTRA = ("intra_dp_cp", "_INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP")
INTER = (
    "inter_dist_opt",
    "HIERARCHICAL_EXPERT_DATA_PARALLEL_GROUP_L1",
    "_INTER_PARTIAL_EXPERT_DATA_PARALLEL_GROUP",
    "inter_dp_cp",
    "_INTER_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP",
)
EXPERT = (
    "expt_dp_cp",
    "expt_dp",
    "_DATA_MODULO_EXPERT_PARALLEL_GROUP_WITH_CP",
    "_DATA_MODULO_EXPERT_PARALLEL_GROUP",
    "_EXPERT_DATA_PARALLEL_GROUP",
)
INTRA_EXPERT = (
    "intra_expt_dp",
    "HIERARCHICAL_EXPERT_DATA_PARALLEL_GROUP_L0",
    "_INTRA_PARTIAL_EXPERT_DATA_PARALLEL_GROUP",
)


def settled(framework: str, version: str, sizes: Sizes) -> Sizes:
    """Returns the sizes as they are; raises InputError where Megatron would not take the stage."""
    known = (0, 1, 2, 3) if at_least(version, "0.12") else (0, 1)
    cure = said("stages 2 and 3 are Megatron-FSDP's, from 0.12 on")
    refuse_unknown("megatron", version, sizes.zero, known, cure)
    instances = sizes.options.get(INSTANCES, "1")
    if sizes.zero == 0 and instances != "1":
        raise InputError(
            "num_distributed_optimizer_instances={count} are instances of a sharded optimizer, "
            "and ZeRO stage 0 shards nothing; take stage 1",
            count=instances,
        )
    if sizes.zero not in (None, 3) and _is_on(sizes.options.get("use_torch_fsdp2", "")):
        raise InputError(
            "use_torch_fsdp2=true is ZeRO stage 3, and stage {stage} is asked for; leave one of "
            "them out",
            stage=sizes.zero,
        )
    return sizes


def sharding(layout: Layout) -> Sharding:
    """Returns what Megatron's ranks share."""
    by_torch = _is_on(layout.settings.get("use_torch_fsdp2", ""))
    has_instances = layout.settings.get(INSTANCES, "1") != "1"
    stage = int(layout.settings.get("zero", 3 if by_torch else 1 if has_instances else 0))
    spelled = f"--data-parallel-sharding-strategy {STRATEGIES[stage]}"
    if by_torch:
        spelled = "--use-torch-fsdp2"
    elif stage < 2:
        spelled = "--use-distributed-optimizer" if stage else ""
    return Sharding(
        stage,
        _dense(layout, stage),
        spelled=spelled,
        source=f"megatron-core {layout.version} distributed/param_and_grad_buffer.py",
        expert=_expert(layout, stage),
        padding=_padding(stage, by_torch),
        notes=_notes(stage, by_torch),
    )


def _dense(layout: Layout, stage: int) -> StateCuts:
    data = over(layout, layout.dp_with_cp or layout.dims["dp"])
    return _with_instances(layout, stage, data, named(layout, *INTRA), "dense")


def _expert(layout: Layout, stage: int) -> StateCuts | None:
    kind = named(layout, *EXPERT)
    if layout.sizes.get("ep", 1) == 1 or not kind:
        return None
    # Before 0.13 instances cut dense weights alone, and there is no such kind for experts.
    data, intra = over(layout, kind), named(layout, *INTRA_EXPERT)
    return _with_instances(layout, stage, data, intra, "expert")


def _with_instances(
    layout: Layout, stage: int, data: Cut, intra: str, weights: Weights
) -> StateCuts:
    """Returns the cuts over one instance of the optimizer, or over all data ranks."""
    part = over(layout, intra) if intra else data
    if part.ranks == data.ranks:
        return by_stage(stage, weights=weights, data=data, cut=data)
    across = named(layout, *INTER)
    return by_stage(stage, weights=weights, data=data, cut=part, across=across)


def _padding(stage: int, by_torch: bool) -> Sentence | None:
    if by_torch:
        return said("each parameter's first dim is padded to a multiple of the ranks")
    if stage:
        return said(
            "each bucket is padded to a multiple of lcm(ranks, 128) numbers, and each parameter "
            "begins at a multiple of 64"
        )
    return None


def _notes(stage: int, by_torch: bool) -> tuple[Sentence, ...]:
    if by_torch or stage < 2:
        return ()
    return (said("stages 2 and 3 need --use-megatron-fsdp"),)


def _is_on(text: str) -> bool:
    return text.lower() in ("true", "1")
