"""Which kinds of groups ``serried groups`` shows: those named, those of dimensions, or the main."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from serried.errors import InputError, listed
from serried.mesh import Layout
from serried.mesh.kind import GroupKind

MANY_KINDS = 8
"""A table of more kinds than this shows those of one dimension, unless --all is asked for."""

Options = Mapping[str, Any]


def kinds_of(layout: Layout, kinds: tuple[str, ...], dims: str | None) -> list[str]:
    """Returns the names of the kinds to show, refusing those that the layout lacks."""
    if kinds:
        return [layout.kind(name).name for name in kinds]
    if dims:
        named_dims = dims_of(layout, dims)
        # With cp named too, dp is taken with cp folded in where the framework has such groups.
        return [layout.kind_of(dim, with_cp="cp" in named_dims) for dim in named_dims]
    return [kind.name for kind in layout.kinds]


def main_kinds(layout: Layout) -> list[str]:
    """Returns the names of all kinds, or, of many, of those that stand for one dimension.

    Those of dimensions come first, in the order in which the workbench offers them; others follow
    in the order in which the framework makes them.

    >>> from serried.frameworks import layout
    >>> from serried.mesh.sizes import Sizes
    >>> main_kinds(layout("megatron", Sizes(world_size=16, tp=2)))
    ['dp', 'tp', 'pp', 'cp', 'ep']
    """
    of_dims = list(dict.fromkeys(layout.dims.values()))
    others = [
        kind.name
        for kind in layout.kinds
        if kind.name not in of_dims and (len(layout.kinds) <= MANY_KINDS or _is_axis(kind))
    ]
    return of_dims + others


def _is_axis(kind: GroupKind) -> bool:
    return len(kind.axes) == 1 and kind.mesh == "dense" and not (kind.rule or kind.twin_of)


def dims_of(layout: Layout, dims: str | None) -> list[str]:
    """Returns the dimensions asked for, or those the layout splits along (dp when none)."""
    if dims is None:
        return [dim for dim in layout.dims if layout.sizes.get(dim, 1) > 1] or ["dp"]
    # 'dp,tp' and 'dp+tp' ask the same.
    names = list(dict.fromkeys(dims.replace(",", "+").split("+")))
    for name in names:
        if name not in layout.dims:
            raise InputError(
                "--dims {dims} names '{name}', which {framework} does not have here; "
                "it has {known}, joined by '+'",
                dims=dims,
                name=name,
                framework=layout.framework,
                known=listed(layout.dims),
            )
    return names


def refuse_filters(options: Options) -> None:
    """Raises InputError for an option that picks groups of one layout, where several are tried."""
    for option, given in (("kind", options["kinds"]), ("dims", options["dims"])):
        if given:
            raise InputError(
                "--{option} needs one world size; --world-size has {count}",
                option=option,
                count=len(options["world_size"]),
            )
