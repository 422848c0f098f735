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
    ],
)
def test_a_line_of_a_rank_is_its_own(tmp_path: Path, line: str) -> None:
    cause = first_cause(tmp_path, line)
    assert cause is not None
    assert (cause.kind, cause.ranks) == ("exception", (3,))


@pytest.mark.parametrize(
    ("line", "kind"),
    [
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
