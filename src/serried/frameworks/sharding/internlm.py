"""What InternLM and InternEvo shard: zero1, their FSDP, and InternEvo's weight parallelism.

Read from InternEvo 0.2.2 (train/training_internlm.py, wrap_FSDP_model over ZERO1) and 0.5.2
(solver/optimizer/hybrid_zero_optim.py), as the groups are.

    0   zero1 of one rank
    1   zero1             each parameter's optimizer state is on one rank of the zero1 group, which
                          broadcasts the new values; the group may be a part of the data group
    3   zero1.fsdp=true   torch's FSDP over zero1; zero3_dp joins the copies
    isp, weight.size > 1  weights lie cut over weight, and are gathered layer by layer

Stage 2 there is none of: gradients stay whole until they are reduced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from serried.errors import InputError
from serried.finding import Sentence, said
from serried.frameworks.sharding.cuts import by_stage, group_size, named, over, refuse_unknown
from serried.mesh import Layout
from serried.mesh.sharding import Cut, Sharding, StateCuts
from serried.mesh.sizes import Sizes

FSDP = "zero1.fsdp"


def settled(framework: str, version: str, sizes: Sizes) -> Sizes:
    """Returns the sizes with zero1 as the stage asks; raises InputError where it cannot be."""
    cure = said("zero1 shards the optimizer's state, and zero1.fsdp=true parameters too")
    refuse_unknown(framework, version, sizes.zero, (0, 1, 3), cure)
    stage, is_fsdp = sizes.zero, sizes.options.get(FSDP, "false").lower() in ("true", "1")
    if stage != 3 and is_fsdp:
        raise InputError(
            "zero1.fsdp=true is ZeRO stage 3, and stage {stage} is asked for; leave one of them "
            "out",
            stage=stage,
        )
    experts = sizes.options.get("num_experts", "1")
    is_checked = sizes.options.get("args_sanity_check", "true").lower() not in ("false", "0")
    if stage == 0 and experts.isdecimal() and int(experts) > 1 and is_checked:
        raise InputError(
            "num_experts={experts} needs zero1 over all data ranks, which is ZeRO stage 1, and "
            "stage 0 is asked for; leave the stage out",
            experts=experts,
        )
    if (stage == 0 and sizes.zero1 not in (None, 1)) or (stage == 1 and sizes.zero1 == 1):
        raise InputError(
            "zero1 over {size} ranks is not ZeRO stage {stage}; leave --zero1-size out, or give "
            "1 for stage 0 and more for stage 1",
            size=sizes.zero1,
            stage=stage,
        )
    if stage == 0:
        return replace(sizes, zero1=1)
    return replace(sizes, options={**sizes.options, FSDP: "true"}) if stage == 3 else sizes


def sharding(layout: Layout) -> Sharding:
    """Returns what the ranks of InternLM or InternEvo share."""
    is_fsdp = layout.settings.get(FSDP, "").lower() in ("true", "1")
    zero1 = over(layout, "zero1")
    is_isp = layout.settings.get("tensor.mode") == "isp"
    stage = 3 if is_fsdp else 1 if zero1.ranks > 1 else 0
    dense = _weight_parallel(layout, zero1) if is_isp else _dense(layout, stage, zero1, is_fsdp)
    if is_isp and not dense.parameters.is_whole:
        stage = 3
    return Sharding(
        stage,
        dense,
        spelled=f"zero1=dict(size={zero1.ranks}, fsdp={is_fsdp})",
        source=f"{layout.framework} {layout.version} internlm/solver/optimizer",
        expert=_expert(layout),
        padding=said("whole parameters go to ranks, so that parts differ by at most the largest")
        if stage == 1
        else None,
        notes=tuple(_notes(layout, is_isp)),
    )


def _notes(layout: Layout, is_isp: bool) -> Iterator[Sentence]:
    if is_isp:
        yield said("mode isp cuts weights over weight, whatever the stage")
    if "zero" not in layout.settings:
        yield said("zero1 is always on: without a size it is as large as the data group")


def _dense(layout: Layout, stage: int, zero1: Cut, is_fsdp: bool) -> StateCuts:
    data = over(layout, layout.dims["dp"])
    copies = named(layout, "zero3_dp") if is_fsdp and data.ranks > zero1.ranks else ""
    return by_stage(stage, weights="dense", data=data, cut=zero1, across=copies)


def _weight_parallel(layout: Layout, zero1: Cut) -> StateCuts:
    """Returns the cuts of mode isp: weights over weight, their optimizer over zero1 as well."""
    weight = over(layout, "weight")
    data = over(layout, "weight", "weight_data")
    return StateCuts(
        "dense",
        data,
        parameters=weight,
        gradients=weight,
        optimizer=over(layout, "weight", "zero1"),
        across="weight_data",
    )


def _expert(layout: Layout) -> StateCuts | None:
    """Returns the cuts of experts, whose optimizer state zero1 leaves whole."""
    if not named(layout, "expert_data") or layout.sizes.get("ep", 1) == 1:
        return None
    data = Cut(("expert_data",), group_size(layout, "expert_data"))
    return by_stage(0, weights="expert", data=data, cut=data)
