"""ColossalAI: one grid per plugin, row-major, sequence parallelism innermost by default.

Read from colossalai 0.5.0: booster/plugin/hybrid_parallel_plugin.py,
moe_hybrid_parallel_plugin.py, gemini_plugin.py, low_level_zero_plugin.py,
cluster/process_group_mesh.py. Slowest axis first:

    hybrid                      dp pp tp sp      ring_attn: dp pp sp tp
    hybrid, dp_outside=false    pp dp tp sp
    moe                         moe_dp pp ep tp sp
    gemini                      zero extra_dp tp
    low_level_zero              extra_dp inner_dp

    16 ranks, tp 2, pp 2, sp 2 (all_to_all)    sp [0 1]   tp [0 2]   mixed_dp(dp+sp) [0 1 8 9]

Sequences are split in four modes (HybridParallelPlugin, sequence_parallelism_mode), and in two
rings inside a ring-attention group (shardformer/layer/attn.py, get_double_ring_groups):

    sp 8, inner_ring_size 2     inner [0 1] [2 3]  (two of four)     inter [0 4 …] [1 5 …] …
"""

from __future__ import annotations

from dataclasses import dataclass

from serried.errors import InputError, listed
from serried.finding import Finding, said
from serried.frameworks.framework import (
    Framework,
    choice,
    divisors,
    number,
    refuse_foreign_sizes,
    refuse_unknown_options,
    split_world,
    switch,
)
from serried.mesh import Conventions, GroupKind, Layout, Mesh, Slices
from serried.mesh.sizes import Sizes

PLUGINS = ("hybrid", "moe", "gemini", "low_level_zero")
OPTIONS = {
    "plugin": "hybrid, moe, gemini or low_level_zero (default hybrid, moe with --ep)",
    "dp_outside": "false puts data parallelism inside pipelines; also moe_dp_outside",
    "moe_dp_outside": "false puts moe_dp inside pipelines (default true)",
    "sp_size": "sequence parallel ranks (default 1)",
    "enable_sequence_parallelism": "true lets sp_size be above 1 (default: when a mode is set)",
    "sequence_parallelism_mode": "all_to_all, split_gather, ring or ring_attn",
    "inner_ring_size": "ranks of an inner ring, with ring_attn",
    "extra_dp_size": "whole copies beside gemini or low_level_zero shards (default 1)",
    "pp_style": "1f1b, interleaved or zbv (default 1f1b)",
    "num_model_chunks": "model chunks per rank (default 1; zbv 2)",
    "num_microbatches": "microbatches of a step; pipelines want this or microbatch_size",
    "microbatch_size": "samples of a microbatch",
    "check_microbatches": "true refuses pipelines with neither, as the plugin does (default false)",
}
MICROBATCHES = ("num_microbatches", "microbatch_size")
ABOUT = {
    "dp": "same weights, other batches",
    "pp": "consecutive stages",
    "tp": "parts of every layer",
    "sp": "parts of the same sequences",
    "ep": "other experts",
    "moe_dp": "same experts, other tokens",
    "zero": "shards of the weights",
    "extra_dp": "whole copies of the shards",
    "inner_dp": "shards of the optimizer state",
}


def layout(sizes: Sizes, version: str) -> Layout:
    """Returns the layout of a plugin; raises InputError wherever ColossalAI would refuse."""
    refuse_unknown_options(sizes, "colossalai", OPTIONS)
    if sizes.order is not None:
        raise InputError(
            "order '{order}' cannot be set: the plugin decides it; dp_outside=false puts data "
            "parallelism inside pipelines",
            order=sizes.order,
        )
    known = PLUGINS if sizes.ep == 1 else ("moe", *PLUGINS)
    plugin = choice(sizes, "plugin", known)
    # These two have no pipelines, and lay out their data ranks over axes of their own.
    if plugin == "gemini":
        return _gemini(sizes, version)
    if plugin == "low_level_zero":
        return _low_level_zero(sizes, version)
    takes = ("tp", "pp", "dp") + (("ep",) if plugin == "moe" else ())
    refuse_foreign_sizes(sizes, f"colossalai {plugin}", takes)
    _check_pipeline(sizes, plugin)
    sequence = SequenceSplit.of(sizes, plugin)
    factors = {"tp": sizes.tp, "pp": sizes.pp}
    left = split_world(sizes.world_size, factors, None)
    if left % sequence.size:
        raise InputError(
            "sp_size={size} does not divide the {left} ranks that tp and pp leave; "
            "sizes that do: {fits}",
            size=sequence.size,
            left=left,
            fits=listed(divisors(left), limit=24),
        )
    dp = left // sequence.size
    return (
        _moe(sizes, version, sequence, dp)
        if plugin == "moe"
        else _hybrid(sizes, version, sequence, dp)
    )


# ----------------------------------------------------------------------- the four plugins


def _hybrid(sizes: Sizes, version: str, sequence: SequenceSplit, dp: int) -> Layout:
    outside = switch(sizes, "dp_outside", default=True)
    names = ["dp", "pp"] if outside else ["pp", "dp"]
    # ring_attn swaps the two fastest axes: tp is then the fastest, in all other modes sp.
    names += ["sp", "tp"] if sequence.mode == "ring_attn" else ["tp", "sp"]
    mesh = _mesh(names, {"dp": dp, "pp": sizes.pp, "tp": sizes.tp, "sp": sequence.size})
    kinds = _axis_kinds(mesh, sequence)
    if sequence.mode in ("all_to_all", "ring_attn"):
        kinds.append(_mixed(("dp", "sp")))
    kinds += rings(sizes, sequence)
    return _layout(sizes, version, mesh, kinds, findings=half_rings(sizes, sequence))


def _moe(sizes: Sizes, version: str, sequence: SequenceSplit, dp: int) -> Layout:
    if dp % sizes.ep:
        raise InputError(
            "ep={ep} does not divide dp={dp}; sizes that do: {fits}",
            ep=sizes.ep,
            dp=dp,
            fits=listed(divisors(dp), limit=24),
        )
    key = "moe_dp_outside" if "moe_dp_outside" in sizes.options else "dp_outside"
    names = ["moe_dp", "pp"] if switch(sizes, key, default=True) else ["pp", "moe_dp"]
    axes = {"moe_dp": dp // sizes.ep, "pp": sizes.pp, "ep": sizes.ep, "tp": sizes.tp}
    mesh = _mesh([*names, "ep", "tp", "sp"], axes | {"sp": sequence.size})
    kinds = _axis_kinds(mesh, sequence)
    kinds.append(GroupKind("dp", ("moe_dp", "ep"), about=ABOUT["dp"]))
    if sequence.mode == "all_to_all":
        kinds.append(_mixed(("moe_dp", "ep", "sp")))
    return _layout(sizes, version, mesh, kinds, findings=_lowered(sizes))


def _lowered(sizes: Sizes) -> tuple[Finding, ...]:
    """Returns a finding where the plugin does not shard gradients although it is asked to."""
    if sizes.zero != 2:
        return ()
    return (
        Finding(
            "misfit",
            evidence=(
                said(
                    "ColossalAI's plugin of experts takes ZeRO stage 2 for 1, because stage 2 "
                    "hangs where an expert gets no tokens: gradients are not sharded"
                ),
            ),
            cure=said("reckon the memory with ZeRO stage 1"),
        ),
    )


def _gemini(sizes: Sizes, version: str) -> Layout:
    refuse_foreign_sizes(sizes, "colossalai gemini", ("tp", "dp"))
    extra = number(sizes, "extra_dp_size", 1)
    factors = {"tp": sizes.tp, "extra_dp_size": extra}
    shards = split_world(sizes.world_size, factors, None)
    mesh = _mesh(["zero", "extra_dp", "tp"], {"zero": shards, "extra_dp": extra, "tp": sizes.tp})
    return _layout(sizes, version, mesh, _axis_kinds(mesh, SequenceSplit(None, 1)), dp="zero")


def _low_level_zero(sizes: Sizes, version: str) -> Layout:
    refuse_foreign_sizes(sizes, "colossalai low_level_zero", ("dp",))
    if sizes.zero not in (None, 1, 2):
        raise InputError("low_level_zero has stages 1 and 2; here it is {stage}", stage=sizes.zero)
    extra = number(sizes, "extra_dp_size", 1)
    inner = split_world(sizes.world_size, {"extra_dp_size": extra}, None)
    mesh = _mesh(["extra_dp", "inner_dp"], {"extra_dp": extra, "inner_dp": inner})
    return _layout(sizes, version, mesh, _axis_kinds(mesh, SequenceSplit(None, 1)), dp="inner_dp")


def _mesh(names: list[str], sizes: dict[str, int]) -> Mesh:
    return Mesh({name: sizes[name] for name in names})


def _axis_kinds(mesh: Mesh, sequence: SequenceSplit) -> list[GroupKind]:
    """Returns each axis as a kind; shared sequence groups are those of tp."""
    along = {axis: axis for axis in mesh.axes}
    if sequence.shares_tp:
        along["sp"] = "tp"
    return [GroupKind(name, (axis,), about=ABOUT[name]) for name, axis in along.items()]


def _mixed(axes: tuple[str, ...]) -> GroupKind:
    return GroupKind(f"mixed_dp({'+'.join(axes)})", axes, about="gradients, sequences folded in")


def _layout(
    sizes: Sizes,
    version: str,
    mesh: Mesh,
    kinds: list[GroupKind],
    *,
    dp: str = "dp",
    findings: tuple[Finding, ...] = (),
) -> Layout:
    names = {kind.name for kind in kinds}
    carried = {"dp": dp, "tp": "tp", "pp": "pp", "ep": "ep"}
    # The plugin of experts splits the data ranks in two axes, moe_dp and ep.
    data = mesh.sizes[dp] if dp in mesh.axes else mesh.sizes["moe_dp"] * mesh.sizes["ep"]
    if sizes.dp not in (None, data):
        raise InputError(
            "dp={dp} does not fit: the other sizes leave dp={left}", dp=sizes.dp, left=data
        )
    return Layout(
        framework="colossalai",
        version=version,
        world_size=sizes.world_size,
        sizes={"tp": sizes.tp, "pp": sizes.pp, "dp": data, "ep": sizes.ep}
        | {axis: mesh.sizes[axis] for axis in ("sp", "extra_dp") if axis in mesh.axes},
        order=",".join(mesh.axes),
        meshes={"dense": mesh},
        kinds=tuple(kinds),
        dims={dim: kind for dim, kind in carried.items() if kind in names},
        findings=findings,
    )


# ----------------------------------------------------------------------- validity


def _check_pipeline(sizes: Sizes, plugin: str) -> None:
    """Raises InputError for a pipeline that the plugin refuses.

    The plugin of experts takes ZeRO stage 2 for 1 before it looks (MoeHybridParallelPlugin).
    """
    if sizes.zero == 3:
        raise InputError(
            "hybrid plugins have ZeRO stages 0 to 2; here it is 3, which plugin=gemini has"
        )
    if sizes.pp == 1:
        return
    if switch(sizes, "check_microbatches") and not {*MICROBATCHES} & {*sizes.options}:
        raise InputError(
            "pp={pp} needs num_microbatches or microbatch_size; give one of them", pp=sizes.pp
        )
    for key in MICROBATCHES:
        number(sizes, key, 1)
    style = choice(sizes, "pp_style", ("1f1b", "interleaved", "zbv"))
    # zbv lays the model out as a V, so each rank has two chunks of it.
    chunks = number(sizes, "num_model_chunks", 2 if style == "zbv" else 1)
    if sizes.zero == 2 and plugin != "moe":
        raise InputError("ZeRO stage 2 needs pp=1; with pp={pp} the stage is 0 or 1", pp=sizes.pp)
    fits = {"1f1b": chunks == 1, "interleaved": chunks > 1, "zbv": chunks == 2}
    if not fits[style]:
        raise InputError(
            "num_model_chunks={chunks} does not go with pp_style={style}; "
            "1f1b takes 1, interleaved 2 or more, zbv 2",
            chunks=chunks,
            style=style,
        )


# ----------------------------------------------------------------------- sequences


MODES = ("all_to_all", "split_gather", "ring", "ring_attn")


@dataclass(frozen=True)
class SequenceSplit:
    """Holds how sequences are split: the mode, None for not at all, and the ranks."""

    mode: str | None
    size: int

    @classmethod
    def of(cls, sizes: Sizes, plugin: str) -> SequenceSplit:
        """Returns how a plugin splits sequences; raises InputError where it refuses."""
        mode = sizes.options.get("sequence_parallelism_mode")
        size = number(sizes, "sp_size", 1)
        if not switch(sizes, "enable_sequence_parallelism", default=mode is not None):
            if size > 1:
                raise InputError("sp_size={size} needs enable_sequence_parallelism=true", size=size)
            return cls(None, 1)
        mode = choice(sizes, "sequence_parallelism_mode", MODES)
        if mode == "ring_attn" and plugin == "moe":
            raise InputError(
                "the moe plugin has no ring_attn; it has all_to_all, split_gather, ring"
            )
        # These two split sequences over the tensor ranks themselves: ColossalAI sets sp_size to 1.
        if mode in ("split_gather", "ring"):
            if sizes.tp == 1:
                raise InputError("sequence_parallelism_mode={mode} needs tp above 1", mode=mode)
            return cls(mode, 1)
        return cls(mode, size)

    @property
    def shares_tp(self) -> bool:
        """Whether the sequence groups are the tensor groups."""
        return self.mode in ("split_gather", "ring")


def rings(sizes: Sizes, sequence: SequenceSplit) -> list[GroupKind]:
    """Returns inner and outer rings of ring attention, cut as get_double_ring_groups cuts them.

    It makes inner_ring_size inner rings where sp / inner_ring_size are needed.
    """
    if not _has_rings(sizes, sequence):
        return []
    inner, sp = number(sizes, "inner_ring_size", 1), sequence.size
    if sp % inner:
        raise InputError(
            "inner_ring_size={inner} does not divide sp_size={sp}; sizes that do: {fits}",
            inner=inner,
            sp=sp,
            fits=listed(divisors(sp)),
        )
    if inner * inner > sp and inner != sp:
        raise InputError(
            "inner_ring_size={inner} fails for sp_size={sp}: ColossalAI makes {inner} inner "
            "rings of {inner}, more ranks than there are; sizes that fit: {fits}",
            inner=inner,
            sp=sp,
            fits=listed(n for n in divisors(sp) if n * n <= sp or n == sp),
        )
    return [
        GroupKind("inner_ring", ("sp",), rule=_inner(inner, sp), about="ring inside a node"),
        GroupKind("inter_ring", ("sp",), rule=_inter(inner, sp), about="ring across nodes"),
    ]


def _has_rings(sizes: Sizes, sequence: SequenceSplit) -> bool:
    """Tells whether rings are made: only ring_attn looks at inner_ring_size."""
    return sequence.mode == "ring_attn" and "inner_ring_size" in sizes.options


def _inner(inner: int, sp: int) -> Slices:
    # ColossalAI counts inner_ring_size rings, not sp / inner_ring_size: too few unless they agree.
    count = 1 if inner == sp else inner
    return Slices(tuple((i * inner, (i + 1) * inner, 1) for i in range(count)))


def _inter(inner: int, sp: int) -> Slices:
    num_rings = 1 if inner == sp else sp // inner
    return Slices(tuple((i, sp, num_rings) for i in range(num_rings)))


def half_rings(sizes: Sizes, sequence: SequenceSplit) -> tuple[Finding, ...]:
    """Returns a finding where ColossalAI makes too few inner rings for all ranks."""
    if not _has_rings(sizes, sequence):
        return ()
    inner, sp = number(sizes, "inner_ring_size", 1), sequence.size
    if inner * inner >= sp:
        return ()
    return (
        Finding(
            "uncovered",
            groups=("inner_ring",),
            evidence=(
                said(
                    "ColossalAI makes {inner} inner rings of {inner} ranks for sp_size={sp}, so "
                    "{left} ranks of every sequence group are in none",
                    inner=inner,
                    sp=sp,
                    left=sp - inner * inner,
                ),
            ),
            cure=said("choose inner_ring_size x inner_ring_size = sp_size"),
        ),
    )


COLOSSALAI = Framework(
    name="colossalai",
    title="ColossalAI",
    version="0.5.0",
    source="colossalai colossalai/booster/plugin, colossalai/cluster/process_group_mesh.py",
    dims=("dp", "tp", "pp", "ep"),
    options=OPTIONS,
    default_order="dp,pp,tp,sp",
    orders=("dp,pp,tp,sp", "pp,dp,tp,sp"),
    make=layout,
    versions=("0.4.5", "0.5.0"),
    conventions=Conventions(shares_equal=True, left_over="middle"),
)
