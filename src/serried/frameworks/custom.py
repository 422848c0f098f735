"""A free form: any named axes in any order, and any sets of them as group kinds.

axes "dp=2 pp=4 tp=2"       slowest first, as numpy and DeviceMesh list them
groups "model=pp+tp"        kinds beside the one that each axis is
ranks "0 2 4 6"             the ranks themselves in that order, where others stand between them
"""

from __future__ import annotations

import math

from serried.errors import InputError, listed
from serried.finding import said
from serried.frameworks.devicemesh import of_mesh
from serried.frameworks.framework import (
    Framework,
    number,
    refuse_foreign_sizes,
    refuse_unknown_options,
    split_world,
)
from serried.mesh import GroupKind, Layout, Mesh
from serried.mesh.sizes import Sizes

ORDER = "pp-dp-cp-ep-tp"
OPTIONS = {
    "axes": "named sizes, slowest first, such as 'dp=2 pp=4 tp=2' (default: the neutral sizes)",
    "groups": "more kinds, such as 'model=pp+tp data=dp'",
    "rank_offset": "first rank of the mesh (default 0)",
    "ranks": "the ranks in the order of the axes, such as '0 2 4 6' (default: from rank_offset on)",
}


def layout(sizes: Sizes, version: str) -> Layout:
    """Returns the layout of the axes asked for; raises InputError unless they fill the world.

    Ranks that are named one by one need not fill it.
    """
    refuse_unknown_options(sizes, "custom", OPTIONS)
    axes = _axes(sizes) if "axes" in sizes.options else _neutral(sizes)
    offset = number(sizes, "rank_offset", 0, least=0)
    held = math.prod(axes.values())
    ranks = _ranks(sizes, held) if "ranks" in sizes.options else ()
    if not ranks and held + offset != sizes.world_size:
        raise InputError(
            "the axes {axes} hold {held} ranks, but there are {world}",
            axes=listed(f"{axis}={size}" for axis, size in axes.items()),
            held=held + offset,
            world=sizes.world_size,
        )
    kinds = [GroupKind(axis, (axis,)) for axis in axes] + _merged(sizes, axes)
    return of_mesh("custom", version, sizes.world_size, Mesh(axes, offset, ranks), tuple(kinds))


def _ranks(sizes: Sizes, held: int) -> tuple[int, ...]:
    """Returns the ranks that were named; raises InputError unless each place has one of its own."""
    if "rank_offset" in sizes.options:
        raise InputError("ranks and rank_offset both say where the mesh stands; give one of them")
    words = sizes.options["ranks"].replace(",", " ").split()
    wrong = next((word for word in words if not _is_rank(word, sizes.world_size)), None)
    if wrong is not None:
        raise InputError(
            "ranks has '{word}'; each is a whole number from 0 to {last}",
            word=wrong,
            last=sizes.world_size - 1,
        )
    ranks = tuple(map(int, words))
    if len(set(ranks)) != held or len(ranks) != held:
        raise InputError(
            "ranks names {named} ranks, and the axes hold {held}; name one rank for each place",
            named=len(set(ranks)),
            held=held,
        )
    return ranks


def _is_rank(word: str, world_size: int) -> bool:
    """Tells whether ``word`` is the number of a rank."""
    return word.isascii() and word.isdecimal() and len(word) < 19 and int(word) < world_size


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
        # "model=pp+tp" names a kind over two axes; "model=" asks for an axis without a name, and
        # fails.
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
