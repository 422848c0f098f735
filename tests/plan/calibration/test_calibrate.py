"""Calibration of one cluster: it learns what its rows tell, and says what they do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from serried.errors import InputError
from serried.plan.calibration.calibrate import calibrate
from serried.plan.calibration.rows import read_table
from serried.plan.cluster.cluster import Cluster, Gpu
from serried.plan.degrees import Degrees
from serried.plan.model.shape import ModelShape
from serried.plan.request import PlanRequest
from tests.plan.alone import step_time

GPU = Gpu("h100", "nvidia", {"bf16": 989e12, "fp8": 1979e12}, 80e9, 3.35e12, 450e9)
LLAMA = ModelShape("llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256)
JOBS = [
    PlanRequest(
        LLAMA,
        Cluster("own", GPU, 8, 8, 50e9),
        Degrees(tp=tp, cp=cp, dp=8 // tp // cp),
        sequence=4096,
        global_batch=64,
    )
    for tp in (1, 2, 4, 8)
    for cp in (1, 2)
    if tp * cp <= 8
]
NAMES = [f"run {number}" for number in range(len(JOBS))]


def test_a_cluster_that_is_slower_throughout_is_learned_from_half_of_its_rows() -> None:
    steps = [1.15 * step_time(job)[0] for job in JOBS]
    found = calibrate(NAMES[::2], JOBS[::2], steps[::2])
    others = [step_time(job, found.constants)[0] for job in JOBS[1::2]]
    assert np.abs(found.after).max() < np.abs(found.before).max() / 2
    assert others == pytest.approx(steps[1::2], rel=0.05)


def test_what_no_row_has_is_named_as_never_measured() -> None:
    found = calibrate(NAMES, JOBS, [step_time(job)[0] for job in JOBS])
    assert {"gemm.hopper.8", "ep_exposed", "pp_exposed"} <= set(found.unmeasured)
    assert "gemm.hopper.16" not in found.unmeasured
    assert found.constants.entries["gemm.hopper.16"].error < 0.15


def test_rows_that_contradict_each_other_are_refused_by_name() -> None:
    step = step_time(JOBS[0])[0]
    with pytest.raises(InputError, match="one and two are of the same job"):
        calibrate(["one", "two"], [JOBS[0], replace(JOBS[0])], [step, 2 * step])


def test_a_step_of_no_time_and_no_row_at_all_are_refused() -> None:
    with pytest.raises(InputError, match="above 0"):
        calibrate(["one"], JOBS[:1], [0.0])
    with pytest.raises(InputError, match="no measured step"):
        calibrate([], [], [])


def test_a_table_names_models_and_gpus_of_the_catalog(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(
        "model,gpu,gpus,tp,seq,mbs,gbs,precision,step_s\n"
        "llama3-8b,H100,8,2,8192,1,128,bf16,14.1\n"
        "no-such-model,H100,8,2,8192,1,128,bf16,14.1\n",
        encoding="utf-8",
    )
    folder = read_table(path)
    assert folder.rows[0].request.degrees.dp == 4
    assert folder.left_out[0][0] == "line 3"


def test_a_step_in_fp32_on_a_gpu_is_refused_by_its_name() -> None:
    """Taken for one of 16 bits, which is eight times as fast, it would draw all constants away."""
    steps = [step_time(job)[0] for job in JOBS[:2]]
    with pytest.raises(InputError, match="run 1 computed in fp32 on a GPU"):
        calibrate(NAMES[:2], [JOBS[0], replace(JOBS[1], compute="fp32")], steps)
