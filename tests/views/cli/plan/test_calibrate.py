"""``serried plan --calibrate`` with recorded runs, alone and beside tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from serried.plan.calibration.document import read_constants
from serried.trace.model.record import TracedJob
from tests.conftest import Call
from tests.trace.recorded_run import Run

ROWS = (
    "model,gpu,gpus,tp,cp,seq,mbs,gbs,precision,step_s\nllama3-8b,H100,8,1,2,8192,1,128,bf16,14.1\n"
)


@dataclass(frozen=True)
class RealRun(Run):
    """A run of a model that it names, on a core for each of its ranks."""

    compute: str = "real"
    num_steps: int = 5
    hidden: int = 128

    @property
    def job(self) -> TracedJob:
        model = {"hidden": self.hidden, "heads": 4, "kv_heads": 4, "head_dim": 32}
        return replace(
            super().job,
            work={"layers": 8, "sequences": 2, "tokens": 64},
            model={**model, "ffn": 384, "vocab": 256, "gated": 1},
            training={"zero": "0", "dtype": "float32"},
            device="cpu",
            cores=8,
        )


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    root = tmp_path_factory.mktemp("runs")
    runs = {"pp4": RealRun(), "pp2": RealRun(pp=2, dp=2), "m16": RealRun(num_microbatches=16)}
    return [str(run.write(root / name)) for name, run in runs.items()]


def test_recorded_runs_are_fitted_and_the_constants_written(
    serried: Call, folders: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "cluster.toml"
    words = [word for folder in folders for word in ("--calibrate", folder)]
    done = serried("plan", *words, "-o", str(out))
    assert done.code == 0, done.err
    assert "3 steps: off by" in done.out
    assert "never measured, so kept as shipped" in done.out
    assert read_constants(out).entries["gemm.cpu.16"].error > 0


def test_runs_and_tables_are_fitted_together(
    serried: Call, folders: list[str], tmp_path: Path
) -> None:
    table = tmp_path / "steps.csv"
    table.write_text(ROWS)
    done = serried("plan", "--calibrate", str(table), "--calibrate", folders[0])
    assert done.code == 0, done.err
    assert "2 steps: off by" in done.out


def test_runs_of_one_job_that_contradict_each_other_are_refused(
    serried: Call, folders: list[str], tmp_path: Path
) -> None:
    # Of every second step alone the period is twice as long.
    slow = RealRun(num_steps=10).write(tmp_path / "slow", keep=lambda span: span.step % 2 == 0)
    done = serried("plan", "--calibrate", folders[0], "--calibrate", str(slow))
    assert done.code == 2
    assert "are of the same job and took 0.034 s and 0.068 s; leave the wrong one out" in done.err


def test_emulated_runs_and_bad_folders_are_one_sentence(serried: Call, tmp_path: Path) -> None:
    emulated = Run(num_steps=5).write(tmp_path / "emulated")
    done = serried("plan", "--calibrate", str(emulated))
    assert done.code == 2
    assert "emulated compute, which tells nothing of hardware" in done.err
    (tmp_path / "empty").mkdir()
    done = serried("plan", "--calibrate", str(tmp_path / "empty"))
    assert done.code == 2 and "Traceback" not in done.err
