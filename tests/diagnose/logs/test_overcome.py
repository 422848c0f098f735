"""A job that went on, or that was done, is not said to have failed by what its log mentions."""

from __future__ import annotations

from pathlib import Path

import pytest

from serried.diagnose.diagnosis import CauseClass
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed

STEPS = [f" iteration {n:8d}/ 5000 | lm loss: 2.{n:03d} | grad norm: 0.1" for n in range(60)]
BARS = [f"Epoch 3: {n}%|# | {n}/100 [00:01<00:10, 9.1it/s, loss=0.{n}]" for n in range(60)]
DONE = "[after training is done] datetime: 2026-03-04 12:00:00"
ERROR = "ValueError: could not read sample 17"
RESET = "WARNING: upload failed (attempt 1/5): Connection reset by peer, retrying"


def classes(folder: Path, *rows: str) -> list[str]:
    (folder / "job.log").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return [cause.cause_class.value for cause in diagnosed(gather([folder])).causes]


@pytest.mark.parametrize(
    "row",
    [
        RESET,
        "wandb: ERROR Error while calling W&B API: internal database error",
        "CUDA out of memory at batch size 64, retrying with batch size 32",
        "[W socket.cpp:601] [c10d] The client socket has failed to connect to [host-1]:29500 "
        "(errno: 111 - Connection refused).",
        "ValueError: could not read sample 17, skipped",
    ],
)
def test_trouble_after_which_steps_follow_was_overcome(tmp_path: Path, row: str) -> None:
    assert classes(tmp_path, *STEPS[:20], row, *STEPS[20:]) == []
    assert classes(tmp_path, *BARS[:20], row, *BARS[20:]) == []
    assert classes(tmp_path, *STEPS[:20], row, DONE) == []
    assert classes(tmp_path, *STEPS, row) != []
    assert classes(tmp_path, *STEPS[:20], row, *STEPS[20:25]) != []


@pytest.mark.parametrize("count", [60, 5000])
def test_steps_of_another_rank_in_the_same_file_overcome_nothing(
    tmp_path: Path, count: int
) -> None:
    iterations = [f" iteration {n:8d}/ 9000 | lm loss: 2.1 | grad norm: 0.1" for n in range(count)]
    bars = [f"Epoch 3: {n}/9000 [00:01<00:10, 9.1it/s, loss=0.1]" for n in range(count)]
    for steps in (iterations, bars):
        assert classes(tmp_path, *steps[:60], ERROR, *steps) == [CauseClass.EXCEPTION.value]
        assert classes(tmp_path, *steps[:60], ERROR, *steps, DONE) == [CauseClass.EXCEPTION.value]
        assert classes(tmp_path, *steps[:20], RESET, *steps[20:], *steps) == []


def test_steps_of_the_next_epoch_are_not_those_of_another_rank(tmp_path: Path) -> None:
    epochs = [f"Epoch {e}: {n}/60 [00:01<00:10, 9.1it/s]" for e in range(3) for n in range(60)]
    assert classes(tmp_path, *epochs[:70], RESET, *epochs[70:]) == []


@pytest.mark.parametrize(
    "row",
    [
        "slurmstepd: error: *** STEP 9.0 ON n1 CANCELLED AT 2026-03-04T12:00:05 DUE TO TIME LIMIT",
        "W0304 12:00:10.1 12 torch/distributed/elastic/agent/server/api.py:704] Received 15 death "
        "signal, shutting down workers",
        RESET,
    ],
)
def test_what_stops_a_job_that_is_done_is_no_fault(tmp_path: Path, row: str) -> None:
    assert classes(tmp_path, *STEPS, DONE, row) == []
    assert classes(tmp_path, *STEPS, row) != []


def test_a_broken_gpu_stays_broken_however_long_the_job_goes_on(tmp_path: Path) -> None:
    xid = "[ 9.1] NVRM: Xid (PCI:0000:a1:00): 48, pid=1, Double Bit ECC Error"
    assert classes(tmp_path, xid, *STEPS, DONE) == [CauseClass.HARDWARE.value]


def test_what_ranks_do_alone_is_no_step(tmp_path: Path) -> None:
    error = "[rank3]: ValueError: bad config"
    bars = [f"Map: {n}%|# | {n}/100 [00:01<00:10, 9.1it/s]" for n in range(60)]
    assert classes(tmp_path, error, *bars) == [CauseClass.EXCEPTION.value]


def test_an_earlier_start_of_a_job_that_was_restarted_is_told(tmp_path: Path) -> None:
    error = "[rank3]: ValueError: bad sample"
    again = "[default] Worker group FAILED. 3/3 attempts left; will restart worker group"
    assert classes(tmp_path, error, again, *STEPS) == [CauseClass.EXCEPTION.value]


def test_an_exception_that_python_ignores_is_none(tmp_path: Path) -> None:
    ignored = "Exception ignored in: <function _ConnectionBase.__del__ at 0x7f>"
    assert classes(tmp_path, ignored, "OSError: [Errno 9] Bad file descriptor") == []


@pytest.mark.parametrize(
    "row",
    [
        "INFO rank 3: 0 errors, 0 timeouts, 0 NaN in the last 100 steps",
        "torchrun: error handling: rdzv_conf={'timeout': 900}, max_restarts=0",
        "GPU 1: Tesla V100; ECC errors: 0; uncorrectable ECC error count 0",
        "Killed 0 zombie processes; OOM killer disabled; oom_score_adj=-500",
        "INFO rank 3 waiting for rank 0 to finish saving (timeout 1800 s)",
        "INFO rank 3 has not reached the barrier yet",
        "INFO: If you run out of GPU memory on rank 0, lower the batch size.",
        "  --check-for-nan-in-loss-and-grad  raise an error if NaN is found; rank 0 fails first",
    ],
)
def test_words_of_trouble_in_harmless_places_are_no_fault(tmp_path: Path, row: str) -> None:
    assert classes(tmp_path, row) == []


def test_memory_of_a_size_that_no_gpu_has_is_not_the_root_of_a_wait(tmp_path: Path) -> None:
    wait = (
        "[rank0]:[E1 ProcessGroupNCCL.cpp:6] [Rank 0] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=7, OpType=BROADCAST, NumelIn=4, NumelOut=4, Timeout(ms)=600000) "
        "ran for 600061 milliseconds before timing out."
    )
    damaged = (
        "[rank0]: OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory."
    )
    assert classes(tmp_path, wait, damaged)[0] == CauseClass.HANG.value
