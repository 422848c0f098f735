"""Megatron-core before 0.10: expert parallelism inside data parallelism.

Read from megatron-core 0.5.0, 0.6.0 (PyPI) and core_v0.4.0 for the first generation, 0.7.0 to
0.9.0 for the second, megatron/core/parallel_state.py.

    until 0.6   order fixed: tp · cp · dp · pp; experts: tp · ep · dp/ep, cut off a grid that
                ignores cp, so with cp > 1 "data modulo expert" groups are not data groups
    0.7 - 0.9   an order string; dp is split into ep and dp/ep, next to each other

    16 ranks, tp 2, cp 2, ep 2 (0.8)     ep [0 4] [1 5] …  (from 0.10 on [0 2] [1 3] …)
"""

from __future__ import annotations

from itertools import pairwise

from serried.errors import InputError, listed
from serried.finding import Finding, said
from serried.frameworks.framework import (
    at_least,
    divisors,
    number,
    refuse_foreign_sizes,
    split_world,
)
from serried.frameworks.megatron.encoder import Encoder
from serried.frameworks.megatron.names import DP_CP, dims_of, name_of, named
from serried.frameworks.megatron.order import (
    ORDER,
    AxisOrder,
    embedding_rules,
    read_order,
    require_in_order,
)
from serried.mesh import GroupKind, Layout, Mesh
from serried.mesh.sizes import Sizes


def layout(sizes: Sizes, version: str) -> Layout:
    """Returns the layout of a version before 0.10; raises InputError where it would refuse."""
    refuse_foreign_sizes(sizes, "megatron", ("tp", "cp", "pp", "dp", "ep"))
    encoder = Encoder.of(sizes, version)
    if encoder.is_used:
        dp = encoder.data_parallel(sizes)
    else:
        factors = {"tp": sizes.tp, "cp": sizes.cp, "pp": sizes.pp}
        dp = split_world(sizes.world_size, factors, sizes.dp)
    _check_experts(sizes, version, dp)
    _check_virtual_stages(sizes, version)
    order = _order(sizes, version)
    meshes = _meshes(sizes, version, order, dp, encoder.num_ranks(dp))
    kinds = _kinds(sizes, version)
    if encoder.is_used:
        from serried.frameworks.megatron.join import with_encoder  # few jobs have an encoder

        meshes, kinds = with_encoder(kinds, meshes, encoder, order, version)
    kinds = named(kinds, sizes, version)
    return Layout(
        framework="megatron",
        version=version,
        world_size=sizes.world_size,
        sizes={"tp": sizes.tp, "cp": sizes.cp, "pp": sizes.pp, "dp": dp, "ep": sizes.ep},
        order=order.text,
        meshes=meshes,
        kinds=kinds,
        dims=dims_of(kinds),
        dp_with_cp=next(kind.name for kind in kinds if kind.name in DP_CP),
        findings=(*order.findings, *_misfits(sizes, version, kinds), *encoder.findings(kinds)),
    )


def _order(sizes: Sizes, version: str) -> AxisOrder:
    if not at_least(version, "0.7"):
        if sizes.order not in (None, ORDER):
            raise InputError(
                "megatron {version} has one order, {fixed}; '{order}' needs 0.7 or newer",
                version=version,
                fixed=ORDER,
                order=sizes.order,
            )
        return read_order(sizes)
    order = read_order(sizes)
    # From 0.7 to 0.9 expert groups are cut from data groups, so the order may not part ep and dp.
    if "ep" in order.named and not {"ep-dp", "dp-ep"} & {*_neighbours(order.named)}:
        raise InputError(
            "order '{order}' parts ep from dp; until 0.9 they stand together, such as {example}",
            order=order.text,
            example=ORDER,
        )
    return order


def _neighbours(names: list[str]) -> list[str]:
    return [f"{a}-{b}" for a, b in pairwise(names)]


def _meshes(sizes: Sizes, version: str, order: AxisOrder, dp: int, offset: int) -> dict[str, Mesh]:
    dense = {"tp": sizes.tp, "cp": sizes.cp, "ep": 1, "dp": dp, "pp": sizes.pp}
    if not at_least(version, "0.7"):
        # Until 0.6 experts are laid over runs of tp x dp ranks as if there were no cp: with cp
        # above 1 their groups mix context with data ranks (_misfits).
        outer = sizes.pp * sizes.cp
        expert = {"outer": outer, "dp": dp // sizes.ep, "ep": sizes.ep, "tp": sizes.tp}
        return {"dense": order.mesh(dense), "expert": Mesh(expert)}
    require_in_order(dense | {"ep": sizes.ep}, order)
    split = dense | {"ep": sizes.ep, "dp": dp // sizes.ep}
    return {"dense": order.mesh(dense, offset), "expert": order.mesh(split, offset)}


def _kinds(sizes: Sizes, version: str) -> tuple[GroupKind, ...]:
    ends, first = embedding_rules(sizes)
    whole, both = ("tp", "ep", "pp"), ("dp", "cp")
    folded = [
        GroupKind("tp_ep_pp", whole, "expert", about="one copy of all experts"),
        GroupKind("expt_dp_cp", both, "expert", about="same experts, context folded in"),
        GroupKind("expt_dp_cp_gloo", both, "expert", twin_of="expt_dp_cp", about="gloo twin"),
    ]
    # These came with 0.8, as did experts beside context parallelism.
    if not at_least(version, "0.8"):
        folded = []
    kinds = [
        GroupKind("dp", ("dp",), about="same weights, other batches"),
        GroupKind("dp_gloo", ("dp",), twin_of="dp", about="gloo twin on CPU"),
        GroupKind("dp_cp", both, about="gradients: data parallel, context folded in"),
        GroupKind("dp_cp_gloo", both, twin_of="dp_cp", about="gloo twin on CPU"),
        GroupKind("cp", ("cp",), about="other tokens of the same sequences"),
        GroupKind("mp", ("tp", "pp"), about="one whole copy of the model"),
        *folded[:1],
        GroupKind("tp", ("tp",), about="parts of every layer"),
        GroupKind("pp", ("pp",), about="consecutive stages"),
        GroupKind("embd", ("pp",), rule=ends, about="tied embeddings"),
        GroupKind("pos_embd", ("pp",), rule=first, about="position embeddings"),
        GroupKind("tp_dp_cp", ("tp", "dp", "cp"), about="fp8 maxima"),
        GroupKind("tp_dp", ("tp", "dp"), about="fp8 maxima"),
        GroupKind("tp_cp", ("tp", "cp"), about="MoE auxiliary loss"),
        GroupKind("tp_ep", ("tp", "ep"), "expert", about="all experts of a stage"),
        GroupKind("ep", ("ep",), "expert", about="other experts"),
        GroupKind("expt_dp", ("dp",), "expert", about="same experts, other tokens"),
        GroupKind("expt_dp_gloo", ("dp",), "expert", twin_of="expt_dp", about="gloo twin on CPU"),
        *folded[1:],
    ]
    return tuple(kinds)


def _check_experts(sizes: Sizes, version: str, dp: int) -> None:
    if dp % sizes.ep:
        raise InputError(
            "ep={ep} does not divide dp={dp}, as megatron {version} needs; sizes that do: {fits}",
            ep=sizes.ep,
            dp=dp,
            version=version,
            fits=listed(divisors(dp), limit=24),
        )
    if sizes.ep > 1 and sizes.cp > 1 and not at_least(version, "0.8"):
        raise InputError(
            "megatron {version} does not combine ep={ep} with cp={cp}; 0.8 and newer do",
            version=version,
            ep=sizes.ep,
            cp=sizes.cp,
        )


def _check_virtual_stages(sizes: Sizes, version: str) -> None:
    key = "virtual_pipeline_model_parallel_size"
    if key not in sizes.options:
        return
    number(sizes, key, 1)
    # "should be greater than 2 with interleaved schedule" until 0.7.0, "than 1" from 0.8.0 on.
    least = 2 if at_least(version, "0.8") else 3
    if sizes.pp < least:
        raise InputError(
            "virtual pipeline stages need pp of at least {least} in megatron {version}; "
            "here pp={pp}",
            least=least,
            version=version,
            pp=sizes.pp,
        )


def _misfits(sizes: Sizes, version: str, kinds: tuple[GroupKind, ...]) -> list[Finding]:
    if at_least(version, "0.7") or sizes.cp == 1:
        return []
    kind = name_of("expt_dp", "_DATA_MODULO_EXPERT_PARALLEL_GROUP", kinds)
    return [
        Finding(
            "misfit",
            groups=(kind,),
            evidence=(
                said(
                    "until 0.6 {kind} ignores cp={cp}: its groups mix context with data ranks",
                    kind=kind,
                    cp=sizes.cp,
                ),
            ),
            cure=said("use megatron 0.8 or newer"),
        )
    ]
