"""Worlds tried one after another, with the data, model, tensor and pipeline groups of each."""

from __future__ import annotations

import pytest

from serried.frameworks import FRAMEWORKS, Sizes, layout
from serried.mesh import Layout
from serried.mesh.sweep import four_lists, model_groups, tried


def lay(world_size: int) -> Layout:
    return layout("megatron", Sizes(world_size, tp=8, pp=8))


def test_a_world_that_cannot_be_names_its_neighbours_that_can() -> None:
    worlds = {each.world_size: each for each in tried([96, 128, 12], lay, step=64)}
    assert worlds[128].layout is not None
    assert worlds[96].fits == (64, 128)
    assert worlds[12].fits == (64,)
    assert "pp=8 does not divide the 12 ranks that tp=8 leave of 96" in str(worlds[96].refusal)


@pytest.mark.parametrize("name", ["megatron", "internlm", "deepspeed", "nanotron", "paddle"])
def test_a_model_is_all_ranks_along_tensor_and_pipeline(name: str) -> None:
    made = layout(name, Sizes(16, tp=2, pp=4))
    groups = model_groups(made)
    assert (len(groups), set(groups.sizes.tolist())) == (2, {8})


@pytest.mark.parametrize("name", sorted(FRAMEWORKS))
def test_each_list_holds_every_rank(name: str) -> None:
    size = {"accelerate": 1}.get(name, 4)
    made = layout(name, Sizes(size))
    for groups in four_lists(made).values():
        assert sorted(groups.members.tolist()) == list(range(size))
