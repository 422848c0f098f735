"""A recorded program that torchrun starts again is one run, whose ranks restarted."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch.distributed as dist

import serried
from serried.runtime.recording import api as recorder_doors
from serried.runtime.run.worker import leave
from serried.trace.merge.in_memory import merge
from serried.trace.model.record import read_rank_record

PATIENCE_S = 120
STEPS, KILLED_AT, FIRST_AGAIN = 6, 4, 3
PROGRAM = (
    "import sys; from tests.runtime.recording.test_session_restart import train; train(sys.argv[1])"
)


def train(folder: str, **meeting: Any) -> None:
    """Trains as a rank of some attempt; rank 1 is killed in the first."""
    dist.init_process_group("gloo", **meeting)
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    for step in range(FIRST_AGAIN * attempt, STEPS):
        with serried.record_steps(step, 0, STEPS, folder=folder):
            with serried.span("F", 0, 0):
                dist.barrier()
            if attempt == 0 and step == KILLED_AT and dist.get_rank() == 1:
                os.kill(os.getpid(), signal.SIGKILL)
    recorder_doors.finish()


def be_rank(rank: int, attempt: int, folder: Path) -> NoReturn:
    """Trains as torchrun lets a rank do, with the variables that a recording reads."""
    variables = {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2}
    os.environ |= {name: str(value) for name, value in variables.items()}
    os.environ["TORCHELASTIC_RESTART_COUNT"] = str(attempt)
    store = dist.FileStore(str(folder / f"store-{attempt}"), 2)  # type: ignore[attr-defined]
    train(str(folder / "run"), store=store, rank=rank, world_size=2)
    leave(0)


def run_attempt(attempt: int, folder: Path) -> list[int | None]:
    """Starts the ranks of an attempt, ends those that are left once rank 1 has ended."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["serried.runtime.run.preload"])
    ranks = [context.Process(target=be_rank, args=(rank, attempt, folder)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    ranks[1].join(PATIENCE_S)
    if ranks[1].exitcode:
        ranks[0].kill()  # as torchrun's agent does
    ranks[0].join(PATIENCE_S)
    return [rank.exitcode for rank in ranks]


def assert_is_one_run(folder: Path) -> None:
    """Asserts that both attempts are merged, each rank's steps once, and that it is told."""
    trace = merge([folder])
    for rank in range(2):
        of_rank = trace.spans.rank == rank
        assert sorted(set(trace.spans.step[of_rank].tolist())) == list(range(STEPS))
        (told,) = (each for each in trace.warnings if each.ranks == (rank,))
        assert str(told.evidence[0]) == (
            f"rank {rank} was restarted: {folder}/restart-1/rank-0000{rank}.spans follows "
            f"{folder}/rank-0000{rank}.spans, of which the steps before 3 are kept"
        )


def test_a_job_whose_ranks_are_started_again_is_merged_as_one_run(tmp_path: Path) -> None:
    assert run_attempt(0, tmp_path)[1] == -signal.SIGKILL
    assert run_attempt(1, tmp_path) == [0, 0]
    assert_is_one_run(tmp_path / "run")


@pytest.mark.soak
def test_a_job_that_torchrun_starts_again_is_merged_as_one_run(tmp_path: Path) -> None:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--no-python"]
    launcher += ["--nproc-per-node", "2", "--max-restarts", "1", "--monitor-interval", "0.1"]
    done = subprocess.run(
        [*launcher, sys.executable, "-c", PROGRAM, str(tmp_path / "run")],
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
    assert_is_one_run(tmp_path / "run")


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
