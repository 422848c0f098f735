"""A Mesh: axis groups partition its ranks, and coordinates lead back to the rank."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.errors import InputError
from serried.mesh import Mesh

NAMES = ("pp", "dp", "cp", "tp", "ep")


@st.composite
def meshes(draw: st.DrawFn) -> Mesh:
    names = draw(st.permutations(NAMES))[: draw(st.integers(1, len(NAMES)))]
    sizes = {name: draw(st.integers(1, 5)) for name in names}
    return Mesh(sizes, offset=draw(st.integers(0, 40)))


@st.composite
def meshes_with_axes(draw: st.DrawFn) -> tuple[Mesh, tuple[str, ...]]:
    mesh = draw(meshes())
    return mesh, tuple(draw(st.lists(st.sampled_from(mesh.axes), unique=True)))


def test_the_picture_of_the_docstring_is_right() -> None:
    mesh = Mesh({"pp": 2, "dp": 2, "tp": 2})
    assert mesh.groups("tp").tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert mesh.groups("dp").tolist() == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert mesh.groups("pp").tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert mesh.groups("dp", "tp").tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


@given(meshes_with_axes())
def test_the_groups_along_any_axes_hold_every_rank_once(case: tuple[Mesh, tuple[str, ...]]) -> None:
    mesh, axes = case
    table = mesh.groups(*axes)
    assert table.shape[1] == math.prod(mesh.sizes[axis] for axis in axes)
    assert sorted(table.reshape(-1)) == list(range(mesh.offset, mesh.offset + mesh.num_ranks))


@given(meshes_with_axes())
def test_ranks_share_a_group_just_when_their_other_coordinates_agree(
    case: tuple[Mesh, tuple[str, ...]],
) -> None:
    mesh, axes = case
    rest = [axis for axis in mesh.axes if axis not in axes]
    for row in mesh.groups(*axes):
        fixed = {tuple(mesh.coordinates(int(rank))[axis] for axis in rest) for rank in row}
        assert len(fixed) == 1


@given(meshes_with_axes())
def test_members_ascend_and_groups_stand_by_their_first_member(
    case: tuple[Mesh, tuple[str, ...]],
) -> None:
    table = case[0].groups(*case[1])
    assert (np.diff(table, axis=1) > 0).all()
    assert (np.diff(table[:, 0]) > 0).all()


@given(meshes(), st.data())
def test_a_ranks_coordinates_lead_back_to_it(mesh: Mesh, data: st.DataObject) -> None:
    rank = data.draw(st.integers(mesh.offset, mesh.offset + mesh.num_ranks - 1))
    assert mesh.rank(**mesh.coordinates(rank)) == rank


@given(meshes())
def test_coordinates_along_an_axis_agree_with_those_of_each_rank(mesh: Mesh) -> None:
    for axis in mesh.axes:
        along = mesh.along(axis).tolist()
        ranks = range(mesh.offset, mesh.offset + mesh.num_ranks)
        assert along == [mesh.coordinates(rank)[axis] for rank in ranks]


@given(meshes_with_axes(), st.data())
def test_a_row_is_found_and_made_without_the_others(
    case: tuple[Mesh, tuple[str, ...]], data: st.DataObject
) -> None:
    mesh, axes = case
    dropped = tuple(axis for axis in mesh.axes if axis not in axes)
    by = tuple(data.draw(st.permutations(dropped)))
    within = tuple(data.draw(st.permutations(axes)))
    table = mesh.groups(*axes, by=by, within=within)
    numbers = range(len(table) // 3, len(table))
    rows = mesh.rows(numbers, *axes, by=by, within=within)
    assert rows.tolist() == table[numbers.start :].tolist()
    rank = data.draw(st.integers(mesh.offset, mesh.offset + mesh.num_ranks - 1))
    assert rank in table[mesh.row(rank, *axes, by=by)]


def test_a_mesh_may_name_its_ranks() -> None:
    mesh = Mesh({"dp": 2, "tp": 2}, explicit=(7, 1, 4, 2))
    assert mesh.groups("tp").tolist() == [[7, 1], [4, 2]]
    assert mesh.groups("dp").tolist() == [[7, 4], [1, 2]]
    assert mesh.rows(range(1, 2), "dp").tolist() == [[1, 2]]
    assert mesh.coordinates(4) == {"dp": 1, "tp": 0}
    assert mesh.rank(dp=1, tp=1) == 2
    assert [rank for rank in range(9) if rank in mesh] == [1, 2, 4, 7]


def test_coordinates_left_out_count_as_zero() -> None:
    assert Mesh({"pp": 2, "tp": 4}).rank(pp=1) == 4


@pytest.mark.parametrize("rank", [-1, 8])
def test_a_rank_outside_the_mesh_is_refused(rank: int) -> None:
    with pytest.raises(
        InputError, match=f"rank {rank} is outside the world; ranks run from 0 to 7"
    ):
        Mesh({"tp": 8}).coordinates(rank)


def test_an_axis_the_mesh_lacks_is_refused() -> None:
    with pytest.raises(InputError, match="this mesh has no axis 'cp'; its axes are pp, tp"):
        Mesh({"pp": 2, "tp": 2}).groups("cp")


@pytest.mark.parametrize("size", [0, -2])
def test_a_size_below_one_is_refused(size: int) -> None:
    with pytest.raises(InputError, match=f"tp={size}; a size is at least 1"):
        Mesh({"tp": size})
