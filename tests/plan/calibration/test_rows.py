"""Rows of measured steps become requests, with what they leave open said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shutil import copyfile

import numpy as np
import pytest

from benchmarks.accuracy import published
from benchmarks.accuracy.renamed import write_renamed
from serried.errors import InputError
from serried.plan.calibration.rows import read_folder, read_table
from serried.plan.calibration.specs import gpus_of
from serried.plan.memory.job_memory import job_memory
from serried.plan.time.chips import generation, kind
from serried.plan.time.interval import familiarity
from serried.plan.time.jobs import Jobs
from serried.plan.time.step import step_times

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


def test_layers_that_a_row_offloads_are_read_and_taken_by_its_other_releases() -> None:
    told, untold = ROWS["83420b8f.1"].request, ROWS["83420b8f.5"].request
    assert (told.offload, told.offloaded_layers) == ("activations", 40)
    assert (untold.offload, untold.offloaded_layers) == ("activations", 40)


def test_weights_of_narrow_recipes_are_taken_to_be_kept_narrow_and_that_is_said() -> None:
    row = ROWS["cd0e84ae.1"]
    assert "fp8_param_gather=true" in row.assumed
    wide = replace(row.request, options=dict(row.request.options) | {"fp8_param_gather": "false"})
    own, other = (job_memory(each).fullest for each in (row.request, wide))
    linears = 5.94  # GiB in 8 bits of what one rank has; Blackwell needs no transpose beside it
    assert (other.total - own.total) / 2**30 == pytest.approx(2 * linears * 1.05, rel=0.02)


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


def test_models_and_gpus_are_planned_by_their_figures_whatever_their_names(tmp_path: Path) -> None:
    write_renamed(DATA, tmp_path)
    renamed = {row.name: row for row in read_folder(tmp_path).rows}
    assert {row.gpu.split("-")[0] for row in renamed.values()} == {"chip"}
    names = list(ROWS)
    own, other = (Jobs.of(told[name].request for name in names) for told in (ROWS, renamed))
    assert np.allclose(step_times(own).step, step_times(other).step, rtol=1e-9)
    assert familiarity(own) == familiarity(other)


def test_a_gpu_like_no_other_is_of_the_generation_that_is_nearest(tmp_path: Path) -> None:
    cells = {"bf16_dense_tflops": "3500", "hbm_GB": "288", "hbm_TBps": "13"}
    links = {"scaleup_bidir_GBps": "3600", "scaleup_domain": "72", "nic_per_gpu_Gbps": "800"}
    [(gpu, _)] = gpus_of([{"gpu": "R200", "fp8_dense_tflops": "7000", **cells, **links}]).values()
    assert generation(gpu) == "blackwell"
    assert kind(gpu) == "r200"
    assert gpu.maker == "nvidia"
    assert gpu.peak("fp4") >= 2 * gpu.peak("fp8")
