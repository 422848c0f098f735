"""MaxText's mesh of two levels, as create_hybrid_device_mesh of JAX makes it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.launch.formats.asking import groups, open_of, refusal, settled, told

BASE = "per_device_batch_size: 1\nbase_output_directory: x\n"


def hybrid(outer: tuple[int, ...], inner: tuple[int, ...]) -> np.ndarray:
    """Returns ranks as JAX places them: a block of ``inner`` for each slice of ``outer``."""
    width = int(np.prod(inner))
    blocks = np.empty(outer, dtype=object)
    for i, place in enumerate(np.ndindex(outer)):
        blocks[place] = np.arange(i * width, (i + 1) * width).reshape(inner)
    return np.block(blocks.tolist())


def along(mesh: np.ndarray, axis: int) -> list[list[int]]:
    rows = np.moveaxis(mesh, axis, -1).reshape(-1, mesh.shape[axis])
    return sorted(sorted(map(int, row)) for row in rows)


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        ((2, 1, 1), (1, 4, 2)),
        ((2, 2, 1), (2, 2, 2)),
        ((1, 4, 1), (1, 2, 4)),
        ((2, 1, 2), (2, 3, 1)),
    ],
)
def test_an_axis_of_both_levels_joins_their_ranks(
    outer: tuple[int, ...], inner: tuple[int, ...]
) -> None:
    rows = [
        f"{level}_{axis}_parallelism: {size}\n"
        for level, sizes in (("dcn", outer), ("ici", inner))
        for axis, size in zip(("data", "fsdp", "tensor"), sizes, strict=True)
    ]
    config = told(BASE + "".join(rows))
    found, mesh = groups(config), hybrid(outer, inner)
    assert config.sizes().world_size == mesh.size
    for place, axis in enumerate(("data", "fsdp", "tensor")):
        if mesh.shape[place] > 1:
            assert sorted(map(sorted, found[axis])) == along(mesh, place)


def test_nothing_said_shards_weights_over_the_one_slice() -> None:
    config = told(BASE)
    assert (config.format, config.framework) == ("MaxText YAML", "devicemesh")
    assert groups(config, 8) == {"fsdp": [list(range(8))]}
    assert [*open_of(config)] == ["world_size"]
    assert str(config.notes[0]) == (
        "x.yaml does not say how many slices (on GPUs: nodes) there are; where sizes of -1 leave "
        "it open one is taken, so give it, such as --set num_slices=4"
    )


def test_slices_are_what_is_told_else_what_the_sizes_of_one_leave() -> None:
    two = told(f"{BASE}num_slices: 2\n")
    assert groups(two, 8)["data"] == [[0, 4], [1, 5], [2, 6], [3, 7]]
    of_four = told(f"{BASE}ici_fsdp_parallelism: 4\n")
    assert groups(of_four, 8)["fsdp"] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_pipelines_are_the_axis_stage_and_the_file_may_order_axes() -> None:
    text = f"{BASE}mesh_axes: ['fsdp', 'stage']\nici_pipeline_parallelism: 2\n"
    assert groups(told(text), 4)["stage"] == [[0, 1], [2, 3]]
    assert groups(told(text.replace("mesh_axes", "axes")), 4)["stage"] == [[0, 2], [1, 3]]


def test_a_command_takes_the_same_keys() -> None:
    text = "python3 -m MaxText.train MaxText/configs/base.yml ici_tensor_parallelism=4 run_name=x"
    config = told(text, "run.sh")
    assert config.format == "MaxText command line"
    assert groups(config, 8)["tensor"] == [[0, 1, 2, 3], [4, 5, 6, 7]]


XPK = """
ARGS="ici_tensor_parallelism=4 \\
run_name=x"
xpk workload create --cluster=$C --device-type=v5p-8 \\
  --command="set -e && export A='b' && \\
python3 -m MaxText.train MaxText/configs/base.yml ${ARGS} | tee train.log"
"""


def test_the_command_of_a_workload_of_xpk_is_followed() -> None:
    found = groups(told(XPK, "run.sh"), 8)
    assert found["tensor"] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    apart = XPK.replace("--command=", "--command ")
    assert groups(told(apart, "run.sh"), 8)["tensor"] == found["tensor"]


def test_a_size_that_one_of_two_commands_gives_is_open() -> None:
    run = "python3 -m MaxText.train base.yml run_name=x {}\n"
    both = run.format("ici_tensor_parallelism=4") + run.format("ici_fsdp_parallelism=4")
    assert open_of(told(both, "run.sh"))["ici_tensor_parallelism"] == (
        "run.sh line 1, ici_tensor_parallelism gives 4, and another command of run.sh gives none"
    )
    same = run.format("ici_tensor_parallelism=4") * 2
    assert [*open_of(told(same, "run.sh"))] == ["world_size"]


def test_sizes_that_do_not_make_the_world_are_refused() -> None:
    assert refusal(told(f"{BASE}ici_tensor_parallelism: 3\n"), 8) == (
        "the sizes fsdp=-1 x tensor=3 do not make 8 ranks; their product must be that, and one of "
        "them may be -1"
    )
    assert refusal(told(f"{BASE}num_slices: 3\n"), 8) == (
        "8 ranks do not make 3 slices of one size; give num_slices that divides them"
    )


def test_two_values_of_a_key_are_both_named() -> None:
    config = told(f"{BASE}ici_tensor_parallelism: 2\nici_tensor_parallelism: 4\n")
    assert "it is given as 2" in open_of(config)["ici_tensor_parallelism"]


@pytest.mark.parametrize("runner", ["multihost_runner.py", "multihost_job.py"])
def test_a_command_that_every_host_is_given_is_read(runner: str) -> None:
    inner = "python3 -m MaxText.train base.yml ici_tensor_parallelism=4"
    text = f"python3 {runner} --TPU_PREFIX=x --COMMAND='bash -c \"{inner}\"'\n"
    config = told(text, "run.sh")
    assert config.format == "MaxText command line"
    assert settled(config)["ici_tensor_parallelism"] == 4
