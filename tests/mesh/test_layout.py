"""A Layout answers by kind, by dimension and by rank."""

from __future__ import annotations

import pytest

from serried.errors import InputError
from serried.frameworks import Sizes, layout
from serried.mesh import Placement
from serried.mesh.rank import place_of


def test_a_kind_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(
        InputError,
        match="internlm makes no group kind 'tp' here; it makes global, data, model, tensor",
    ):
        layout("internlm", Sizes(8, tp=2)).groups("tp")


def test_the_data_kind_folds_in_context_parallelism_when_asked() -> None:
    made = layout("megatron", Sizes(16, tp=2, cp=2))
    assert made.kind_of("dp") == "dp"
    assert made.kind_of("dp", with_cp=True) == "dp_cp"


def test_a_dimension_that_the_framework_lacks_is_refused() -> None:
    with pytest.raises(InputError, match="internlm has no cp groups; its dimensions are dp, tp"):
        layout("internlm", Sizes(8, tp=2)).kind_of("cp")


def test_a_twin_has_the_very_groups_of_its_kind() -> None:
    made = layout("megatron", Sizes(16, tp=2))
    assert made.groups("dp_gloo") is made.groups("dp")


def test_a_rank_is_told_every_group_it_is_in_and_the_kinds_it_is_not_in() -> None:
    found = layout("megatron", Sizes(16, tp=2, pp=4)).groups_of(5)
    assert found["tp"] == [[4, 5]]
    assert found["pp"] == [[1, 5, 9, 13]]
    assert found["embd"] == []


def test_a_rank_knows_its_neighbours_in_the_pipeline() -> None:
    made = layout("megatron", Sizes(16, tp=2, pp=4))
    middle = place_of(made, Placement(16), 5)
    assert (middle.stage, middle.previous, middle.next) == (1, 1, 9)
    assert place_of(made, Placement(16), 1).previous is None
    assert place_of(made, Placement(16), 13).next is None


def test_without_a_pipeline_a_rank_has_no_neighbours() -> None:
    place = place_of(layout("internlm", Sizes(8, tp=2)), Placement(8), 3)
    assert (place.stage, place.previous, place.next) == (0, None, None)


def test_a_twin_is_told_to_a_rank_as_its_kind_is() -> None:
    found = layout("megatron", Sizes(16, tp=2)).groups_of(3)
    assert found["dp_gloo"] == found["dp"] == [[1, 3, 5, 7, 9, 11, 13, 15]]


def test_a_rank_outside_every_mesh_has_no_coordinates_and_no_groups() -> None:
    made = layout("devicemesh", Sizes(16, options={"mesh_shape": "2,4"}))
    assert made.coordinates(3) == {"dim_0": 0, "dim_1": 3}
    assert made.coordinates(12) == {}
    assert made.groups_of(12) == {"dim_0": [], "dim_1": []}


@pytest.mark.parametrize("rank", [-1, 16])
def test_a_rank_outside_the_world_is_refused(rank: int) -> None:
    with pytest.raises(InputError, match=f"rank {rank} is outside the world; ranks run from 0"):
        layout("megatron", Sizes(16)).groups_of(rank)
