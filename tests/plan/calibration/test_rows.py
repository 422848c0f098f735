"""Rows of measured steps become requests, with what they leave open said."""

from __future__ import annotations

from pathlib import Path

import pytest

from serried.errors import InputError
from serried.plan.calibration.rows import read_folder

DATA = Path(__file__).parents[3] / "benchmarks" / "data"
FOLDER = read_folder(DATA)
ROWS = {row.name: row for row in FOLDER.rows}


def test_every_scored_row_of_the_shipped_tables_can_be_planned() -> None:
    assert len(FOLDER.rows) == 660
    assert FOLDER.left_out == ()


def test_a_row_of_bigscience_has_its_shape_its_network_and_eager_attention() -> None:
    request = ROWS["1fc62d86.1"].request
    assert (request.model.heads, request.model.head_dim) == (256, 56)
    assert request.cluster.nic_bytes_per_s == 4 * 100e9 / 8 / 8
    assert request.framework == "megatron-deepspeed"
    assert not request.has_flash_attention
    assert request.recompute.kind == "full"


def test_a_layout_string_gives_the_layers_of_each_stage() -> None:
    request = ROWS["8148b22b.1"].request
    assert request.stage_layers == (4,) * 15 + (1,)
    assert request.degrees.chunks == 8


def test_what_a_row_leaves_open_is_assumed_and_said() -> None:
    row = ROWS["d420fb24.1"]
    assert "vpp=12" in row.assumed
    assert row.request.degrees.chunks == 12
    assert "recompute=none" in row.assumed


def test_a_folder_without_models_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"perf_models\.csv"):
        read_folder(tmp_path)


def test_layers_that_do_not_divide_leave_the_last_stage_the_rest() -> None:
    request = ROWS["b1e1c8da.1"].request
    assert request.degrees.pp == 16
    assert request.stage_layers == (4,) * 15 + (1,)
