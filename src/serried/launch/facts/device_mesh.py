"""Several device meshes over the same ranks, as the one mesh that holds the axes of all.

verl divides 16 ranks twice, for weights and for sequences; the cuts of both make one mesh:

    ddp 2 x fsdp 8        0 ……… 7 | 8 ……… 15          ddp 2 · fsdp_0 4 · sp 2
    dp 8 x sp 2           0 1|2 3|4 5|6 7| …          fsdp = fsdp_0 x sp, dp = ddp x fsdp_0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod

from serried.errors import InputError
from serried.mesh.sizes import Sizes

Axes = Mapping[str, int]
"""The axes of a mesh over all ranks, slowest first."""


def filled(axes: Axes, ranks: int) -> dict[str, int]:
    """Returns sizes with -1 as what the others leave; raises InputError where none fits.

    >>> filled({"data": -1, "fsdp": 4}, 8)
    {'data': 2, 'fsdp': 4}
    """
    known = prod(size for size in axes.values() if size != -1)
    free = [axis for axis, size in axes.items() if size == -1]
    if len(free) > 1 or known < 1 or ranks % known or (not free and known != ranks):
        raise InputError(
            "the sizes {sizes} do not make {ranks} ranks; their product must be that, and one of "
            "them may be -1",
            sizes=" x ".join(f"{axis}={size}" for axis, size in axes.items() if size != 1) or "1",
            ranks=ranks,
        )
    return {axis: ranks // known if size == -1 else size for axis, size in axes.items()}


def laid_over(sizes: Sizes, meshes: Sequence[Axes]) -> Sizes:
    """Returns ``sizes`` with the settings of ``devicemesh`` that ask for all ``meshes`` at once.

    Raises InputError where an axis of one mesh would be cut in the middle of another's.

    >>> both = laid_over(Sizes(16), [{"ddp": 2, "fsdp": 8}, {"dp": 8, "sp": 2}])
    >>> both.options["mesh_dim_names"], both.options["mesh_shape"], both.options["flatten"]
    ('ddp,fsdp_0,sp', '2,4,2', 'fsdp=fsdp_0+sp;dp=ddp+fsdp_0')
    """
    steps = _steps(sizes.world_size, meshes)
    cells = list(pairwise(steps)) or [(1, 1)]
    spans = {name: span for axes in meshes for name, span in _spans(axes).items()}
    # A cell that is an axis of some mesh has its name, the others that of the axis they are in.
    whole = {span: name for name, span in reversed(spans.items())}
    names = [whole.get(cell) or _part(cell, spans, steps) for cell in cells]
    if len(steps) == 1:
        # One rank is in every axis; it is called by that of data.
        names = [next((name for axes in meshes for name in axes if name == "dp"), "rank")]
    merged = {
        name: [each for each, cell in zip(names, cells, strict=True) if _is_in(cell, span)]
        for name, span in spans.items()
        if name not in names
    }
    options = {
        "mesh_shape": ",".join(str(high // low) for high, low in cells),
        "mesh_dim_names": ",".join(names),
        "flatten": ";".join(f"{name}={'+'.join(over)}" for name, over in merged.items() if over),
    }
    kept = {name: text for name, text in options.items() if text}
    return replace(sizes, tp=1, cp=1, pp=1, ep=1, etp=None, options={**sizes.options, **kept})


def _spans(axes: Axes) -> dict[str, tuple[int, int]]:
    """Returns each axis as the steps of ranks that it lies between: fsdp 8 of ddp 2 is (8, 1)."""
    spans: dict[str, tuple[int, int]] = {}
    low = 1
    for name, size in reversed(list(axes.items())):
        spans[name] = (low * size, low)
        low *= size
    return {name: span for name, span in spans.items() if span[0] > span[1]}


def _steps(world_size: int, meshes: Sequence[Axes]) -> list[int]:
    """Returns every step at which an axis of some mesh begins or ends, widest first."""
    cuts = {1, world_size}
    for axes in meshes:
        for span in _spans(axes).values():
            cuts |= {*span}
    steps = sorted(cuts, reverse=True)
    for high, low in pairwise(steps):
        if high % low:
            shown = "; ".join(
                " x ".join(f"{name}={size}" for name, size in axes.items()) for axes in meshes
            )
            raise InputError(
                "{world} ranks cannot be divided as {meshes} at once: {low} does not divide {high}",
                world=world_size,
                meshes=shown,
                low=low,
                high=high,
            )
    return steps


def _part(cell: tuple[int, int], spans: Mapping[str, tuple[int, int]], steps: list[int]) -> str:
    """Returns a name for a part of an axis: that of the axis, and its number from the slowest."""
    inside = ((name, span) for name, span in spans.items() if _is_in(cell, span))
    name, (high, _) = next(inside, ("rank", (steps[0], 1)))
    return f"{name}_{steps.index(cell[0]) - steps.index(high)}"


def _is_in(cell: tuple[int, int], span: tuple[int, int]) -> bool:
    return span[0] >= cell[0] and cell[1] >= span[1]
