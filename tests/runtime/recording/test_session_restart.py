"""A recorded program that torchrun starts again is one run, whose ranks restarted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import serried
from serried.runtime.recording import api as recorder_doors
from serried.trace.merge.merge import merge
from serried.trace.model.record import read_rank_record

PATIENCE_S = 120
PROGRAM = """
import os, signal, sys
import torch.distributed as dist
import serried

dist.init_process_group("gloo")
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
for step in range(3 * attempt, 6):
    with serried.record_steps(step, 0, 6, folder=sys.argv[1]):
        with serried.span("F", 0, 0):
            dist.barrier()
        if attempt == 0 and step == 4 and dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_job_that_torchrun_starts_again_is_merged_as_one_run(tmp_path: Path) -> None:
    program, folder = tmp_path / "program.py", tmp_path / "run"
    program.write_text(PROGRAM)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launcher += ["--nproc-per-node", "2", "--max-restarts", "1", "--monitor-interval", "0.1"]
    done = subprocess.run(
        [*launcher, str(program), str(folder)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        # Without the second, ranks of gloo find the addresses of the attempt before (torch 2.13).
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        },
        check=False,
    )
    assert done.returncode == 0, done.stderr
    trace = merge([folder])
    for rank in range(2):
        of_rank = trace.spans.rank == rank
        assert sorted(set(trace.spans.step[of_rank].tolist())) == [0, 1, 2, 3, 4, 5]
        (told,) = (each for each in trace.warnings if each.ranks == (rank,))
        assert str(told.evidence[0]) == (
            f"rank {rank} was restarted: {folder}/restart-1/rank-0000{rank}.spans follows "
            f"{folder}/rank-0000{rank}.spans, of which the steps before 3 are kept"
        )


def recorded(folder: Path, monkeypatch: pytest.MonkeyPatch, attempt: int) -> str:
    """Records a step of this attempt of a job and returns the run that it says."""
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", str(attempt))
    for _ in serried.record(range(1), folder):
        with serried.span("F", 0, 0):
            pass
    recorder_doors.finish()
    (path,) = (folder / f"restart-{attempt}" if attempt else folder).glob("*.spans")
    return read_rank_record(path).header.run


def test_later_attempts_are_of_the_first_s_run_and_another_job_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [recorded(tmp_path / "a", monkeypatch, attempt) for attempt in range(3)]
    assert len(set(runs)) == 1
    assert recorded(tmp_path / "b", monkeypatch, 0) != runs[0]
    (tmp_path / "a" / "rank-00000.spans").unlink()
    assert recorded(tmp_path / "a", monkeypatch, 0) != runs[0]


def test_an_attempt_that_finds_no_run_draws_one_for_those_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [recorded(tmp_path, monkeypatch, attempt) for attempt in (1, 2)]
    assert len(set(runs)) == 1
