"""Meshes laid over the same ranks: every axis has the groups that it has in its own mesh."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from serried import frameworks
from serried.launch.facts.device_mesh import filled, laid_over
from serried.mesh.sizes import Sizes

FACTORS = st.lists(st.sampled_from([2, 3]), min_size=1, max_size=5)


def cut(factors: list[int], cuts: list[bool], name: str) -> dict[str, int]:
    """Returns a mesh whose axes are runs of ``factors``, slowest first."""
    axes: list[int] = []
    for factor, begins in zip(factors, cuts, strict=False):
        if begins or not axes:
            axes.append(1)
        axes[-1] *= factor
    return {f"{name}{i}": size for i, size in enumerate(axes)}


def rows(axes: dict[str, int], axis: str) -> list[list[int]]:
    ranks = np.arange(np.prod(list(axes.values()))).reshape(tuple(axes.values()))
    moved = np.moveaxis(ranks, list(axes).index(axis), -1)
    return sorted(map(list, moved.reshape(-1, axes[axis]).tolist()))


@given(FACTORS, st.lists(st.booleans(), min_size=5), st.lists(st.booleans(), min_size=5))
def test_each_axis_keeps_its_groups(
    factors: list[int], first: list[bool], second: list[bool]
) -> None:
    meshes = [cut(factors, first, "a"), cut(factors, second, "b")]
    sizes = laid_over(Sizes(int(np.prod(factors))), meshes)
    layout = frameworks.layout("devicemesh", sizes)
    for axes in meshes:
        for axis in axes:
            assert sorted(map(sorted, layout.groups(axis).lists())) == rows(axes, axis)


def test_one_rank_is_a_mesh_too() -> None:
    sizes = laid_over(Sizes(1), [{"dp": 1, "tp": 1}])
    assert frameworks.layout("devicemesh", sizes).world_size == 1


def test_what_is_left_open_is_filled() -> None:
    assert filled({"a": 2, "b": -1, "c": 2}, 16) == {"a": 2, "b": 4, "c": 2}
