"""NeMo Automodel: two meshes, of dense layers and of experts, as its own code makes them."""

from __future__ import annotations

import pytest

from tests.launch.formats.asking import groups, open_of, refusal, settled, told

YAML = """
recipe: TrainFinetuneRecipeForNextTokenPrediction
step_scheduler:
  global_batch_size: 64
model:
  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained
distributed:
  strategy: fsdp2
"""


def given(**sizes: object) -> str:
    return YAML + "".join(f"  {name}: {size}\n" for name, size in sizes.items())


def test_data_times_the_other_sizes_is_the_world_where_it_is_told() -> None:
    config = told(given(dp_size=2, tp_size=4, pp_size=4, cp_size=1))
    assert (config.format, config.framework) == ("NeMo Automodel YAML", "devicemesh")
    found = groups(config)
    assert found["pp"][0] == [0, 8, 16, 24]
    assert found["dp"][:2] == [[0, 4], [1, 5]]
    assert found["tp"][0] == [0, 1, 2, 3]


@pytest.mark.parametrize("size", ["none", "null", "0", "-1"])
def test_data_that_is_not_told_is_what_the_other_sizes_leave(size: str) -> None:
    config = told(given(dp_size=size, tp_size=2))
    assert [*open_of(config)] == ["world_size"]
    assert groups(config, 8)["dp"] == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_experts_lie_over_all_ranks_of_a_stage() -> None:
    # _create_moe_mesh flattens dp, cp and tp, and takes (ep_shard, ep) of that.
    found = groups(told(given(tp_size=2, pp_size=2, ep_size=4)), 16)
    assert found["ep"] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]
    assert found["ep_shard"][:2] == [[0, 4], [1, 5]]
    assert found["dp"][0] == [0, 2, 4, 6]


def test_copies_are_an_axis_of_their_own_where_there_are_several() -> None:
    found = groups(told(given(dp_replicate_size=2, cp_size=2)), 8)
    assert found["dp_replicate"][0] == [0, 4]
    assert found["dp_shard"][0] == [0, 2]
    assert found["dp"][0] == [0, 2, 4, 6]
    assert found["dp_cp"][0] == [*range(8)]


def test_whole_weights_are_copies() -> None:
    config = told(given().replace("fsdp2", "ddp"))
    assert config.framework == "accelerate"
    assert groups(config, 4)["dp_replicate"] == [[0, 1, 2, 3]]


def test_sizes_of_a_base_that_is_not_given_are_asked_for() -> None:
    text = f"defaults: default.yaml\n{YAML}"
    because = "x.yaml takes in default.yaml, which is not given beside it"
    assert open_of(told(text))["tp"] == because
    base = "distributed:\n  tp_size: 2\n"
    assert settled(told(text, default_yaml=base))["tp"] == 2


REFUSED = [
    ({"dp_replicate_size": 3}, "dp_replicate_size=3 must divide dp=8 and be less"),
    ({"dp_replicate_size": 8}, "dp_replicate_size=8 must divide dp=8 and be less"),
    ({"ep_size": 3}, "ep_size=3 does not divide the 8 ranks of a stage"),
]


@pytest.mark.parametrize(("sizes", "sentence"), REFUSED)
def test_what_automodel_refuses_is_refused(sizes: dict[str, int], sentence: str) -> None:
    assert refusal(told(given(**sizes)), 8) == sentence
