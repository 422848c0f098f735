"""VeOmni: FSDP with parts of sequences, and experts over the same ranks."""

from __future__ import annotations

import pytest

from tests.launch.formats.asking import groups, open_of, refusal, told

YAML = "model:\n  model_path: x\ntrain:\n  accelerator:\n    fsdp_config: {fsdp_mode: fsdp2}\n"


def given(**sizes: int) -> str:
    return YAML + "".join(f"    {name}: {size}\n" for name, size in sizes.items())


def test_data_is_sharded_over_what_sequences_leave() -> None:
    config = told(given(ulysses_size=2, ep_size=1))
    assert (config.format, config.framework) == ("VeOmni YAML", "devicemesh")
    assert [*open_of(config)] == ["world_size"]
    found = groups(config, 8)
    assert (found["dp_shard"][0], found["ulysses"][0]) == ([0, 2, 4, 6], [0, 1])
    assert found["dp_shard_sp"] == [[*range(8)]]
    assert config.sizes({"world_size": 8}).zero == 3


def test_experts_lie_inside_the_shards_and_the_parts() -> None:
    found = groups(told(given(ulysses_size=2, ep_size=4, dp_replicate_size=2)), 16)
    assert found["ep"][:2] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert found["ep_fsdp"][0] == [0, 4]
    assert found["ep_replicate"][0] == found["dp_replicate"][0] == [0, 8]


def test_a_shard_that_is_given_leaves_copies() -> None:
    assert groups(told(given(dp_shard_size=4, dp_replicate_size=-1)), 8)["dp_replicate"][0] == [
        0,
        4,
    ]


def test_names_of_earlier_releases_are_read() -> None:
    text = "model: {x: y}\ntrain:\n  data_parallel_mode: fsdp2\n  ulysses_parallel_size: 4\n"
    assert groups(told(text), 8)["ulysses"][0] == [0, 1, 2, 3]


def test_whole_weights_are_copies() -> None:
    assert told(YAML.replace("fsdp2", "ddp")).framework == "accelerate"


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ({"tp_size": 2}, "VeOmni does not divide tp=2 yet; set it to 1"),
        (
            {"ep_size": 3},
            "8 ranks cannot be dp_replicate=1 x dp_shard=8 x ulysses=1 with ep=3 inside dp_shard "
            "x ulysses",
        ),
        (
            {"dp_shard_size": 3},
            "8 ranks cannot be dp_replicate=2 x dp_shard=3 x ulysses=1 with ep=1 inside dp_shard "
            "x ulysses",
        ),
    ],
)
def test_what_veomni_refuses_is_refused(sizes: dict[str, int], sentence: str) -> None:
    assert refusal(told(given(**sizes)), 8) == sentence
