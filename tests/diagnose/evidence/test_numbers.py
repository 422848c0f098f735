"""Numbers within a node become ranks of the job where the log tells how its launchers count."""

from __future__ import annotations

import pytest

from serried.diagnose.causes.logs.order import log_causes
from serried.diagnose.diagnosis import Cause
from serried.diagnose.evidence.log_line import log_line
from serried.diagnose.evidence.numbers import is_of_one_launcher
from serried.diagnose.evidence.quote import Numbering, Quote, Speaker
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.text.reader import text_signs

KILLED = "E0325 20:57:27.62 2606 api.py:869] failed (exitcode: -9) local_rank: 3 (pid: 2630)"


def first_cause(*rows: str) -> Cause:
    lines = (log_line(row, "job.log", number) for number, row in enumerate(rows, 1))
    return next(log_causes(list(text_signs(lines))))


@pytest.mark.parametrize(
    ("rows", "ranks"),
    [
        ((), (3,)),
        (("  local_ranks=[0, 1, 2, 3]", "  global_ranks=[8, 9, 10, 11]"), (11,)),
        (("[INFO] [launch.py:1:main] nnodes=4, num_local_procs=4, node_rank=2",), (11,)),
        (("+ torchrun --nnodes=4 --nproc_per_node=4 --node_rank=2 train.py",), (11,)),
        (("+ torchrun --nnodes=4 --nproc_per_node=4 train.py",), None),
        (("+ torchrun --nnodes=1 --nproc_per_node=4 train.py",), (3,)),
        (("[rank57]: RuntimeError: Connection reset by peer",), None),
    ],
)  # fmt: skip
def test_a_local_rank_is_the_jobs_where_the_launcher_says_how(
    rows: tuple[str, ...], ranks: tuple[int, ...] | None
) -> None:
    cause = first_cause(*rows, KILLED)
    assert (cause.kind, cause.ranks) == ("rank_killed", ranks)


def test_each_node_counts_by_its_own_launcher() -> None:
    start = "{host}: [INFO] [launch.py:1:main] nnodes=2, num_local_procs=8, node_rank={node}"
    rows = [start.format(host=f"worker-{n}", node=n) for n in (0, 1)]
    assert first_cause(*rows, f"worker-1: {KILLED}").ranks == (11,)
    assert first_cause(*rows, f"worker-0: {KILLED}").ranks == (3,)
    assert first_cause(*rows, KILLED).ranks is None


def test_a_process_that_the_summary_leaves_out_is_of_another_node() -> None:
    summary = (
        "Root Cause (first observed failure):",
        "[0]:",
        "  rank      : 11 (local_rank: 3)",
        "  exitcode  : 1 (pid: 99)",
    )
    assert first_cause(*summary, KILLED).ranks is None
    assert first_cause(*summary, KILLED.replace("2630", "99")).ranks == (11,)


def test_a_process_that_ray_gave_a_rank_is_that_rank() -> None:
    started = [
        f"(TorchTrainer pid=9) - (ip=10.0.0.{node}, pid={70 + node}) world_rank={node * 4}, "
        f"local_rank=0, node_rank={node}"
        for node in range(4)
    ]
    error = "(RayTrainWorker pid=72, ip=10.0.0.2) ValueError: bad label"
    died = (
        "(raylet) A worker died or was killed while executing a task by an unexpected system "
        "error. Worker IP address: 10.0.0.3 Worker port: 1 Worker PID: 73 Worker exit type: "
        "SYSTEM_ERROR"
    )
    assert first_cause(*started, error).ranks == (8,)
    assert first_cause(*started, died).ranks == (12,)
    assert first_cause(died).ranks is None


SUMMARY = ("Root Cause (first observed failure):", "  rank      : 2 (local_rank: 2)",
           "  exitcode  : -6 (pid: 2630)")  # fmt: skip


@pytest.mark.parametrize(
    ("sources", "is_one"),
    [
        (("console.log", "t/attempt_0/2/stderr.log"), True),
        (("console.log", "other_console.log"), False),
        (("a/attempt_0/2/stderr.log", "b/attempt_0/2/stderr.log"), False),
    ],
)
def test_a_launcher_that_speaks_of_one_node_tells_whose_a_local_number_is(
    sources: tuple[str, ...], is_one: bool
) -> None:
    rows = [log_line(row, "console.log", number) for number, row in enumerate(SUMMARY, 1)]
    ended = [Sign("native_abort", Quote(at, 1, ""), Speaker(2, Numbering.LOCAL)) for at in sources]
    assert is_of_one_launcher([*text_signs(rows), *ended]) is is_one
    assert not is_of_one_launcher(ended)
