"""InternEvo's group kinds, in the order of creation, over the grids of its weights and ranks.

Read from the initialisers of InternEvo 0.3.10 to 0.5.2 and of the develop branch, as
``internevo``: internlm/core/context/process_group_initializer.py.
"""

from __future__ import annotations

from serried.errors import InputError
from serried.finding import Finding, said
from serried.frameworks.framework import switch
from serried.frameworks.internevo.job import DEVELOP_2024, InternEvoJob
from serried.frameworks.internevo.sequence import Sequence2D, early_kinds, late_kinds
from serried.frameworks.internlm import expert_kinds
from serried.mesh import (
    Chunks,
    GroupKind,
    Level,
    RankWindows,
)
from serried.mesh.ranges import LastAssigned, RangesFromFirst
from serried.mesh.sizes import Sizes

EVERYONE = ("pp", "dp", "tp")


def kinds_of(
    sizes: Sizes, job: InternEvoJob, version: str, plane: Sequence2D
) -> tuple[GroupKind, ...]:
    """Returns the kinds of the wheels and of develop 2024-12."""
    develop = version == DEVELOP_2024
    kinds = [GroupKind("global", EVERYONE, about="every rank")]
    if switch(sizes, "gqa"):
        kinds.append(_gqa(job))
    kinds += [
        GroupKind("weight", ("wp",), "weight", about="parts of every weight"),
        GroupKind("weight_data", ("wdp",), "weight", about="same weights"),
        GroupKind("tensor", ("tp",), about="parts of every layer or sequence"),
        GroupKind("data", ("dp",), about="same weights, other batches"),
    ]
    if develop:
        kinds.append(GroupKind("isp_data", ("dp", "tp"), about="all ranks of a stage"))
    kinds.append(_zero1(job))
    if switch(sizes, "zero1.fsdp"):
        # These shards stride over the whole world whatever the pipelines are; FSDP itself needs
        # pp=1.
        copies = job.dp // job.zero1
        rule = Level(copies, job.world // copies)
        kinds.append(GroupKind("zero3_dp", EVERYONE, rule=rule, about="shards of the parameters"))
    kinds.append(_nettest(job))
    if job.pp > 1:
        kinds.append(GroupKind("pipe", ("pp",), about="consecutive stages"))
    if job.num_experts > 1:
        kinds += _expert_kinds(job) if develop else expert_kinds(("dp",), job.dp, job.ep)
    if plane.is_used:
        kinds += early_kinds(plane, job.dp)
    return _with_dummy(kinds, sizes)


def late_kinds_of(sizes: Sizes, job: InternEvoJob, plane: Sequence2D) -> tuple[GroupKind, ...]:
    """Returns the kinds of develop 2025-01: only those of the strategy in use."""
    kinds = [
        GroupKind("global", EVERYONE, about="every rank"),
        GroupKind("tensor", ("tp",), about="parts of every layer or sequence"),
        GroupKind("data", ("dp",), about="same weights, other batches"),
    ]
    if job.is_isp:
        kinds += [
            GroupKind("weight", ("wp",), "weight", about="parts of every weight"),
            GroupKind("weight_data", ("wdp",), "weight", about="same weights"),
        ]
    kinds.append(_zero1(job))
    if job.pp > 1:
        kinds.append(GroupKind("pipe", ("pp",), about="consecutive stages"))
    if job.num_experts > 1:
        name = "expert_weight" if job.is_isp else "expert_tensor"
        kinds.append(GroupKind(name, ("etp",), "expert", about="parts of each expert"))
        kinds += [
            GroupKind("expert", ("ep",), "expert", about="other experts"),
            GroupKind("expert_data", ("edp",), "expert", about="same experts, other tokens"),
        ]
    kinds.append(_nettest(job))
    if plane.is_used:
        kinds += late_kinds(plane)
    return _with_dummy(kinds, sizes)


def _with_dummy(kinds: list[GroupKind], sizes: Sizes) -> tuple[GroupKind, ...]:
    if switch(sizes, "dummy"):
        kinds.insert(1, GroupKind("dummy", (), about="random seeds while the model is built"))
    return tuple(kinds)


def _expert_kinds(job: InternEvoJob) -> list[GroupKind]:
    kinds = [
        GroupKind("expert", ("ep",), "expert", about="other experts"),
        GroupKind("expert_data", ("edp",), "expert", about="same experts, other tokens"),
    ]
    if job.is_isp:
        kinds.append(GroupKind("expert_weight", ("etp",), "expert", about="parts of each expert"))
    elif job.etp == 1:
        kinds.append(GroupKind("expert_tensor", ("etp",), "expert", about="each expert is whole"))
    return kinds


def _zero1(job: InternEvoJob) -> GroupKind:
    axes, mesh = (("wdp",), "weight") if job.is_isp else (("dp",), "dense")
    return GroupKind("zero1", axes, mesh, Chunks(job.zero1), about="shards of the optimizer state")


def _nettest(job: InternEvoJob) -> GroupKind:
    about = "network test before training"
    return GroupKind("nettest", EVERYONE, rule=RankWindows(job.nettest), about=about)


KV_HEADS, RANKS_PER_KV_HEAD = 8, 4
"""Hard-coded in Initializer_GQA: 32 attention heads over 8 key and value heads."""


def _gqa(job: InternEvoJob) -> GroupKind:
    """Returns the key-and-value head groups: 8 of 4 ranks from each tensor group's first on."""
    if job.pp > 1:
        raise InputError("gqa=true needs pp=1; here pp={pp}", pp=job.pp)
    rule = LastAssigned(RangesFromFirst(KV_HEADS, RANKS_PER_KV_HEAD))
    return GroupKind("gqa", ("tp",), rule=rule, about="gradients of shared key and value heads")


def overlaps(kinds: tuple[GroupKind, ...], job: InternEvoJob) -> list[Finding]:
    """Returns a finding where gqa groups do not fit the tensor groups.

    Shorter tensor groups of whole runs fit: what reaches beyond is made again, and the same.
    """
    # InternEvo makes gqa groups for 8 key-value heads of 4 ranks each, whatever the model has.
    fits = KV_HEADS * RANKS_PER_KV_HEAD
    is_whole = job.tp <= fits and job.tp % RANKS_PER_KV_HEAD == 0
    if is_whole or "gqa" not in {kind.name for kind in kinds}:
        return []
    if job.tp > fits:
        sentence = said(
            "gqa groups are made for tp={fits}; the last {left} of every {tp} tensor ranks are in "
            "none",
            fits=fits,
            left=job.tp - fits,
            tp=job.tp,
        )
    else:
        sentence = said(
            "gqa groups are made for tp={fits}; with tp={tp} they reach into the next tensor "
            "groups and, at the end, beyond the {world} ranks there are",
            fits=fits,
            tp=job.tp,
            world=job.world,
        )
    kind = "overlap" if job.tp < fits else "uncovered"
    cure = said("set tp={fits} or leave gqa off", fits=fits)
    return [Finding(kind, groups=("gqa",), evidence=(sentence,), cure=cure)]
