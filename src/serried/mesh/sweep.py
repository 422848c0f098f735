"""Worlds tried one after another: what each gives, or why it cannot be and which nearby can."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from serried.errors import InputError
from serried.mesh.groups import Groups
from serried.mesh.layout import Layout

Lay = Callable[[int], Layout]
"""Makes the layout of a world size, or raises InputError."""


@dataclass(frozen=True)
class Tried:
    """Holds one world size and its layout, or the refusal and nearby sizes that would do."""

    world_size: int
    layout: Layout | None = None
    refusal: InputError | None = None
    fits: tuple[int, ...] = ()


def tried(world_sizes: Sequence[int], lay: Lay, *, step: int) -> list[Tried]:
    """Returns what each world size gives.

    ``step`` is what the other sizes multiply to: worlds that do are multiples of it.
    """
    return [_tried(world_size, lay, step) for world_size in world_sizes]


def _tried(world_size: int, lay: Lay, step: int) -> Tried:
    try:
        return Tried(world_size, lay(world_size))
    except InputError as error:
        near = _near(world_size, step)
        return Tried(world_size, refusal=error, fits=tuple(n for n in near if _fits(n, lay)))


def _near(world_size: int, step: int) -> list[int]:
    """Returns the multiples of ``step`` next below and above a world that cannot be.

    >>> _near(96, 64), _near(12, 64), _near(128, 64)
    ([64, 128], [64], [64, 192])
    """
    below, rest = divmod(world_size, step)
    near = [below if rest else below - 1, below + 1]
    return [each * step for each in near if each > 0]


def _fits(world_size: int, lay: Lay) -> bool:
    try:
        lay(world_size)
    except InputError:
        return False
    return True


def four_lists(layout: Layout) -> dict[str, Groups]:
    """Returns the data, model, tensor and pipeline groups, each rank alone where not split.

    ``model`` holds one copy of the model: all ranks along tensor and pipeline.
    """
    return {
        "dp": _of(layout, "dp"),
        "model": model_groups(layout),
        "tp": _of(layout, "tp"),
        "pp": _of(layout, "pp"),
    }


def _of(layout: Layout, dim: str) -> Groups:
    return layout.groups(layout.dims[dim]) if dim in layout.dims else _each_alone(layout)


def model_groups(layout: Layout) -> Groups:
    """Returns the groups along tensor and pipeline together.

    The framework's own kind is taken where it makes one, so that its order stays.
    """
    # Where tp and pp lie on one mesh without rules, the groups over both sets of axes are what is
    # asked for, in the framework's own order if it makes that kind. Else there is no such table,
    # and the groups along the last of the two must do.
    parts = [layout.kind(layout.dims[dim]) for dim in ("tp", "pp") if dim in layout.dims]
    if not parts:
        return _each_alone(layout)
    meshes = {part.mesh for part in parts}
    axes = {axis for part in parts for axis in part.axes}
    if len(meshes) > 1 or any(part.rule for part in parts):
        return layout.groups(parts[-1].name)
    for kind in layout.kinds:
        if {kind.mesh} == meshes and set(kind.axes) == axes and not kind.rule:
            return layout.groups(kind.name)
    return Groups.even(layout.meshes[parts[0].mesh].groups(*axes))


def _each_alone(layout: Layout) -> Groups:
    return Groups.even(np.arange(layout.world_size, dtype=np.int32).reshape(-1, 1))
