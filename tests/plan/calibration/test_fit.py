"""A fit finds the constants that made the steps it is shown, and says which it cannot know."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from serried.plan.calibration.document import constants_text, read_constants
from serried.plan.calibration.expected import expectations
from serried.plan.calibration.fit import fit
from serried.plan.cluster.cluster import Cluster, Gpu
from serried.plan.degrees import Degrees
from serried.plan.model.shape import ModelShape
from serried.plan.request import PlanRequest
from serried.plan.time.constants import Constant, Constants, shipped
from serried.plan.time.jobs import Jobs
from serried.plan.time.step import step_times

GPU = Gpu("H100", "nvidia", {"bf16": 989e12, "fp8": 1979e12}, 80e9, 3.35e12, 450e9)
CLUSTER = Cluster("h100", GPU, 8, 8, 50e9)
LLAMA = ModelShape("llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256)


def some_jobs() -> Jobs:
    layouts = [
        Degrees(tp, pp, cp, 16 // (tp * pp * cp))
        for tp in (1, 2, 8)
        for pp in (1, 2)
        for cp in (1, 2)
        if tp * pp * cp <= 16
    ]
    return Jobs.of(
        PlanRequest(LLAMA, CLUSTER, degrees, sequence=sequence, global_batch=64)
        for degrees in layouts
        for sequence in (2048, 8192)
    )


def test_a_fit_finds_an_efficiency_that_was_changed() -> None:
    jobs, known = some_jobs(), shipped()
    entries = dict(known.entries)
    entries["gemm.hopper.16"] = Constant(known.value("gemm.hopper.16") * 0.8, 0.0)
    truth = step_times(jobs, Constants(entries, {}, "")).step
    start = {name: known.value(name) for name in expectations()}
    found = fit(jobs, truth, expectations(), start=start).constants
    predicted = step_times(jobs, found).step
    assert np.abs(predicted / truth - 1).mean() < 0.03
    assert found.value("gemm.hopper.16") < known.value("gemm.hopper.16") * 0.95


def test_what_no_row_bears_on_stays_as_expected_and_says_so() -> None:
    jobs = some_jobs()
    found = fit(jobs, step_times(jobs).step, expectations(), rounds=3).constants
    untouched = found.entries["gemm.cdna4.8"]
    assert untouched.value == pytest.approx(expectations()["gemm.cdna4.8"].value)
    assert untouched.error == pytest.approx(expectations()["gemm.cdna4.8"].width)
    assert untouched.bears == pytest.approx(0.0, abs=1e-6)
    assert found.entries["gemm.hopper.16"].bears > 0.5


def test_constants_come_back_from_the_file_they_are_written_to(tmp_path: Path) -> None:
    path = tmp_path / "efficiency.toml"
    path.write_text(constants_text(shipped()), encoding="utf-8")
    again = read_constants(path)
    assert again.entries == shipped().entries
    assert again.residuals == shipped().residuals
