"""Rows of measured steps become requests, with what they leave open said."""

from __future__ import annotations

from pathlib import Path
from shutil import copyfile

import pytest

from benchmarks.accuracy import published
from serried.errors import InputError
from serried.plan.calibration.rows import read_folder, read_table

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


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no perf_\*\.csv with rows to plan"):
        read_folder(tmp_path)


def test_tables_without_models_beside_them_are_of_those_of_the_catalog(tmp_path: Path) -> None:
    copyfile(DATA / "perf_mlperf_lora.csv", tmp_path / "perf_mlperf_lora.csv")
    found = read_folder(tmp_path)
    assert len(found.rows) == 65 and not found.left_out


def test_the_first_row_that_cannot_be_planned_says_why(tmp_path: Path) -> None:
    text = (DATA / "perf_mlperf_lora.csv").read_text().replace("llama2-70b", "nobodys-7b")
    (tmp_path / "perf_x.csv").write_text(text)
    with pytest.raises(InputError, match="there is no model 'nobodys-7b'"):
        read_folder(tmp_path)


def test_a_table_without_a_column_that_it_needs_says_which(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="it has no column model"):
        read_table(tmp_path / "mine.csv")


def test_a_papers_table_alone_is_read_from_its_folder(tmp_path: Path) -> None:
    name = "sc21_table1_weak_scaling.csv"
    lines = (DATA / name).read_text().splitlines(keepends=True)
    (tmp_path / name).write_text("".join(lines[:4]))
    found = published.in_folder(tmp_path)
    assert {name: len(rows) for name, rows in found.items()} == {"sc21": 2}


def test_layers_that_do_not_divide_leave_the_last_stage_the_rest() -> None:
    request = ROWS["b1e1c8da.1"].request
    assert request.degrees.pp == 16
    assert request.stage_layers == (4,) * 15 + (1,)
