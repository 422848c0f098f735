"""Paddle fleet and PaddleNLP: one grid of hybrid degrees, in an order of the user's.

Read from paddlepaddle 3.3.1, distributed/fleet/base/topology.py (CommunicateTopology,
HybridCommunicateGroup) and fleet.py, PaddleNLP 2.8.1 and PaddleFormers 1.2.0 (topology orders).
Experts have a grid of their own, ``paddle_experts``.

    dp pp sharding sep cp mp, slowest first          16 ranks, mp 2, pp 4, dp 2
    data [0 8] [1 9] …    pipe [0 2 4 6] …    model [0 1] …    check(data) [0 … 7] [8 … 15]

HybridCommunicateGroup multiplies dp, mp, pp, sharding and sep to the world and forgets cp:
with cp > 1 and no experts, groups name ranks beyond the world.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from serried.errors import InputError, listed
from serried.finding import Finding, Sentence, said
from serried.frameworks.framework import (
    Framework,
    choice,
    refuse_foreign_sizes,
    refuse_unknown_options,
    switch,
)
from serried.frameworks.paddle import experts as paddle_experts
from serried.mesh import ByFirst, GroupKind, Layout, Mesh, RingPairs
from serried.mesh.sizes import Sizes

AXES = {
    "dp": "data",
    "pp": "pipe",
    "sharding": "sharding",
    "mp": "model",
    "sep": "sep",
    "cp": "context",
    "ep": "expert",
    "moe_sharding": "moe_sharding",
}
"""What ``hybrid_configs`` calls an axis -> what its groups are called."""

UNCHECKED = ("dp", "ep", "moe_sharding")
"""Degrees that may be negative: dp is then what mp and pp leave, the others 1."""

FLEET = "dp,pp,sharding,sep,cp,mp"
ORDERS = {
    "pp_first": "dp,pp,sharding,sep,mp",
    "sharding_first": "dp,sharding,pp,sep,mp",
}
"""PaddleNLP's ``hybrid_parallel_topo_order``."""
EXPERT_ORDERS = {
    "pp_first": "dp,pp,moe_sharding,cp,sharding,sep,ep,mp",
    "sharding_first": "dp,moe_sharding,cp,sharding,pp,sep,ep,mp",
}
"""The same in PaddleFormers, with experts."""
PIPELINE_PRIORITY = "sharding,moe_sharding,pp,sep,cp,dp,ep,mp"

OPTIONS = {f"{name}_degree": f"ranks along {group} (default 1)" for name, group in AXES.items()} | {
    "dp_degree": "ranks along data; -1 is what mp and pp leave (default what all others leave)",
    "hybrid_parallel_topo_order": "pp_first or sharding_first, as PaddleNLP names two orders",
    "use_expert_parallel": "true puts dp inside, before mp, as PaddleNLP 2.8 does for experts",
    "reorder_pipeline_priority": "true uses the order that PaddleFormers calls so",
    "check_groups": "all, data or none: which groups of checks are listed (all)",
    "four_directions_p2p": "true adds a pair for each direction between stages (false)",
}
ABOUT = {
    "data": "same weights, other batches",
    "pipe": "consecutive stages",
    "sharding": "shards of the optimizer state",
    "model": "parts of every layer",
    "sep": "parts of the same sequences",
    "context": "other tokens of the same sequences",
    "expert": "other experts",
    "moe_sharding": "shards of the experts",
}


@dataclass(frozen=True)
class HybridDegrees:
    """Holds every degree under Paddle's name, and the order of the axes, slowest first."""

    world: int
    order: tuple[str, ...]
    sizes: dict[str, int]

    def named(self) -> dict[str, int]:
        """Returns the axes in order under their groups' names."""
        return {AXES[name]: self.sizes[name] for name in self.order}


def layout(sizes: Sizes, version: str) -> Layout:
    """Returns Paddle's layout; raises InputError wherever Paddle would refuse."""
    refuse_unknown_options(sizes, "paddle", OPTIONS)
    refuse_foreign_sizes(sizes, "paddle", ("tp", "pp", "cp", "dp", "ep"))
    degrees = HybridDegrees(sizes.world_size, _order(sizes), _degrees(sizes))
    # Paddle makes its expert grid (EPHybridCommunicateGroup) only where ep stands in the order.
    if degrees.sizes["ep"] > 1 and "ep" in degrees.order:
        meshes, kinds, findings = paddle_experts.groups(degrees.named(), degrees.world)
        checked: tuple[str, ...] = ("data", "moe_sharding")
    else:
        meshes, kinds, findings = _dense(degrees)
        checked = ("data",) if degrees.sizes["sharding"] <= 1 else ("data", "sharding")
    checks = _checks(sizes, meshes["dense"], checked)
    kinds = (*kinds, *checks, *_pairs(sizes, meshes["dense"]))
    names = {kind.name for kind in kinds}
    found = degrees.sizes
    carried = {"dp": "data", "tp": "model", "pp": "pipe", "cp": "context", "ep": "expert"}
    return Layout(
        framework="paddle",
        version=version,
        world_size=sizes.world_size,
        sizes={"tp": found["mp"], "pp": found["pp"], "dp": found["dp"], "cp": found["cp"]}
        | {name: found[name] for name in ("ep", "sharding", "sep", "moe_sharding")},
        order=",".join(degrees.order),
        meshes=meshes,
        kinds=kinds,
        dims={dim: kind for dim, kind in carried.items() if kind in names},
        findings=findings,
    )


def _dense(
    degrees: HybridDegrees,
) -> tuple[dict[str, Mesh], tuple[GroupKind, ...], tuple[Finding, ...]]:
    """Returns the grid, its axes and what HybridCommunicateGroup makes besides."""
    axes = degrees.named()
    _check_dense(degrees, axes)
    mesh = Mesh(axes)
    kinds = [GroupKind(axis, (axis,), about=ABOUT[axis]) for axis in axes]
    if axes["sep"] > 1:
        kinds += [
            _fused("dp_sep", ("data", "sep"), "gradients, sequences folded in"),
            _fused("pp_mp", ("pipe", "model"), "one whole copy of the model"),
        ]
    return {"dense": mesh}, tuple(kinds), _beyond(mesh, degrees.world)


def _checks(sizes: Sizes, mesh: Mesh, axes: tuple[str, ...]) -> list[GroupKind]:
    """Returns the groups of all ranks that share a place along an axis, data or of sharding."""
    wanted = choice(sizes, "check_groups", ("all", "data", "none"))
    listed_axes = {"all": axes, "data": axes[:1], "none": ()}[wanted]
    return [
        GroupKind(
            f"check({axis})",
            tuple(other for other in mesh.axes if other != axis),
            about="overflow checks, gradient norms",
        )
        for axis in listed_axes
    ]


def _pairs(sizes: Sizes, mesh: Mesh) -> list[GroupKind]:
    """Returns, as PADDLE_USE_FOUR_DIRECTIONS_P2P asks for, each stage's pairs on and back."""
    if not switch(sizes, "four_directions_p2p") or mesh.sizes["pipe"] == 1:
        return []
    return [
        GroupKind("p2p(next)", ("pipe",), rule=RingPairs(), about="each stage to the next"),
        GroupKind(
            "p2p(prev)", ("pipe",), rule=RingPairs(back=1), about="each stage to the one before"
        ),
    ]


def _fused(name: str, axes: tuple[str, ...], about: str) -> GroupKind:
    """Returns the groups over two axes, members in the order in which the axes are named."""
    return GroupKind(name, axes, rule=ByFirst(), about=about, within=axes)


def _beyond(mesh: Mesh, world: int) -> tuple[Finding, ...]:
    if mesh.num_ranks == world:
        return ()
    forgotten = [axis for axis in ("context", "expert", "moe_sharding") if axis in mesh.axes]
    return (
        Finding(
            "out_of_range",
            evidence=(
                said(
                    "Paddle leaves {axes} out of its check, so the grid holds {held} ranks in a "
                    "world of {world} and groups name ranks that are not there",
                    axes=listed(forgotten),
                    held=mesh.num_ranks,
                    world=world,
                ),
            ),
            cure=said("set {axes} to 1 without experts", axes=listed(forgotten)),
        ),
    )


# ----------------------------------------------------------------------- reading and checks


def _order(sizes: Sizes) -> tuple[str, ...]:
    text = sizes.order or _named_order(sizes)
    # An order may be written as a list, [dp, pp, mp], or as dp,pp,mp or dp-pp-mp.
    names = tuple(text.strip("[] ").replace(" ", "").replace("-", ",").split(","))
    unknown = next((name for name in names if name not in AXES), None)
    if unknown is not None:
        raise InputError(
            "order '{order}' names an unknown axis '{axis}'; axes are {known}",
            order=text,
            axis=unknown,
            known=listed(AXES),
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise InputError(
            "order '{order}' names {axis} twice; each axis stands once, such as {example}",
            order=text,
            axis=twice,
            example=FLEET,
        )
    return names


def _named_order(sizes: Sizes) -> str:
    """Returns the order of the trainer's settings, or fleet's own."""
    has_experts = _degree(sizes, "ep", sizes.ep) > 1
    if switch(sizes, "reorder_pipeline_priority"):
        return PIPELINE_PRIORITY
    if "hybrid_parallel_topo_order" not in sizes.options:
        return EXPERT_ORDERS["sharding_first"] if has_experts else FLEET
    named = choice(sizes, "hybrid_parallel_topo_order", ("pp_first", "sharding_first"))
    if has_experts:
        return EXPERT_ORDERS[named]
    order = ORDERS[named]
    if switch(sizes, "use_expert_parallel"):
        # PaddleNLP 2.8 then sets dp beside mp: dp,pp,sharding,sep,mp becomes pp,sharding,sep,dp,mp.
        names = order.split(",")
        return ",".join([*names[1:-1], "dp", "mp"])
    return order


def _degrees(sizes: Sizes) -> dict[str, int]:
    neutral = {"mp": sizes.tp, "pp": sizes.pp, "cp": sizes.cp, "ep": sizes.ep}
    asked = _degree(sizes, "dp", sizes.dp if sizes.dp is not None else -1)
    found = {
        name: max(_degree(sizes, name, neutral.get(name, 1)), 1) for name in AXES if name != "dp"
    }
    found["sharding"] = _degree(sizes, "sharding", 1)
    model = found["mp"] * found["pp"]
    if asked < 0 and "dp_degree" not in sizes.options:
        # fleet would divide by mp and pp only, and then refuse; what is left is meant.
        model *= found["sharding"] * found["sep"]
    found["dp"] = max(sizes.world_size // max(model, 1) if asked < 0 else asked, 1)
    return found


def _degree(sizes: Sizes, name: str, neutral: int) -> int:
    """Returns a degree as it is written; fleet asserts that most are not negative."""
    text = sizes.options.get(f"{name}_degree", str(neutral))
    is_whole = text.removeprefix("-").isdecimal()
    if not is_whole or (int(text) < 0 and name not in UNCHECKED):
        raise InputError(
            "{key}={value} is not a degree; it is a whole number of at least {least}",
            key=f"{name}_degree",
            value=text,
            least=0,
        )
    return int(text)


def _check_dense(degrees: HybridDegrees, axes: dict[str, int]) -> None:
    needed = ("data", "pipe", "sharding", "sep", "model")
    missing = next((axis for axis in needed if axis not in axes), None)
    if missing:
        raise InputError(
            "the order leaves out {axis}, which Paddle needs; an order that has all is {example}",
            axis=missing,
            example=FLEET,
        )
    # Paddle leaves context out of this product, so cp above 1 makes a grid that is larger than the
    # world; _beyond tells of it.
    product = math.prod(axes[axis] for axis in needed)
    if product != degrees.world:
        raise InputError(
            "dp x mp x pp x sharding x sep is {factors} = {product}, but there are {world} ranks; "
            "dp can be {fit}",
            factors=" x ".join(
                str(axes[axis]) for axis in ("data", "model", "pipe", "sharding", "sep")
            ),
            product=product,
            world=degrees.world,
            fit=_fitting(degrees.world, product // axes["data"] if product else 0),
        )


def _fitting(world: int, others: int) -> str | Sentence:
    if others and world % others == 0:
        return str(world // others)
    return said("no number: the other degrees do not divide the world")


TRAFFIC_SETTINGS = {
    "sequence_parallel": ("true", "false"),
}
"""Settings on which what travels depends, but no group, with their values."""

TRAFFIC_ABOUT = {
    "sequence_parallel": "true splits activations over mp too (default false)",
}


PADDLE = Framework(
    name="paddle",
    title="Paddle fleet, PaddleNLP",
    version="3.3.1",
    source="paddlepaddle paddle/distributed/fleet/base/topology.py",
    dims=("dp", "tp", "pp", "cp", "ep"),
    options=OPTIONS | TRAFFIC_ABOUT,
    default_order=FLEET,
    orders=(FLEET, *ORDERS.values(), *EXPERT_ORDERS.values(), PIPELINE_PRIORITY),
    make=layout,
    traffic_settings=TRAFFIC_SETTINGS,
    versions=("2.6.2", "3.3.1"),
)
