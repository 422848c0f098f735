"""PyTorch's DeviceMesh: any named axes, the last one fastest, and axes made of them.

Read from torch 2.13.0, torch/distributed/device_mesh.py (init_device_mesh).
A mesh may hold fewer ranks than the world; an axis as long as the world reuses its group.

    mesh_shape 2,8   mesh_dim_names a,b      a [0 8] [1 9] …      b [0 … 7] [8 … 15]

Axes may be split and merged (DeviceMesh._unflatten, _flatten, _concatenate). Splits come first,
one after the other; what was split stays a kind of its own:

    unflatten    world=pp:2+tp:4     pp [0 4] [1 5] …    tp [0 1 2 3] [4 5 6 7]    world [0 … 7]
    flatten      pp_tp=pp+tp         in mesh order: [0 … 7]
    concatenate  tp_pp=tp+pp         in any order:  [0 4 1 5 2 6 3 7]
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from serried.errors import InputError, listed
from serried.finding import said
from serried.frameworks.framework import (
    Framework,
    refuse_foreign_sizes,
    refuse_unknown_options,
    split_world,
)
from serried.mesh import FixedKind, GroupKind, Layout, Mesh
from serried.mesh.sizes import Sizes

DERIVED_OPTIONS = {
    "unflatten": "an axis split in several, such as world=pp:2+tp:4; several by ';'",
    "flatten": "axes merged into one, such as dp_cp=dp+cp; several by ';'",
    "concatenate": "axes merged in an order of their own, such as tp_dp=tp+dp; several by ';'",
}
OPTIONS = {
    "mesh_shape": "sizes of the axes, slowest first, such as 2,8",
    "mesh_dim_names": "names of the axes, such as dp,tp (default dim_0, dim_1 …)",
    "mesh": "the ranks themselves as nested lists, such as [[0,2],[1,3]]",
} | DERIVED_OPTIONS
DIMS = ("dp", "tp", "pp", "cp", "ep")


def layout(sizes: Sizes, version: str) -> Layout:
    """Returns the groups of a DeviceMesh; raises InputError wherever torch would refuse."""
    refuse_unknown_options(sizes, "devicemesh", OPTIONS)
    shape, explicit = _shape(sizes)
    axes = dict(zip(_names(sizes, len(shape or ())), shape, strict=True)) if shape else None
    if axes is None:
        axes = _neutral(sizes)
    else:
        refuse_foreign_sizes(sizes, said("devicemesh with mesh_shape"), ("dp",))
    held = math.prod(axes.values())
    # A mesh may be smaller than the world: the ranks beyond it are in no group.
    if held > sizes.world_size:
        raise InputError(
            "a mesh of {shape} holds {held} ranks, more than the world of {world}",
            shape=" x ".join(map(str, axes.values())),
            held=held,
            world=sizes.world_size,
        )
    _check_explicit(explicit, sizes.world_size)
    _check_named(sizes)
    made = derived(sizes, axes)
    mesh = Mesh(made.axes, explicit=explicit)
    kinds = [
        _kind(name, over, mesh, sizes.world_size, is_turned=name in made.turned)
        for name, over in made.kinds.items()
    ]
    return of_mesh("devicemesh", version, sizes.world_size, mesh, tuple(kinds))


def _check_named(sizes: Sizes) -> None:
    """Raises InputError for axes to be merged or split by name on a mesh without names."""
    wanted = next((option for option in DERIVED_OPTIONS if sizes.options.get(option)), None)
    is_bare = {"mesh", "mesh_shape"} & {*sizes.options} and "mesh_dim_names" not in sizes.options
    if wanted and is_bare:
        raise InputError("{option} needs names of the axes; give mesh_dim_names too", option=wanted)


def of_mesh(
    framework: str,
    version: str,
    world_size: int,
    mesh: Mesh,
    kinds: tuple[GroupKind, ...],
    dims: Mapping[str, str] | None = None,
) -> Layout:
    """Returns the layout of one mesh whose kinds are named as its axes are."""
    names = {kind.name for kind in kinds}
    carried = dims if dims is not None else {dim: dim for dim in DIMS}
    carried = {dim: kind for dim, kind in carried.items() if kind in names}
    sizes = dict(mesh.sizes)
    # A dimension without an axis of its name is as long as what its kind runs along: Accelerate's
    # dp is dp_replicate x dp_shard.
    for dim, kind in carried.items():
        axes = next(made.axes for made in kinds if made.name == kind)
        sizes.setdefault(dim, math.prod(mesh.sizes[axis] for axis in axes))
    return Layout(
        framework=framework,
        version=version,
        world_size=world_size,
        sizes=sizes,
        order=",".join(mesh.axes),
        meshes={"dense": mesh},
        kinds=kinds,
        dims=carried,
    )


def _kind(
    name: str, axes: tuple[str, ...], mesh: Mesh, world_size: int, *, is_turned: bool
) -> GroupKind:
    """Returns a kind along ``axes``; one as long as the world is the default group itself."""
    about = "" if name in axes else " x ".join(axes)
    size = math.prod(mesh.sizes[axis] for axis in axes)
    if mesh.explicit and size == world_size:
        return FixedKind(name, axes, about=about, lists=(tuple(range(world_size)),))
    within = axes if is_turned and size < world_size else ()
    return GroupKind(name, axes, about=about, within=within)


def _shape(sizes: Sizes) -> tuple[tuple[int, ...] | None, tuple[int, ...]]:
    """Returns the shape asked for, None without one, and the ranks if they are listed."""
    if "mesh" in sizes.options:
        return _nested(sizes.options["mesh"])
    if "mesh_shape" not in sizes.options:
        return None, ()
    text = sizes.options["mesh_shape"]
    # A shape is read as people write one: "2,8", "(2, 8)", "[2 8]" or "2x8".
    words = text.strip("()[] ").replace("x", ",").replace(" ", ",").split(",")
    words = [word for word in words if word]
    if not words or not all(word.isdecimal() and int(word) for word in words):
        raise InputError("mesh_shape={text} is not a shape; one reads 2,8", text=text)
    return tuple(map(int, words)), ()


def _nested(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the shape and the ranks of nested lists; raises InputError for ragged ones."""
    try:
        level = json.loads(text)
    except ValueError:
        level = None
    # One level of nesting is taken off at a time; ``shape`` holds the length of each, of which all
    # lists of a level must have the same.
    shape: list[int] = []
    while isinstance(level, list) and level:
        shape.append(len(level))
        if not isinstance(level[0], list):
            break
        if any(not isinstance(row, list) or len(row) != len(level[0]) for row in level):
            level = None
            break
        level = [item for row in level for item in row]
        shape[-1] = shape[-1] // math.prod(shape[:-1])
    if not isinstance(level, list) or not all(isinstance(rank, int) for rank in level):
        raise InputError("mesh={text} is not a mesh; one reads [[0,2],[1,3]]", text=text)
    shape[-1] = len(level) // math.prod(shape[:-1])
    return tuple(shape), tuple(level)


def _check_explicit(ranks: Sequence[int], world_size: int) -> None:
    if len(set(ranks)) < len(ranks):
        raise InputError("a mesh names a rank twice; each rank stands once in it")
    outside = [rank for rank in ranks if not 0 <= rank < world_size]
    if outside:
        raise InputError(
            "a mesh names rank {rank}, outside the world; ranks run from 0 to {last}",
            rank=outside[0],
            last=world_size - 1,
        )


def _names(sizes: Sizes, count: int) -> list[str]:
    text = sizes.options.get("mesh_dim_names")
    # torch needs no names; dim_0, dim_1 … stand in for them.
    names = [f"dim_{i}" for i in range(count)]
    if text is not None:
        names = [word for word in text.strip("()[] ").replace(" ", ",").split(",") if word]
    if len(names) != count:
        raise InputError(
            "mesh_dim_names gives {named} names for {count} axes; give one name each",
            named=len(names),
            count=count,
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise InputError("mesh_dim_names gives '{name}' twice; names are unique", name=twice)
    return names


def _neutral(sizes: Sizes) -> dict[str, int]:
    """Returns the axes of --pp --dp --cp --tp that are longer than one, in that order."""
    refuse_foreign_sizes(sizes, "devicemesh", ("tp", "pp", "cp", "dp"))
    factors = {"tp": sizes.tp, "cp": sizes.cp, "pp": sizes.pp}
    dp = split_world(sizes.world_size, factors, sizes.dp)
    axes = {"pp": sizes.pp, "dp": dp, "cp": sizes.cp, "tp": sizes.tp}
    # An order may be written either way, pp,dp,cp,tp or pp-dp-cp-tp, slowest first.
    names = (sizes.order or "pp,dp,cp,tp").replace("-", ",").split(",")
    if sorted(names) != sorted(axes):
        raise InputError(
            "order '{order}' does not name each of {axes} once",
            order=sizes.order,
            axes=listed(axes),
        )
    return {name: axes[name] for name in names if axes[name] > 1} or {"dp": dp}


# ----------------------------------------------------------------------- axes split and merged


Axes = Mapping[str, int]
# One part of a split axis: dp_shard:4 in unflatten=dp=dp_replicate:2+dp_shard:4.
PART = re.compile(r"^([^:=+]+):(\d+)$")


@dataclass(frozen=True)
class Derived:
    """Holds the axes after all splits, and every kind as the axes that it runs along.

    ``turned`` are the kinds whose members run in the order in which their axes are named.
    """

    axes: dict[str, int]
    kinds: dict[str, tuple[str, ...]]
    turned: frozenset[str]


def derived(sizes: Sizes, axes: Axes) -> Derived:
    """Returns what the settings make of ``axes``; raises InputError where torch would refuse."""
    # A split axis leaves the mesh but stays a kind, along its parts; so kinds are kept as the axes
    # they run along, and every split is put into those as well.
    found = dict(axes)
    kinds: dict[str, tuple[str, ...]] = {axis: (axis,) for axis in axes}
    for name, words in _entries(sizes, "unflatten"):
        parts = _parts(name, words, found)
        found = dict(_spliced(found, name, parts))
        kinds = {kind: _within(over, name, parts) for kind, over in kinds.items()}
        kinds |= {part: (part,) for part in parts}
    turned = set()
    for option in ("flatten", "concatenate"):
        for name, words in _entries(sizes, option):
            over = _merged(option, words, found)
            _check_name(name or "_".join(over), over, kinds)
            kinds[name or "_".join(over)] = over
            if option == "concatenate":
                turned.add(name or "_".join(over))
    return Derived(found, kinds, frozenset(turned))


def _spliced(axes: Axes, name: str, parts: Axes) -> Iterator[tuple[str, int]]:
    """Yields the axes with ``parts`` in the place of ``name``."""
    for axis, size in axes.items():
        yield from parts.items() if axis == name else ((axis, size),)


def _within(over: tuple[str, ...], name: str, parts: Axes) -> tuple[str, ...]:
    """Returns what a kind runs along with ``parts`` in the place of ``name``."""
    return tuple(part for axis in over for part in (parts if axis == name else (axis,)))


def _entries(sizes: Sizes, option: str) -> Iterator[tuple[str, list[str]]]:
    # "dp_cp=dp+cp;pp+tp" holds two entries, of which only the first names what it makes.
    for text in filter(None, sizes.options.get(option, "").split(";")):
        name, _, joined = text.rpartition("=")
        yield name.strip(), [word.strip() for word in joined.replace(",", "+").split("+")]


def _parts(name: str, words: list[str], axes: Axes) -> dict[str, int]:
    """Returns the axes that ``name`` is split into, slowest first."""
    _check_axis("unflatten", name, axes)
    found = [PART.match(word) for word in words]
    parts = {match[1]: int(match[2]) for match in found if match}
    # There are fewer parts than words where one does not read NAME:SIZE or two have the same name.
    if len(parts) < len(words):
        raise InputError(
            "unflatten splits {axis} into '{text}'; a split reads NAME:SIZE+NAME:SIZE, each name "
            "once",
            axis=name,
            text="+".join(words),
        )
    if math.prod(parts.values()) != axes[name]:
        raise InputError(
            "unflatten splits {axis}={size} into sizes that multiply to {product}; "
            "they multiply to {size}",
            axis=name,
            size=axes[name],
            product=math.prod(parts.values()),
        )
    return parts


def _merged(option: str, words: list[str], axes: Axes) -> tuple[str, ...]:
    for word in words:
        _check_axis(option, word, axes)
    # An axis of one rank may stand anywhere: the ranks come out in the same order.
    places = [list(axes).index(word) for word in words if axes[word] > 1]
    if len(set(words)) < len(words) or (option == "flatten" and sorted(places) != places):
        raise InputError(
            "flatten takes axes in mesh order, each once: {axes}; concatenate takes any order",
            axes=listed(axes),
        )
    return tuple(words)


def _check_axis(option: str, axis: str, axes: Axes) -> None:
    if axis not in axes:
        raise InputError(
            "{option} names '{axis}', which the mesh does not have; its axes are {axes}",
            option=option,
            axis=axis,
            axes=listed(axes),
        )


def _check_name(name: str, over: tuple[str, ...], kinds: Mapping[str, tuple[str, ...]]) -> None:
    if kinds.get(name, over) != over:
        raise InputError(
            "'{name}' is already what {axes} make; give the merged axes another name",
            name=name,
            axes="+".join(kinds[name]),
        )


DEVICEMESH = Framework(
    name="devicemesh",
    title="PyTorch DeviceMesh",
    version="2.13.0",
    source="torch torch/distributed/device_mesh.py",
    dims=("dp", "tp", "pp", "cp", "ep"),
    options=OPTIONS,
    default_order="pp,dp,cp,tp",
    orders=("pp,dp,cp,tp",),
    make=layout,
    versions=("2.2.0", "2.13.0"),
)
