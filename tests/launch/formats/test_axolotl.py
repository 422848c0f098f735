"""axolotl: DeepSpeed, FSDP, or Accelerate's mesh, filled as axolotl fills it."""

from __future__ import annotations

import pytest

from tests.launch.formats.asking import groups, open_of, refusal, settled, told

HEAD = "base_model: x\nmicro_batch_size: 1\ndatasets:\n  - path: y\nsequence_len: 8\n"


def test_nothing_said_makes_copies() -> None:
    config = told(HEAD)
    assert (config.format, config.framework) == ("axolotl YAML", "accelerate")
    assert [*open_of(config)] == ["world_size"]
    assert groups(config, 4)["dp_replicate"] == [[0, 1, 2, 3]]


def test_deepspeed_is_named_with_its_json() -> None:
    json = '{"zero_optimization": {"stage": 1}}'
    config = told(f"{HEAD}deepspeed: deepspeed_configs/zero1.json\n", zero1_json=json)
    assert (config.framework, config.sizes({"world_size": 4}).zero) == ("deepspeed", 1)


@pytest.mark.parametrize(
    ("rows", "strategy"),
    [
        ("fsdp:\n  - full_shard\n  - auto_wrap\n", "FULL_SHARD"),
        ("fsdp:\n  - shard_grad_op\n", "SHARD_GRAD_OP"),
        ("fsdp_version: 2\nfsdp_config:\n  reshard_after_forward: false\n", "SHARD_GRAD_OP"),
        ("fsdp_version: 2\nfsdp_config:\n  offload_params: false\n", "FULL_SHARD"),
    ],
)
def test_fsdp_has_its_strategy(rows: str, strategy: str) -> None:
    config = told(HEAD + rows)
    assert (config.framework, settled(config)["sharding_strategy"]) == ("fsdp", strategy)


# What build_parallelism_config returns for 8 ranks: tp, cp, dp_shard, dp_replicate.
FILLED = [
    ("tensor_parallel_size: 2\n", {"tp": 2, "dp_shard": 4}),
    ("context_parallel_size: 4\n", {"cp": 4, "dp_shard": 2}),
    ("sequence_parallel_degree: 2\n", {"cp": 2, "dp_shard": 4}),
    ("dp_shard_size: 4\n", {"dp_shard": 4, "dp_replicate": 2}),
    ("dp_shard_size: 2\ntensor_parallel_size: 2\ndp_replicate_size: 2\n", {"dp_shard": 2, "tp": 2}),
]


@pytest.mark.parametrize(("rows", "widths"), FILLED)
def test_data_ranks_fill_the_world(rows: str, widths: dict[str, int]) -> None:
    found = groups(told(f"{HEAD}fsdp_version: 2\n{rows}"), 8)
    assert {axis: len(found[axis][0]) for axis in widths} == widths


def test_experts_are_the_slowest_axis_and_data_runs_along_it_too() -> None:
    rows = "expert_parallel_size: 2\ndp_shard_size: 2\ncontext_parallel_size: 2\n"
    config = told(f"{HEAD}fsdp_version: 2\n{rows}")
    assert config.framework == "devicemesh"
    found = groups(config, 8)
    assert (found["ep"][0], found["dp_shard"][0], found["cp"][0]) == ([0, 4], [0, 2], [0, 1])
    assert found["dp"] == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert found["dp_shard_cp"] == [[*range(8)]]


def test_experts_alone_take_all_ranks() -> None:
    assert groups(told(f"{HEAD}expert_parallel_size: 4\n"), 4)["ep"] == [[0, 1, 2, 3]]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            "dp_shard_size: 4\n",
            "ep=4 x dp_shard=4 x cp=1 x tp=1 is 16, but there are 8 ranks; with experts axolotl "
            "fills none of them, and takes no dp_replicate_size",
        ),
        (
            "tensor_parallel_size: 2\n",
            "axolotl does not divide experts and tensors at once: ep=4 and tp=2; set one of them "
            "to 1",
        ),
    ],
)
def test_experts_with_what_axolotl_refuses_are_refused(rows: str, sentence: str) -> None:
    assert refusal(told(f"{HEAD}expert_parallel_size: 4\n{rows}"), 8) == sentence


def test_its_own_command_takes_every_gpu() -> None:
    config = told("CUDA_VISIBLE_DEVICES=0,1 axolotl train a.yaml", "x.sh", a_yaml=HEAD)
    assert (config.framework, config.sizes().world_size) == ("accelerate", 2)
