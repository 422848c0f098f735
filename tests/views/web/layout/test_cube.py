"""The axes of the map's cube: each rank at its place along each, whatever the framework."""

from __future__ import annotations

import math

import pytest

from serried import frameworks
from serried.errors import InputError
from serried.frameworks import Sizes
from serried.views.web.layout.cube import cube_columns, cube_meshes


@pytest.mark.parametrize("name", list(frameworks.FRAMEWORKS))
def test_places_along_a_mesh_tell_every_rank_apart(name: str) -> None:
    framework = frameworks.find(name)
    for sizes in (Sizes(32, tp=2, pp=2, ep=2), Sizes(32, tp=2, pp=2), Sizes(32, tp=2), Sizes(32)):
        try:
            layout = framework.layout(sizes)
            break
        except InputError:
            continue
    columns = cube_columns(layout)
    for mesh in cube_meshes(layout):
        assert math.prod(mesh["axes"].values()) == 32
        along = [columns[f"mesh:{mesh['name']}:{axis}"] for axis in mesh["axes"]]
        assert len(set(zip(*(each.tolist() for each in along), strict=True))) == 32
        roles = mesh["roles"]
        assert sorted(axis for axes in roles.values() for axis in axes) == sorted(mesh["axes"])


def test_stages_are_rows_ranks_of_a_model_columns_and_replicas_blocks() -> None:
    layout = frameworks.layout("megatron", Sizes(64, tp=4, cp=2, pp=4))
    mesh = cube_meshes(layout)[0]
    assert mesh["roles"] == {"rows": ["pp"], "columns": ["cp", "tp"], "blocks": ["dp"]}


def test_the_expert_mesh_is_offered_where_it_numbers_ranks_otherwise() -> None:
    layout = frameworks.layout("megatron", Sizes(32, tp=2, pp=2, ep=4))
    assert [each["name"] for each in cube_meshes(layout)] == ["dense", "expert"]
