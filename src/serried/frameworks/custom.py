"""A free form: any named axes in any order, and any sets of them as group kinds.

axes "dp=2 pp=4 tp=2"       slowest first, as numpy and DeviceMesh list them
groups "model=pp+tp"        kinds beside the one that each axis is
"""

from __future__ import annotations

import math

from serried.errors import InputError, listed
from serried.finding import said
from serried.frameworks.devicemesh import of_mesh
from serried.frameworks.framework import (
    Framework,
    Sizes,
    number,
    refuse_foreign_sizes,
    refuse_unknown_options,
    split_world,
)
from serried.mesh import GroupKind, Layout, Mesh

ORDER = "pp-dp-cp-ep-tp"
OPTIONS = {
    "axes": "named sizes, slowest first, such as 'dp=2 pp=4 tp=2' (default: the neutral sizes)",
    "groups": "more kinds, such as 'model=pp+tp data=dp'",
    "rank_offset": "first rank of the mesh (default 0)",
}


def layout(sizes: Sizes, version: str) -> Layout:
    """Returns the layout of the axes asked for; raises InputError unless they fill the world."""
    refuse_unknown_options(sizes, "custom", OPTIONS)
    axes = _axes(sizes) if "axes" in sizes.options else _neutral(sizes)
    offset = number(sizes, "rank_offset", 0, least=0)
    held = math.prod(axes.values())
    if held + offset != sizes.world_size:
        raise InputError(
            "the axes {axes} hold {held} ranks, but there are {world}",
            axes=listed(f"{axis}={size}" for axis, size in axes.items()),
            held=held + offset,
            world=sizes.world_size,
        )
    kinds = [GroupKind(axis, (axis,)) for axis in axes] + _merged(sizes, axes)
    return of_mesh("custom", version, sizes.world_size, Mesh(axes, offset), tuple(kinds))


def _axes(sizes: Sizes) -> dict[str, int]:
    refuse_foreign_sizes(sizes, said("custom with axes"), ())
    axes: dict[str, int] = {}
    for word in sizes.options["axes"].replace(",", " ").split():
        name, _, size = word.partition("=")
        if not name or not size.isdecimal() or int(size) < 1:
            raise InputError("axes has '{word}'; each reads NAME=SIZE, such as tp=2", word=word)
        if name in axes:
            raise InputError("axes names '{name}' twice; each axis stands once", name=name)
        axes[name] = int(size)
    if sizes.order is None:
        return axes
    return {name: axes[name] for name in _ordered(sizes.order, list(axes))}


def _neutral(sizes: Sizes) -> dict[str, int]:
    refuse_foreign_sizes(sizes, "custom", ("tp", "pp", "cp", "dp", "ep"))
    factors = {"tp": sizes.tp, "cp": sizes.cp, "pp": sizes.pp, "ep": sizes.ep}
    dp = split_world(sizes.world_size, factors, sizes.dp)
    axes = {"pp": sizes.pp, "dp": dp, "cp": sizes.cp, "ep": sizes.ep, "tp": sizes.tp}
    return {name: axes[name] for name in _ordered(sizes.order or ORDER, list(axes))}


def _ordered(order: str, names: list[str]) -> list[str]:
    words = order.replace(",", "-").split("-")
    if sorted(words) != sorted(names):
        raise InputError(
            "order '{order}' does not name each axis once; the axes are {axes}, slowest first",
            order=order,
            axes=listed(names),
        )
    return words


def _merged(sizes: Sizes, axes: dict[str, int]) -> list[GroupKind]:
    kinds: list[GroupKind] = []
    for word in sizes.options.get("groups", "").replace(",", " ").split():
        name, _, joined = word.partition("=")
        over = tuple(joined.split("+"))
        unknown = next((axis for axis in over if axis not in axes), None)
        if not name or unknown is not None:
            raise InputError(
                "groups has '{word}'; each reads NAME=AXIS+AXIS with axes of {axes}",
                word=word,
                axes=listed(axes),
            )
        if name in axes or name in {kind.name for kind in kinds}:
            raise InputError("groups names '{name}' twice; a kind stands once", name=name)
        kinds.append(GroupKind(name, over, about=" x ".join(over)))
    return kinds


CUSTOM = Framework(
    name="custom",
    title="Any named axes",
    version="1",
    source="the user",
    dims=("dp", "tp", "pp", "cp", "ep"),
    options=OPTIONS,
    default_order=ORDER,
    orders=(ORDER,),
    make=layout,
    versions=("1",),
)
