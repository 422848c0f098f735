"""Nanotron: one grid, tp fastest and ep slowest, and groups counted in a turned order.

Read from nanotron main 2411b022 and PyPI nanotron 0.4, src/nanotron/parallel/context.py
(ParallelContext). Groups are made from ``ranks.transpose(…).reshape(-1, size)``, so they run in
another order than the grid; equal lists of ranks share one group.

    main   ep · pp · dp · cp · tp    tp cp dp pp make the world, so ep is 1
    0.4    ep · pp · dp · tp         ep is a factor of the world
"""

from __future__ import annotations

from serried.errors import InputError, listed
from serried.frameworks.framework import (
    Framework,
    divisors,
    number,
    refuse_foreign_sizes,
    refuse_unknown_options,
    split_world,
)
from serried.frameworks.internlm import refuse_other_orders
from serried.mesh import Conventions, GroupKind, Layout, Mesh, RankWindows
from serried.mesh.sizes import Sizes

ORDER = "ep-pp-dp-cp-tp"
OPTIONS = {
    "LOCAL_WORLD_SIZE": "ranks of a node, main only (default 8, or the world if smaller)",
    "num_attention_heads": "heads of the model; tp must divide them (default not looked at)",
    "num_key_value_heads": "key and value heads, at least tp (default not looked at)",
}

TURNED = {
    "tp": ("ep", "pp", "dp", "cp"),
    "cp": ("tp", "ep", "pp", "dp"),
    "dp": ("cp", "tp", "ep", "pp"),
    "pp": ("dp", "cp", "tp", "ep"),
    "ep": ("pp", "dp", "cp", "tp"),
}
"""The axes that groups of a kind are counted along, slowest first."""

ABOUT = {
    "tp": "parts of every layer",
    "cp": "other tokens of the same sequences",
    "dp": "same weights, other batches",
    "pp": "consecutive stages",
    "ep": "other experts",
}


def layout(sizes: Sizes, version: str) -> Layout:
    """Returns nanotron's layout; raises InputError wherever nanotron would refuse."""
    # PyPI's 0.4 has no cp, and ep is a factor of the world like any other. The newer one asks for
    # tp x cp x dp x pp = world and then reshapes the ranks to a grid that has ep besides.
    old = version != "main-2411b022"
    refuse_unknown_options(sizes, "nanotron", () if old else OPTIONS)
    takes = ("tp", "pp", "dp", "ep") if old else ("tp", "pp", "cp", "dp", "ep")
    refuse_foreign_sizes(sizes, "nanotron", takes)
    refuse_other_orders(sizes.order, ORDER, "nanotron")
    if not old and sizes.ep > 1:
        raise InputError(
            "ep={ep} cannot be on nanotron main: tp x cp x dp x pp is the whole world there, "
            "and the grid has ep besides; nanotron@0.4 takes it",
            ep=sizes.ep,
        )
    _check_heads(sizes)
    factors = {"tp": sizes.tp, "cp": sizes.cp, "pp": sizes.pp, "ep": sizes.ep}
    dp = split_world(sizes.world_size, factors, sizes.dp)
    grid = {"ep": sizes.ep, "pp": sizes.pp, "dp": dp, "cp": sizes.cp, "tp": sizes.tp}
    kinds = _old_kinds() if old else _kinds(sizes)
    ep = "expert_pg" if old else "ep_pg"
    dims = {"dp": "dp_pg", "tp": "tp_pg", "pp": "pp_pg", "cp": "cp_pg", "ep": ep}
    names = {kind.name for kind in kinds}
    return Layout(
        framework="nanotron",
        version=version,
        world_size=sizes.world_size,
        sizes={"tp": sizes.tp, "cp": sizes.cp, "pp": sizes.pp, "dp": dp, "ep": sizes.ep},
        order=ORDER,
        meshes={"dense": Mesh(grid)},
        kinds=kinds,
        dims={dim: kind for dim, kind in dims.items() if kind in names},
        dp_with_cp=None if old else "dp_cp_pg",
    )


def _check_heads(sizes: Sizes) -> None:
    """Raises InputError for heads that the model code cannot part among tensor ranks."""
    heads = number(sizes, "num_attention_heads", sizes.tp)
    if heads % sizes.tp:
        raise InputError(
            "tp={tp} does not divide num_attention_heads={heads}; sizes that do: {fits}",
            tp=sizes.tp,
            heads=heads,
            fits=listed(divisors(heads), limit=24),
        )
    groups = number(sizes, "num_key_value_heads", sizes.tp)
    if groups < sizes.tp:
        raise InputError(
            "num_key_value_heads={heads} is below tp={tp}; each tensor rank holds at least one",
            heads=groups,
            tp=sizes.tp,
        )


def _along(name: str, axis: str) -> GroupKind:
    return GroupKind(name, (axis,), by=TURNED[axis], about=ABOUT[axis])


def _kinds(sizes: Sizes) -> tuple[GroupKind, ...]:
    everyone = ("ep", "pp", "dp", "cp", "tp")
    local = RankWindows(_local_world_size(sizes))
    both, model = ("dp", "cp"), ("ep", "pp", "tp")
    by_cp = ("cp", "pp", "dp")
    return (
        GroupKind("local_pg", everyone, rule=local, about="ranks of one node"),
        *(_along(f"{axis}_pg", axis) for axis in ("tp", "cp", "dp", "pp", "ep")),
        GroupKind("mp_pg", model, by=("cp", "dp"), about="one whole copy of the model"),
        GroupKind("dp_cp_pg", both, by=("tp", "ep", "pp"), about="gradients, context folded in"),
        GroupKind("tp_and_ep_pg", ("ep", "tp"), by=by_cp, about="all experts of a stage"),
    )


def _old_kinds() -> tuple[GroupKind, ...]:
    return (
        *(_along(f"{axis}_pg", axis) for axis in ("tp", "dp", "pp")),
        _along("expert_pg", "ep"),
        GroupKind("mp_pg", ("ep", "pp", "tp"), about="one whole copy of the model"),
    )


def _local_world_size(sizes: Sizes) -> int:
    world = sizes.world_size
    if world <= 8:
        return world
    size = number(sizes, "LOCAL_WORLD_SIZE", 8)
    if world % size:
        raise InputError(
            "nodes of {size} ranks do not fill {world} ranks; LOCAL_WORLD_SIZE can be {fits}",
            size=size,
            world=world,
            fits=listed(divisors(world), limit=24),
        )
    return size


TRAFFIC_SETTINGS = {
    "tp_mode": ("ALL_REDUCE", "REDUCE_SCATTER"),
}
"""Settings on which what travels depends, but no group, with their values."""

TRAFFIC_ABOUT = {
    "tp_mode": "ALL_REDUCE or REDUCE_SCATTER: how tensor ranks join results",
}


NANOTRON = Framework(
    name="nanotron",
    title="Nanotron",
    version="main-2411b022",
    source="nanotron src/nanotron/parallel/context.py",
    dims=("dp", "tp", "pp", "cp", "ep"),
    options=OPTIONS | TRAFFIC_ABOUT,
    default_order=ORDER,
    orders=(ORDER,),
    make=layout,
    traffic_settings=TRAFFIC_SETTINGS,
    versions=("0.4", "main-2411b022"),
    conventions=Conventions(shares_equal=True),
)
