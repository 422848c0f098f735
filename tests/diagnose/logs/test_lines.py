"""Single lines as programs print them: each is told apart from progress and put into its class."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from serried.diagnose.causes.logs.order import log_causes
from serried.diagnose.diagnosis import Cause
from serried.diagnose.evidence.log_file import LogFile
from serried.diagnose.evidence.text.reader import text_signs

LINES = Path(__file__).with_name("lines.txt")
"""A class and a line on each row, written for this test in the form that programs print."""


def first_cause(folder: Path, *rows: str) -> Cause | None:
    (folder / "job.log").write_text("step 1\n" * 20 + "\n".join(rows) + "\n", encoding="utf-8")
    log = LogFile(folder / "job.log", "job.log")
    return next(log_causes(list(text_signs(log.lines()))), None)


def test_a_line_falls_into_its_class_without_any_other(tmp_path: Path) -> None:
    wrong = []
    for row in LINES.read_text("utf-8").splitlines():
        wanted, line = row.split("|", 1)
        cause = first_cause(tmp_path, line)
        found = cause.cause_class.value if cause else "no_fault"
        if found != wanted:
            wrong.append(f"{found}, not {wanted}: {line}")
    assert wrong == []


@pytest.mark.parametrize(
    "line",
    [
        '{"log":"[rank2]: ValueError: bad label\\n","time":"2026-01-02T03:04:05Z"}',
        '{"level":"error","rank":2,"msg":"ValueError: bad label"}',
        '{"event":"x","rank":2,"exception_type":"ValueError","exception_message":"bad label"}',
        "> [rank2]: ValueError: bad label",
        "&gt; [rank2]: ValueError: bad label",
        "[36m(Worker pid=7)[0m [rank2]: ValueError: bad label",
        "(worker1, rank=2, pid=77, ip=10.0.0.3) ValueError: bad label",
        "[2]<stderr>:ValueError: bad label",
    ],
)
def test_a_line_is_read_through_what_carries_it(tmp_path: Path, line: str) -> None:
    cause = first_cause(tmp_path, line)
    assert cause is not None
    assert (cause.kind, cause.ranks) == ("exception", (2,))
    assert "ValueError: bad label" in str(cause.verdict)


@pytest.mark.parametrize(
    "line", ['{"a": 1', '{"x": [' * 2000, '{"msg": 7}', json.dumps({"m": "x"})]
)
def test_json_that_carries_no_text_is_only_a_line(tmp_path: Path, line: str) -> None:
    assert first_cause(tmp_path, line) is None


def test_a_rank_is_named_by_the_line_above_how_it_ended(tmp_path: Path) -> None:
    hydra = "=   RANK 3 PID 77 RUNNING AT n1", "=   KILLED BY SIGNAL: 9 (Killed)"
    orte = "  Process name: [[5,1],3]", "  Exit code:    1"
    killed, failed = first_cause(tmp_path, *hydra), first_cause(tmp_path, *orte)
    assert killed is not None and (killed.kind, killed.ranks) == ("rank_killed", (3,))
    assert failed is not None and (failed.kind, failed.ranks) == ("exit_code", (3,))


def test_a_traceback_without_its_end_tells_where_it_was(tmp_path: Path) -> None:
    begins = "[rank1]: Traceback (most recent call last):"
    cause = first_cause(
        tmp_path, begins, '[rank1]:   File "/t/torch/serialization.py", line 9, in save'
    )
    assert cause is not None
    assert (cause.cause_class.value, cause.kind, cause.ranks) == ("storage", "cut_traceback", None)


def test_a_traceback_without_its_end_tells_more_than_the_launchers_of_its_process(
    tmp_path: Path,
) -> None:
    begins, spawn = (
        "Traceback (most recent call last):",
        '  File "/t/torch/multiprocessing/spawn.py"',
    )
    raised = "torch.multiprocessing.spawn.ProcessRaisedException:"
    parent = [begins, f"{spawn}, line 150, in join", raised, ""]
    header = "-- Process 1 terminated with the following error:"
    child = [header, begins, f"{spawn}, line 59, in _wrap"]
    inner = '  File "/t/torch/distributed/distributed_c10d.py", line 538, in init_process_group'
    told = first_cause(tmp_path, *parent, *child, inner)
    assert told is not None
    assert (told.cause_class.value, told.kind) == ("startup", "cut_traceback")
    untold = first_cause(tmp_path, *parent, *child)
    assert untold is not None and untold.kind == "exit_code"


@pytest.mark.parametrize(
    ("line", "kind", "ranks"),
    [
        ("exits with return code = -9", "rank_killed", None),
        ("Rank 3  exit_code=137", "rank_killed", 3),
        (
            "[launch.py:315:sigkill_handler] ['python'] exits with return code = -9",
            "rank_killed",
            None,
        ),
        (
            "DDP expects same model across all ranks, but Rank 0 has 15 params, while rank 1 has "
            "inconsistent 0 params.",
            "timeout_unknown",
            None,
        ),
        (
            'torch.multiprocessing.spawn got error "process 3 terminated with exit code 1"',
            "exit_code",
            3,
        ),
        (
            "*** The MPI_Comm_rank() function was called before MPI_INIT was invoked.",
            "init_environment",
            (),
        ),
        ('    raise _env_error("MASTER_ADDR")', "init_environment", ()),
        ("python: can't open file 'x.py': [Errno 2] No such file", "launch_failed", None),
        (
            "host-1:7:7 [3] graph/rings.cc:51 NCCL WARN Error : ring 1 does not contain rank 0\n"
            "api: [ERROR] failed (exitcode: -11) local_rank: 2 (pid: 6) of binary: python",
            "nccl_rings",
            None,
        ),
    ],
)
def test_a_line_tells_what_failed_where_no_other_stands_beside_it(
    tmp_path: Path, line: str, kind: str, ranks: int | tuple[int, ...] | None
) -> None:
    cause = first_cause(tmp_path, line)
    assert cause is not None
    assert (cause.kind, cause.ranks) == (kind, (ranks,) if isinstance(ranks, int) else ranks)


def test_a_watchdogs_line_that_breaks_off_is_a_time_out(tmp_path: Path) -> None:
    cause = first_cause(tmp_path, "[E ProcessGroupNCCL.cpp:587] [Rank 1] Watchdog caught coll")
    assert cause is not None and (cause.kind, cause.ranks) == ("timeout_unknown", None)


def test_an_error_that_no_rule_knows_is_shown_but_accuses_nobody(tmp_path: Path) -> None:
    cause = first_cause(tmp_path, "[rank3]: 2026-01-02 ERROR frobnicator lost its marbles")
    assert cause is not None
    assert (cause.kind, cause.ranks) == ("marked_line", None)
    assert cause.confidence < 0.5
    assert "lost its marbles" in str(cause.verdict)


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:0000:01:00): 9999999999999999999999937, x",
        "nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 99999999999999999999999, Fatal",
        "[rank1]:[E P.cpp:6] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL",
        "Work ran for 3 minutes",
    ],
)
def test_numbers_too_long_and_lines_cut_anywhere_end_no_reading(tmp_path: Path, line: str) -> None:
    cause = first_cause(tmp_path, line)
    assert cause is None or str(cause.verdict)
