"""Programs name the rank of a line in many ways; each is read, and a rank spoken of is not one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.diagnose.logs.test_lines import first_cause


@pytest.mark.parametrize(
    "line",
    [
        "[Rank 3] ValueError: bad label",
        "Rank 3: ValueError: bad label",
        "[rank=3] ValueError: bad label",
        "[rank: 3] ValueError: bad label",
        "rank=3 ValueError: bad label",
        "[2024-01-01 10:00:00] [Rank 3] [ERROR] ValueError: bad label",
        "2024-01-01 10:00:00 [RANK 3] ERROR train.py:1] ValueError: bad label",
        "[2024-01-01 10:00:00,123][rank3][ERROR] - ValueError: bad label",
        "2024-01-01 10:00:00,123 - ERROR - rank 3 - ValueError: bad label",
        "Exception on rank 3: ValueError: bad label",
        "(VllmWorker rank=3 pid=123) ValueError: bad label",
        "(PolicyWorker[rank=3] pid=30, ip=10.0.0.1) ValueError: bad label",
        "(Worker_TP3 pid=12) ValueError: bad label",
        "[2025-01-01 10:00:00 TP3] ValueError: bad label",
        "trainer/1 [default1]:[rank3]: ValueError: bad label",
        "[3]: ValueError: bad label",
        "[ERROR] rank3: ValueError: bad label",
        "ERROR:root:Rank 3 - ValueError: bad label",
        "Rank 3 failed with error: ValueError: bad label",
        "An error occurred on rank 3 in step 17: ValueError: bad label",
        "Uncaught exception on global rank 3 (local rank 1): ValueError: bad label",
        "(RayTrainWorker pid=33, rank=3) ValueError: bad label",
        "[1,mpirank:3,algo-1]<stderr>:ValueError: bad label",
        "train/0 [3]:ValueError: bad label",
    ],
)
def test_a_line_of_a_rank_is_its_own(tmp_path: Path, line: str) -> None:
    cause = first_cause(tmp_path, line)
    assert cause is not None
    assert (cause.kind, cause.ranks) == ("exception", (3,))


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("rank 3 ran out of memory", "gpu_oom"),
        ("GPU OOM on rank 3", "gpu_oom"),
        ("RuntimeError: CUDA out of memory on rank 3. Tried to allocate 2.00 GiB", "gpu_oom"),
        ("Error in rank 3: CUDA error: an illegal memory access was encountered", "cuda_error"),
        ("rank 3 encountered CUDA error: unspecified launch failure", "cuda_error"),
        ("RuntimeError: found NaN in local loss calculation on rank 3. Device: 3", "nan"),
        ("rank 3 was killed by the OOM killer", "host_oom_sigkill"),
        ("rank 3 has not reached its first collective", "never_arrived"),
        ("Timeout: rank 3 did not respond within 300s", "never_arrived"),
    ],
)
def test_prose_names_the_rank_that_is_in_trouble(tmp_path: Path, line: str, kind: str) -> None:
    cause = first_cause(tmp_path, line)
    assert cause is not None
    assert (cause.kind, cause.ranks) == (kind, (3,))


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: Timed out waiting for rank 3",
        "RuntimeError: connection to peer rank 3 failed",
        "ValueError: invalid rank 3",
        "ValueError: rank 0 got 5 batches where rank 3 got 4",
        "ValueError: TP rank 3 could not load its part",
        "ValueError: LoRA rank 3 is too small",
        "subprocess.CalledProcessError: Command '['train.py', '--local_rank=3']' returned non-zero "
        "exit status 1.",
    ],
)
def test_a_rank_that_is_only_spoken_of_is_not_named(tmp_path: Path, line: str) -> None:
    cause = first_cause(tmp_path, line)
    assert cause is not None and cause.ranks is None


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("Rank 3 (pid 4312) was killed by signal SIGKILL", "rank_killed"),
        ("rank 3 crashed: Segmentation fault", "segfault"),
        ("Container rank 3 status failed cmd ['python'] code -9 log log/w.3", "rank_killed"),
        ("ERROR:composer.cli.launcher:Rank 3 crashed with exit code 1.", "exit_code"),
        ("Global rank 3 (PID 1234) exited with code -9", "rank_killed"),
        ("x3005c0s7b0n0.hsn.cluster: rank 3 died from signal 9", "rank_killed"),
        (
            "ERROR:  One or more process (first noticed rank 3) terminated with signal 11",
            "segfault",
        ),
    ],
)
def test_the_end_of_a_rank_is_read_of_every_launcher(tmp_path: Path, line: str, kind: str) -> None:
    cause = first_cause(tmp_path, line)
    assert cause is not None
    assert (cause.kind, cause.ranks) == (kind, (3,))


def test_a_task_is_a_rank_where_only_mpi_tells_of_ends(tmp_path: Path) -> None:
    killed, oom = "=   KILLED BY SIGNAL: 9 (Killed)", "srun: error: n2: task 1: Out Of Memory"
    cause = first_cause(tmp_path, killed, oom)
    assert cause is not None
    assert (cause.kind, cause.ranks) == ("host_oom_sigkill", (1,))


def test_a_traceback_that_ray_train_repeats_is_of_the_rank_in_its_heading(tmp_path: Path) -> None:
    rows = (
        "ray.train.v2.api.exceptions.WorkerGroupError: Training failed due to worker errors:",
        "[Rank 3]:",
        "Traceback (most recent call last):",
        '  File "train.py", line 12, in train_func',
        "ValueError: bad label",
    )
    cause = first_cause(tmp_path, *rows)
    assert cause is not None
    assert (cause.kind, cause.ranks) == ("exception", (3,))


def test_a_worker_that_ray_train_lost_is_the_rank_that_it_names(tmp_path: Path) -> None:
    rows = (
        "(raylet) A worker died or was killed while executing a task by an unexpected system error",
        "(TorchTrainer pid=93) Worker 2 has failed.",
    )
    cause = first_cause(tmp_path, *rows)
    assert cause is not None
    assert (cause.kind, cause.ranks) == ("worker_died", (2,))


FAILED = "E0325 20:57:27.62 26 api.py:869] failed (exitcode: 1) local_rank: 3 (pid: 30) of binary"
ROW = ("  rank      : 11 (local_rank: 3)", "  exitcode  : 1 (pid: 31)")


@pytest.mark.parametrize(
    ("rows", "ranks"),
    [
        ((FAILED,), (3,)),
        ((f"2: {FAILED}",), None),
        (("n-1: W0325 Sending process 9 closing signal SIGTERM", f"n-2: {FAILED}"), None),
        (("2: [default3]:ValueError: bad label",), None),
        (("2: [default3]:ValueError: bad label", *(f"2: {row}" for row in ROW)), (11,)),
    ],
)
def test_a_local_rank_of_one_node_of_several_is_a_rank_only_where_the_log_tells_which(
    tmp_path: Path, rows: tuple[str, ...], ranks: tuple[int, ...] | None
) -> None:
    cause = first_cause(tmp_path, *rows)
    assert cause is not None
    assert cause.ranks == ranks


def test_an_error_that_several_processes_raise_names_none(tmp_path: Path) -> None:
    error = "ModuleNotFoundError: No module named 'x'"
    end = "E1026 api.py:869] failed (exitcode: 1) local_rank: 2 (pid: 2244) of binary: python"
    one, two = first_cause(tmp_path, error, end), first_cause(tmp_path, error, error, end)
    assert one is not None and one.ranks == (2,)
    assert two is not None and two.ranks is None


def test_nan_of_a_call_of_its_own_names_its_rank(tmp_path: Path) -> None:
    own = "[rank6]: RuntimeError: Function 'Log1PBackward0' returned nan values in its 0th output."
    cause = first_cause(tmp_path, own)
    assert cause is not None and (cause.kind, cause.ranks) == ("nan", (6,))
    cause = first_cause(tmp_path, "[rank6]: ValueError: loss is nan")
    assert cause is not None and (cause.kind, cause.ranks) == ("nan", None)


def test_a_launcher_of_notebooks_repeats_what_a_process_of_its_own_raised(tmp_path: Path) -> None:
    rows = (
        "RuntimeError: An issue was found when launching the training: ",
        "",
        "-- Process 5 terminated with the following error:",
        "Traceback (most recent call last):",
        '  File "spawn.py", line 75, in _wrap',
        "ValueError: bad label",
    )
    cause = first_cause(tmp_path, *rows)
    assert cause is not None
    assert (cause.kind, cause.ranks) == ("exception", (5,))


def test_others_wait_while_a_bar_shows_a_process_that_reads_for_long(tmp_path: Path) -> None:
    bar = " 35%|███▌      | 63811210851/208140108456 [30:01<57:14, 38115047.81MB/s]"
    work = "WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1802346 milliseconds"
    wait = (
        f"[E ProcessGroupNCCL.cpp:9] [Rank 6] Watchdog caught collective operation timeout: {work}"
    )
    cause = first_cause(tmp_path, bar, f"{wait} before timing out.")
    assert cause is not None
    assert (cause.cause_class.value, cause.kind, cause.ranks) == ("data", "data_stall", None)


def test_of_tasks_that_ended_by_codes_of_their_own_none_is_named(tmp_path: Path) -> None:
    rows = (
        "RuntimeError: NCCL error in: /pytorch/torch/lib/c10d/NCCLUtils.hpp:82, invalid argument",
        "srun: error: host-0: tasks 2-7: Exited with exit code 1",
        "srun: error: host-1: task 14: Exited with exit code 1",
    )
    cause = first_cause(tmp_path, *rows)
    assert cause is not None
    assert (cause.kind, cause.ranks) == ("nccl_usage", None)


def test_torchs_events_of_failed_workers_are_ends(tmp_path: Path) -> None:
    event = '{"name": "torchelastic.worker.status.FAILED", "metadata": {"global_rank": 3, '
    cause = first_cause(tmp_path, event + '"worker_id": "11376", "raw_error": "<NONE>"}}')
    assert cause is not None
    assert (cause.kind, cause.ranks) == ("exit_code", (3,))
