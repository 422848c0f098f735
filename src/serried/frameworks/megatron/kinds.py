"""Megatron's group kinds from 0.10 on, in the order of creation, named by their fields.

Read from initialize_model_parallel of megatron-core 0.10.0 to 0.16.1 and core_v0.19.0; fields
are those of ProcessGroupCollection (0.14 on), which ``megatron_names`` turns into variables.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from serried.errors import InputError
from serried.frameworks.framework import at_least, divisors, numbers, switch
from serried.frameworks.megatron.order import embedding_rules
from serried.mesh import Chain, Chunks, GroupKind, JoinRuns, Leading, Level, Mesh, Pick, Rule
from serried.mesh.sizes import Sizes


class MegatronJob(NamedTuple):
    """Holds every size of one Megatron job, derived ones included."""

    version: str
    world: int
    offset: int
    tp: int
    cp: int
    pp: int
    dp: int
    ep: int
    etp: int
    edp: int
    gtp: int
    egtp: int
    instances: int

    @property
    def has_gtp(self) -> bool:
        """Whether dense or expert weights are sharded beyond tensor parallelism."""
        return self.gtp > 1 or self.egtp > 1


def kinds_of(sizes: Sizes, job: MegatronJob) -> tuple[GroupKind, ...]:
    """Returns every kind that the job makes, by field and in the order of creation."""
    ends, first = embedding_rules(sizes)
    with_gtp = ("gtp_remat",) if at_least(job.version, "0.19") else ()
    kinds = [
        *_gtp_kind("gtp_remat", "dense", job),
        *_data_kinds(sizes, job),
        GroupKind("cp", ("cp",), about="other tokens of the same sequences"),
        *_hierarchy(sizes, job.version),
        GroupKind("mp", ("tp", *with_gtp, "pp"), about="one whole copy of the model"),
        GroupKind("tp", ("tp",), about="parts of every layer"),
        GroupKind("pp", ("pp",), about="consecutive stages"),
        GroupKind("embd", ("pp",), rule=ends, about="tied embeddings, first and last stage"),
        GroupKind("pos_embd", ("pp",), rule=first, about="position embeddings"),
        GroupKind(
            "tp_dp_cp", ("tp", *with_gtp, "dp", "cp"), about="fp8 maxima, MoE auxiliary loss"
        ),
        GroupKind("tp_dp", ("tp", *with_gtp, "dp"), about="fp8 maxima"),
        GroupKind("tp_cp", ("tp", "cp"), about="MoE auxiliary loss"),
        *_gtp_kind("expt_gtp_remat", "expert", job),
        *_expert_kinds(job),
        _optimizer_kind(job),
    ]
    return tuple(kind for kind in kinds if _wanted(kind, sizes, job))


def _gtp_kind(name: str, mesh: str, job: MegatronJob) -> list[GroupKind]:
    if not at_least(job.version, "0.19"):
        return []
    return [GroupKind(name, ("gtp_remat",), mesh, about="weight shards beyond tp")]


def _data_kinds(sizes: Sizes, job: MegatronJob) -> list[GroupKind]:
    """Returns the data groups; from 0.13 on those with context come first, for SHARP."""
    both = ("dp", "cp")
    alone = _twinned("dp", ("dp",), about="same weights, other batches")
    kinds = _twinned("dp_cp", both, about="gradients: data parallel, context folded in")
    kinds.insert(1, GroupKind("dp_cp_ag", both, twin_of="dp_cp", about="parameter all-gathers"))
    if job.instances > 1:
        kinds += _partial_kinds(job)
    if not at_least(job.version, "0.13"):
        return alone + kinds
    kinds += [
        GroupKind(f"HYBRID_DP_CP_GROUP_{size}", both, rule=Chunks(size), about="hybrid context")
        for size in _hybrid_sizes(sizes, job.dp * job.cp)
    ]
    kinds += alone
    if job.gtp > 1:
        kinds += [
            GroupKind("dp_gtp_remat", ("dp", "gtp_remat"), about="gradients of sharded weights"),
            GroupKind("dp_cp_gtp_remat", (*both, "gtp_remat"), about="the same, context folded in"),
        ]
    return kinds


def _partial_kinds(job: MegatronJob) -> list[GroupKind]:
    """Returns the data groups cut by optimizer instance.

    In 0.10 the cut counts dp alone, so with cp > 1 most of dp_cp falls to no instance.
    """
    both, about = ("dp", "cp"), "one optimizer instance"
    size = job.dp * job.cp // job.instances
    inner: Rule = Chunks(size)
    if not at_least(job.version, "0.11"):
        size = job.dp // job.instances
        inner = Chain((Pick(tuple(range(job.dp))), Chunks(size)))
    kinds = _twinned("intra_dp_cp", both, rule=inner, about=about)
    if not at_least(job.version, "0.13"):
        outer = Level(job.dp * job.cp // size, size)
        kinds.append(GroupKind("inter_dp_cp", both, rule=outer, about="across instances"))
    return kinds


def _expert_kinds(job: MegatronJob) -> list[GroupKind]:
    whole = ("tp", "ep", "pp")
    kinds = [
        GroupKind("ep", ("ep",), "expert", about="other experts"),
        GroupKind("expt_tp", ("tp",), "expert", about="parts of each expert"),
        GroupKind("tp_ep", ("tp", "ep"), "expert", about="all experts of a stage"),
        GroupKind("tp_ep_pp", whole, "expert", about="one copy of all experts"),
    ]
    if at_least(job.version, "0.19"):
        name, axes = "tp_ep_pp_with_egtp_remat", (*whole, "gtp_remat")
        kinds.append(GroupKind(name, axes, "expert", about="one copy, all weight shards"))
    kinds += _twinned("expt_dp", ("dp",), mesh="expert", about="same experts, other tokens")
    if job.egtp > 1:
        both = ("dp", "gtp_remat")
        kinds.append(GroupKind("expt_dp_gtp_remat", both, "expert", about="their gradients"))
    if job.instances > 1 and at_least(job.version, "0.13"):
        # With edp = 8 and 2 instances, inner groups are runs of 4 and outer ones pairs that stand 4
        # apart.
        part = job.edp // job.instances
        inner, outer = Level(part, 1), Level(job.instances, part)
        kinds += _twinned("intra_expt_dp", ("dp",), mesh="expert", rule=inner)
        kinds += _twinned("inter_dist_opt", ("dp",), mesh="expert", rule=outer)
    return kinds


def _optimizer_kind(job: MegatronJob) -> GroupKind:
    """Returns the ranks of one optimizer instance: runs of tp_ep_pp, with gtp the whole window."""
    about = "one copy of the optimizer state"
    if job.has_gtp:
        everything = ("tp", "ep", "gtp_remat", "dp", "pp")
        return GroupKind("intra_dist_opt", everything, "expert", about=about)
    runs = JoinRuns(job.edp // job.instances)
    return GroupKind("intra_dist_opt", ("tp", "ep", "pp"), "expert", runs, about=about)


def _twinned(
    name: str,
    axes: tuple[str, ...],
    *,
    mesh: str = "dense",
    rule: Rule | None = None,
    about: str = "",
) -> list[GroupKind]:
    """Returns a kind and its gloo twin, a second communicator on CPU over the same ranks."""
    twin = GroupKind(f"{name}_gloo", axes, mesh, rule, twin_of=name, about="gloo twin on CPU")
    return [GroupKind(name, axes, mesh, rule, about=about), twin]


def _wanted(kind: GroupKind, sizes: Sizes, job: MegatronJob) -> bool:
    """Tells whether an optional kind is asked for; all others are."""
    if kind.name == "dp_cp_ag":
        return switch(sizes, "create_all_gather_group")
    if kind.name == "intra_dist_opt":
        return at_least(job.version, "0.13")
    if kind.twin_of:
        # Weight shards of experts drop the twins of experts alone, those of dense layers all.
        sharded = job.has_gtp if kind.mesh == "expert" else job.gtp > 1
        return not sharded and switch(sizes, "create_gloo_process_groups", default=True)
    return True


def _hierarchy(sizes: Sizes, version: str) -> list[GroupKind]:
    """Returns the levels of hierarchical context parallelism: level i strides by the ones below.

    Until 0.12 sizes that do not multiply to cp are taken as far as whole levels fit.
    """
    text = sizes.options.get("hierarchical_context_parallel_sizes", "")
    # A level reshapes the context group to (outer, its size, the levels below). Where the sizes do
    # not multiply to cp, older versions cut the group to what whole levels fill, and stop at the
    # first level that nothing fills; newer ones refuse.
    levels = numbers(text)
    product, kinds = 1, []
    for i, size in enumerate(levels):
        rule: Rule = Level(size, product)
        product *= size
        whole = sizes.cp // product * product if product else 0
        if whole == 0 and not at_least(version, "0.13"):
            break
        if whole not in (0, sizes.cp):
            rule = Chain((Pick(tuple(range(whole))), rule))
        name, about = f"HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L{i}", f"level {i} of the context group"
        kinds.append(GroupKind(name, ("cp",), rule=rule, about=about))
    is_loose = 0 not in levels and not at_least(version, "0.13")
    if levels and math.prod(levels) != sizes.cp and not is_loose:
        raise InputError(
            "hierarchical context sizes '{text}' do not multiply to cp={cp}; "
            "a list that does: {example}",
            text=text,
            cp=sizes.cp,
            example=" ".join(map(str, two_levels(sizes.cp))),
        )
    return kinds


def two_levels(cp: int) -> tuple[int, int]:
    """Returns two sizes that multiply to ``cp``, the inner one no larger than the outer."""
    inner = max(n for n in divisors(cp) if n * n <= cp)
    return inner, cp // inner


def _hybrid_sizes(sizes: Sizes, dp_cp: int) -> list[int]:
    """Returns 2, 4, … below dp x cp; the last window of each may be ragged, as Megatron's is."""
    if not switch(sizes, "hybrid_context_parallel"):
        return []
    if dp_cp % 2:
        raise InputError(
            "hybrid context parallelism needs an even dp x cp; here it is {size}", size=dp_cp
        )
    # Of 16 ranks 2, 4 and 8; all 16 together are dp_cp itself.
    return [2**i for i in range(1, int(math.log2(dp_cp)))]


def limited(
    kinds: tuple[GroupKind, ...], meshes: dict[str, Mesh], job: MegatronJob
) -> tuple[GroupKind, ...]:
    """Keeps, when an axis stands twice, only as many groups as Megatron then makes."""

    def limit(kind: GroupKind) -> Rule:
        leading = Leading(job.world // kind.shape(meshes[kind.mesh])[1])
        return Chain((leading, kind.rule)) if kind.rule else leading

    return tuple(replace(kind, rule=limit(kind)) for kind in kinds)
