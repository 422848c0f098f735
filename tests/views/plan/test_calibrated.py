"""What ``serried plan --calibrate`` prints and writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from serried.plan.calibration.document import read_constants
from serried.views.cli.main import run

ROWS = (
    "model,gpu,gpus,tp,cp,seq,mbs,gbs,precision,step_s\n"
    "llama3-8b,H100,8,1,2,8192,1,128,bf16,14.1\n"
    "llama3-8b,H100,8,2,1,8192,1,128,bf16,15.9\n"
    "no-such-model,H100,8,2,1,8192,1,128,bf16,15.9\n"
)


def test_constants_are_fitted_to_rows_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, out = tmp_path / "runs.csv", tmp_path / "own.toml"
    runs.write_text(ROWS, encoding="utf-8")
    assert run(["plan", "--calibrate", str(runs), "-o", str(out)]) == 0
    told = capsys.readouterr().out
    assert "2 steps: off by" in told
    assert "left out: line 4" in told
    assert "gemm.hopper.8" in told.split("never measured")[1]
    assert "cdna" not in told
    assert read_constants(out).value("gemm.hopper.16") > 0
    job = ["--model", "llama3-8b", "--cluster", "h100", "--world-size", "8", "--cp", "2"]
    batch = ["--sequence", "8192", "--global-batch", "128"]
    assert run(["plan", *job, *batch, "--constants", str(out)]) in (0, 1)


def test_rows_that_contradict_each_other_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tmp_path / "runs.csv"
    lines = ROWS.splitlines()
    runs.write_text("\n".join([*lines[:2], lines[1].replace("14.1", "28")]), encoding="utf-8")
    assert run(["plan", "--calibrate", str(runs)]) == 2
    assert "line 2 and runs line 3 are of the same job" in capsys.readouterr().err
