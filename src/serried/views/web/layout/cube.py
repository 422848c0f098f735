"""The meshes of a layout as the map's logical cube shows them: axes, and what each is at first.

pp       rows        stages one below another
tp cp    columns     ranks of one model side by side
dp       blocks      replicas
"""

from __future__ import annotations

import math
from typing import Any

from serried.mesh import Layout, Mesh
from serried.views.web.wire.payload import Column

MOST_COLUMNS = 64
"""Ranks side by side beyond which a row would be thinner than it is legible."""


def cube_meshes(layout: Layout) -> list[dict[str, Any]]:
    """Returns each mesh that holds every rank once: its axes above 1, and their first roles.

    Meshes that number ranks as one before them does are left out.

    >>> from serried import frameworks
    >>> from serried.frameworks import Sizes
    >>> made = cube_meshes(frameworks.layout("megatron", Sizes(16, tp=2, pp=2)))
    >>> made[0]["axes"], made[0]["roles"]
    ({'pp': 2, 'dp': 4, 'tp': 2}, {'rows': ['pp'], 'columns': ['tp'], 'blocks': ['dp']})
    """
    told: list[dict[str, Any]] = []
    for name, mesh in _meshes(layout).items():
        axes = {axis: size for axis, size in mesh.sizes.items() if size > 1}
        if all(axes != each["axes"] for each in told):
            told.append({"name": name, "axes": axes, "roles": _roles(layout, axes)})
    return told


def cube_columns(layout: Layout) -> dict[str, Column]:
    """Returns each rank's place along each axis of each mesh in ``cube_meshes``."""
    meshes = _meshes(layout)
    columns: dict[str, Column] = {}
    for each in cube_meshes(layout):
        mesh = meshes[each["name"]]
        # Ranks of such a mesh are those of the world in order, so its places need no sorting.
        columns |= {f"mesh:{each['name']}:{axis}": _along(mesh, axis) for axis in each["axes"]}
    return columns


def _meshes(layout: Layout) -> dict[str, Mesh]:
    world = layout.world_size
    return {name: mesh for name, mesh in layout.meshes.items() if mesh.holds_world(world)}


def _along(mesh: Mesh, axis: str) -> Column:
    places: Column = mesh.along(axis).reshape(-1)
    return places


def _roles(layout: Layout, axes: dict[str, int]) -> dict[str, list[str]]:
    stages, replicas = (_axes_of(layout, dim) for dim in ("pp", "dp"))
    rows = [axis for axis in axes if axis in stages]
    columns = [axis for axis in axes if axis not in stages | replicas]
    while math.prod(axes[axis] for axis in columns) > MOST_COLUMNS:
        columns.pop(0)
    blocks = [axis for axis in axes if axis not in (*rows, *columns)]
    if not columns and blocks and axes[blocks[-1]] <= MOST_COLUMNS:
        columns = [blocks.pop()]
    return {"rows": rows, "columns": columns, "blocks": blocks}


def _axes_of(layout: Layout, dim: str) -> set[str]:
    """Returns the axes that the groups of a dimension run along, none without the dimension."""
    return set(layout.kind(layout.dims[dim]).axes) if dim in layout.dims else set()
