"""Layouts with ranks outside a mesh, or groups beyond the world, are shown like any other."""

from __future__ import annotations

import pytest

from tests.conftest import Call

ODD = {
    "a mesh smaller than the world": (
        *("--world-size", "16", "--framework", "devicemesh", "--set", "mesh_shape=2,4"),
    ),
    "a window that starts late": (
        *("--world-size", "16", "--framework", "megatron@0.19.0", "--tp", "2"),
        *("--set", "rank_offset=8", "--set", "local_world_size=8"),
    ),
    "an encoder before the decoder": (
        *("--world-size", "20", "--framework", "megatron@0.9.0", "--tp", "4", "--pp", "2"),
        *("--set", "encoder_tensor_model_parallel_size=2"),
        *("--set", "encoder_pipeline_model_parallel_size=1"),
    ),
    "groups beyond the world": (
        *("--world-size", "16", "--tp", "2", "--pp", "2", "--order", "tp-tp-dp-pp"),
        *("--set", "allow_repeated_axes=true"),
    ),
    "slots of hosts": (
        *("--world-size", "3", "--framework", "deepspeed"),
        *("--set", "hostfile=a slots=2\nb slots=1"),
    ),
}


@pytest.mark.parametrize("words", ODD.values(), ids=ODD)
def test_an_odd_layout_has_a_table_and_a_map(words: tuple[str, ...], serried: Call) -> None:
    shown = serried("groups", *words)
    assert shown.code == 0, shown.err
    assert "node 0" in shown.out


@pytest.mark.parametrize("words", ODD.values(), ids=ODD)
@pytest.mark.parametrize("rank", ["0", "2"])
@pytest.mark.parametrize("form", ["table", "json"])
def test_a_rank_of_an_odd_layout_is_told(
    words: tuple[str, ...], rank: str, form: str, serried: Call
) -> None:
    shown = serried("groups", *words, "--rank", rank, "--format", form)
    assert shown.code == 0, shown.err
    assert f"rank {rank}" in shown.out or f'"rank": {rank}' in shown.out
