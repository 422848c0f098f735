"""Group kinds: axes counted in other orders, several modules, and groups that are listed."""

from __future__ import annotations

import pytest

from serried.mesh import FixedKind, GroupKind, Mesh, ModulesKind

MESH = Mesh({"pp": 2, "dp": 3, "tp": 2})
MESHES = {"dense": MESH, "encoder": Mesh({"dp": 2, "tp": 2}, offset=12)}


@pytest.mark.parametrize("by", [(), ("tp", "pp"), ("pp", "tp")])
@pytest.mark.parametrize("axes", [("dp",), ("dp", "tp"), ()])
def test_one_ranks_groups_follow_the_order_of_the_kind(
    axes: tuple[str, ...], by: tuple[str, ...]
) -> None:
    by = tuple(axis for axis in by if axis not in axes)
    by = by if len(by) == len(MESH.axes) - len(axes) else ()
    kind = GroupKind("some", axes, by=by, within=axes[::-1])
    groups = kind.groups(MESH)
    for rank in range(12):
        assert kind.of(rank, MESHES) == [groups[g].tolist() for g in groups.containing(rank)]


def test_groups_can_be_counted_along_other_axes_first() -> None:
    kind = GroupKind("dp", ("dp",), by=("tp", "pp"))
    assert kind.groups(MESH).lists() == [[0, 2, 4], [6, 8, 10], [1, 3, 5], [7, 9, 11]]


def test_members_can_be_counted_along_other_axes_first() -> None:
    kind = GroupKind("pp_tp", ("pp", "tp"), within=("tp", "pp"))
    assert kind.groups(MESH).lists()[0] == [0, 6, 1, 7]


def test_a_rank_outside_the_mesh_has_no_groups() -> None:
    assert GroupKind("tp", ("tp",), "encoder").of(3, MESHES) == []


def test_the_groups_of_modules_stand_end_to_end() -> None:
    parts = (GroupKind("tp", ("tp",), "encoder"), GroupKind("tp", ("tp",)))
    kind = ModulesKind("tp", ("tp",), parts=parts)
    assert kind.over(MESHES).lists()[:3] == [[12, 13], [14, 15], [0, 1]]
    assert kind.of(14, MESHES) == [[14, 15]]
    assert kind.of(1, MESHES) == [[0, 1]]


def test_listed_groups_are_as_they_are_listed() -> None:
    kind = FixedKind("host", (), lists=((0, 5), (5, 6)))
    assert kind.over(MESHES).lists() == [[0, 5], [5, 6]]
    assert kind.of(5, MESHES) == [[0, 5], [5, 6]]
    assert kind.of(1, MESHES) == []
