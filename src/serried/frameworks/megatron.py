"""Megatron-core: two grids over the same ranks, one order string, twenty kinds of groups.

Read from megatron-core 0.16.1, megatron/core/parallel_state.py (RankGenerator and
initialize_model_parallel). Kinds are named as the fields of ProcessGroupCollection.

    order  tp-cp-ep-dp-pp       fastest first; this file turns it around, nobody else knows
    dense  grid   tp · cp · dp · pp         dp  = world / (tp cp pp),   ep = 1
    expert grid   etp · ep · edp · pp       edp = world / (etp ep pp),  cp = 1

    16 ranks, tp 2, pp 4      tp [0 1] [2 3] …    dp [0 2] [1 3] [4 6] …    pp [0 4 8 12] …
"""

from __future__ import annotations

import math

import numpy as np

from serried.errors import InputError, listed
from serried.frameworks.framework import (
    Framework,
    Sizes,
    divisors,
    number,
    refuse_foreign_sizes,
    refuse_unknown_options,
    split_world,
    switch,
)
from serried.mesh import Chunks, Ends, First, GroupKind, Layout, Level, Mesh, Runs

AXES = ("tp", "pp", "dp", "ep", "cp")
"""The order in which names missing from the order string are appended at its slow end."""

ORDER = "tp-cp-ep-dp-pp"
TP_PP_DP = "tp-cp-ep-pp-dp"
"""What ``--use-tp-pp-dp-mapping`` asks for."""

OPTIONS = {
    "use_tp_pp_dp_mapping": "true puts data parallelism outside pipelines (default false)",
    "virtual_pipeline_model_parallel_size": "model chunks per rank (default none)",
    "num_distributed_optimizer_instances": "copies of the sharded optimizer state (default 1)",
    "hierarchical_context_parallel_sizes": "levels of the context group, such as '2 4'",
    "hybrid_context_parallel": "true adds context groups of 2, 4, 8 … (default false)",
    "create_gloo_process_groups": "false leaves out the gloo twins (default true)",
    "create_all_gather_group": "true adds a second dp_cp for all-gathers (default false)",
}


def layout(sizes: Sizes) -> Layout:
    """Returns Megatron's layout; raises InputError wherever Megatron-core would refuse."""
    refuse_unknown_options(sizes, "megatron", OPTIONS)
    refuse_foreign_sizes(sizes, "megatron", ("tp", "cp", "pp", "dp", "ep", "etp"))
    order = _order(sizes)
    factors = {"tp": sizes.tp, "cp": sizes.cp, "pp": sizes.pp}
    dp = split_world(sizes.world_size, factors, sizes.dp)
    etp = sizes.tp if sizes.etp is None else sizes.etp
    edp = split_world(sizes.world_size, {"pp": sizes.pp, "etp": etp, "ep": sizes.ep}, None)
    dense = {"tp": sizes.tp, "cp": sizes.cp, "ep": 1, "dp": dp, "pp": sizes.pp}
    expert = {"tp": etp, "cp": 1, "ep": sizes.ep, "dp": edp, "pp": sizes.pp}
    _check_virtual_stages(sizes)
    meshes = {"dense": _mesh(dense, order), "expert": _mesh(expert, order)}
    _check_pipelines(sizes, order, meshes, dp=dp, edp=edp)
    return Layout(
        framework="megatron",
        version=MEGATRON.version,
        world_size=sizes.world_size,
        sizes={"tp": sizes.tp, "cp": sizes.cp, "pp": sizes.pp, "dp": dp}
        | {"ep": sizes.ep, "etp": etp, "edp": edp},
        order=order,
        meshes=meshes,
        kinds=_kinds(sizes, dp_cp=dp * sizes.cp, edp=edp),
        dims={"dp": "dp", "tp": "tp", "pp": "pp", "cp": "cp", "ep": "ep"},
        dp_with_cp="dp_cp",
    )


def _mesh(sizes: dict[str, int], order: str) -> Mesh:
    """Returns the mesh of ``sizes``, absent axes appended at the slow end of ``order``."""
    fastest_first = order.split("-") + [axis for axis in AXES if axis not in order.split("-")]
    return Mesh({axis: sizes[axis] for axis in reversed(fastest_first)})


# ----------------------------------------------------------------------- kinds, by creation


def _kinds(sizes: Sizes, *, dp_cp: int, edp: int) -> tuple[GroupKind, ...]:
    instances = number(sizes, "num_distributed_optimizer_instances", 1)
    _check_instances(instances, dp_cp=dp_cp, edp=edp)
    kinds = [
        *_data_kinds(sizes, dp_cp, instances),
        GroupKind("cp", ("cp",), about="other tokens of the same sequences"),
        *_hierarchy(sizes),
        GroupKind("mp", ("tp", "pp"), about="one whole copy of the model"),
        GroupKind("tp", ("tp",), about="parts of every layer"),
        GroupKind("pp", ("pp",), about="consecutive stages"),
        GroupKind("embd", ("pp",), rule=Ends(), about="tied embeddings, first and last stage"),
        GroupKind("pos_embd", ("pp",), rule=First(), about="position embeddings"),
        GroupKind("tp_dp_cp", ("tp", "dp", "cp"), about="fp8 maxima, MoE auxiliary loss"),
        GroupKind("tp_dp", ("tp", "dp"), about="fp8 maxima"),
        GroupKind("tp_cp", ("tp", "cp"), about="MoE auxiliary loss"),
        *_expert_kinds(edp, instances),
    ]
    return tuple(kind for kind in kinds if _wanted(kind, sizes))


def _data_kinds(sizes: Sizes, dp_cp: int, instances: int) -> list[GroupKind]:
    both = ("dp", "cp")
    kinds = _twinned("dp_cp", both, about="gradients: data parallel, context folded in")
    kinds.insert(1, GroupKind("dp_cp_ag", both, twin_of="dp_cp", about="parameter all-gathers"))
    if instances > 1:
        part = Chunks(dp_cp // instances)
        kinds += _twinned("intra_dp_cp", both, rule=part, about="one optimizer instance")
    kinds += [
        GroupKind(f"HYBRID_DP_CP_GROUP_{size}", both, rule=Chunks(size), about="hybrid context")
        for size in _hybrid_sizes(sizes, dp_cp)
    ]
    return kinds + _twinned("dp", ("dp",), about="same weights, other batches")


def _expert_kinds(edp: int, instances: int) -> list[GroupKind]:
    kinds = [
        GroupKind("ep", ("ep",), "expert", about="other experts"),
        GroupKind("expt_tp", ("tp",), "expert", about="parts of each expert"),
        GroupKind("tp_ep", ("tp", "ep"), "expert", about="all experts of a stage"),
        GroupKind("tp_ep_pp", ("tp", "ep", "pp"), "expert", about="one copy of all experts"),
        *_twinned("expt_dp", ("dp",), mesh="expert", about="same experts, other tokens"),
    ]
    part = edp // instances
    if instances > 1:
        inner, outer = Level(part, 1), Level(instances, part)
        kinds += _twinned("intra_expt_dp", ("dp",), mesh="expert", rule=inner)
        kinds += _twinned("inter_dist_opt", ("dp",), mesh="expert", rule=outer)
    runs = Runs(part)
    whole = GroupKind("intra_dist_opt", ("tp", "ep", "pp"), "expert", rule=runs)
    return [*kinds, whole]


def _twinned(
    name: str,
    axes: tuple[str, ...],
    *,
    mesh: str = "dense",
    rule: Chunks | Level | None = None,
    about: str = "",
) -> list[GroupKind]:
    """Returns a kind and its gloo twin, a second communicator on CPU over the same ranks."""
    twin = GroupKind(f"{name}_gloo", axes, mesh, rule, twin_of=name, about="gloo twin on CPU")
    return [GroupKind(name, axes, mesh, rule, about=about), twin]


def _wanted(kind: GroupKind, sizes: Sizes) -> bool:
    """Tells whether an optional twin is asked for; all other kinds are."""
    if kind.name == "dp_cp_ag":
        return switch(sizes, "create_all_gather_group")
    if kind.twin_of:
        return switch(sizes, "create_gloo_process_groups", default=True)
    return True


def _hierarchy(sizes: Sizes) -> list[GroupKind]:
    """Returns the levels of hierarchical context parallelism: level i strides by the ones below."""
    text = sizes.options.get("hierarchical_context_parallel_sizes", "")
    words = text.replace(",", " ").split()
    if not words:
        return []
    levels = [int(word) if word.isdecimal() else 0 for word in words]
    if math.prod(levels) != sizes.cp:
        raise InputError(
            "hierarchical context sizes '{text}' do not multiply to cp={cp}; "
            "a list that does: {example}",
            text=text,
            cp=sizes.cp,
            example=" ".join(map(str, _two_levels(sizes.cp))),
        )
    return [
        GroupKind(
            f"HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L{i}",
            ("cp",),
            rule=Level(size, math.prod(levels[:i])),
            about=f"level {i} of the context group",
        )
        for i, size in enumerate(levels)
    ]


def _two_levels(cp: int) -> tuple[int, int]:
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
    return [2**i for i in range(1, int(math.log2(dp_cp)))]


# ----------------------------------------------------------------------- validity


def _order(sizes: Sizes) -> str:
    """Returns the order string in lower case; raises InputError for one Megatron cannot use."""
    mapping = switch(sizes, "use_tp_pp_dp_mapping")
    order = sizes.order or (TP_PP_DP if mapping else ORDER)
    names = order.lower().split("-")
    for name in names:
        if name not in AXES:
            raise InputError(
                "order '{order}' names an unknown axis '{axis}'; "
                "it joins some of tp, cp, ep, dp, pp by '-', such as {example}",
                order=order,
                axis=name,
                example=ORDER,
            )
        if names.count(name) > 1:
            raise InputError(
                "order '{order}' names {axis} twice; each axis stands once, such as {example}",
                order=order,
                axis=name,
                example=ORDER,
            )
    return order.lower()


def _require_in_order(sizes: dict[str, int], order: str) -> None:
    for axis, size in sizes.items():
        if size > 1 and axis not in order.split("-"):
            raise InputError(
                "order '{order}' leaves out {axis}, whose size is {size}; "
                "add it where it varies, such as {example}",
                order=order,
                axis=axis,
                size=size,
                example=f"{order}-{axis}",
            )


def _check_virtual_stages(sizes: Sizes) -> None:
    if "virtual_pipeline_model_parallel_size" in sizes.options:
        number(sizes, "virtual_pipeline_model_parallel_size", 1)
        if sizes.pp == 1:
            raise InputError(
                "virtual pipeline stages need pp above 1 (here pp=1); "
                "raise pp or leave out virtual_pipeline_model_parallel_size"
            )


def _check_pipelines(
    sizes: Sizes, order: str, meshes: dict[str, Mesh], *, dp: int, edp: int
) -> None:
    """Raises InputError unless both grids hold the same pipelines."""
    for mesh in meshes.values():
        _require_in_order(dict(mesh.sizes), order)
    if sizes.pp == 1:
        return
    if not order.endswith("pp") and dp != edp:
        raise InputError(
            "order '{order}' needs dp = expert dp, but dp={dp} and expert dp={edp}; "
            "make etp x ep = tp x cp = {both}, or end the order in pp",
            order=order,
            dp=dp,
            edp=edp,
            both=sizes.tp * sizes.cp,
        )
    if not np.array_equal(meshes["dense"].groups("pp"), meshes["expert"].groups("pp")):
        raise InputError(
            "order '{order}' gives experts other pipelines than the dense layers; "
            "an order that ends in pp does not, such as {example}",
            order=order,
            example=ORDER,
        )


def _check_instances(instances: int, *, dp_cp: int, edp: int) -> None:
    for name, size in (("dp x cp", dp_cp), ("expert dp", edp)):
        if size % instances:
            fits = divisors(math.gcd(dp_cp, edp))
            raise InputError(
                "num_distributed_optimizer_instances={count} does not divide {name}={size}; "
                "numbers that do: {fits}",
                count=instances,
                name=name,
                size=size,
                fits=listed(fits, limit=24),
            )


MEGATRON = Framework(
    name="megatron",
    title="Megatron-core",
    version="0.16.1",
    source="megatron-core megatron/core/parallel_state.py",
    dims=("dp", "tp", "pp", "cp", "ep"),
    options=OPTIONS,
    default_order=ORDER,
    orders=(ORDER, TP_PP_DP),
    layout=layout,
)
