"""What came first, a failure or the time-out, and whether a longer limit would have helped."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed
from serried.views.sentences import say

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.35 GiB."
NOON = datetime(2026, 3, 25, 12, 0, 0)


def stamp(seconds: float) -> str:
    return (NOON + timedelta(seconds=seconds)).strftime("%m%d %H:%M:%S.%f")


def waited(rank: int, until: float, ran: float = 600) -> str:
    return (
        f"[rank{rank}]:[E{stamp(until)} ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught "
        f"collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=8, NumelOut=8,"
        f" Timeout(ms)=600000) ran for {ran * 1000:.0f} milliseconds before timing out."
    )


def ran_out(rank: int, at: float) -> str:
    when = (NOON + timedelta(seconds=at)).isoformat(sep=" ")
    return f"{when} [rank{rank}]: {OOM}"


def cause_of(folder: Path, **logs: list[str]) -> Cause:
    for name, rows in logs.items():
        (folder / f"{name}.log").write_text("\n".join(rows) + "\n")
    return diagnosed(gather([folder])).causes[0]


def told(cause: Cause) -> str:
    return " / ".join(map(str, (*cause.chain, *cause.cures)))


@pytest.mark.parametrize(
    ("at", "answer"),
    [
        (-40, "this came first: 40 s before"),
        (10, "this came first: the wait that timed out began as it happened"),
        (200, "had already waited 200 s"),
        (680, "the time-out came first: this happened 80 s after it"),
    ],
)
def test_a_failure_is_placed_before_in_or_after_the_wait(
    tmp_path: Path, at: float, answer: str
) -> None:
    rows = [ran_out(3, at), waited(0, until=600), waited(1, until=600.2)]
    cause = cause_of(tmp_path, job=sorted(rows, key=len) if at < 600 else [*rows[1:], rows[0]])
    assert (cause.cause_class, cause.ranks) == (CauseClass.GPU_OOM, (3,))
    assert answer in told(cause)
    assert ("do not raise the time-out" in told(cause)) == (at < 600)


def test_a_line_without_a_time_lies_between_its_neighbours(tmp_path: Path) -> None:
    before = [
        f"W{stamp(-9)} 7 run.py:793] Warning: x",
        f"[rank3]: {OOM}",
        f"W{stamp(-5)} 7 y] Warning",
    ]
    assert "this came first: 5 s before" in told(cause_of(tmp_path, job=[*before, waited(0, 600)]))
    unknown = cause_of(tmp_path, job=[f"[rank3]: {OOM}", waited(0, until=600)])
    assert "cannot be told" in told(unknown)


def test_clocks_that_disagree_are_set_by_a_collective_that_both_saw(tmp_path: Path) -> None:
    three_hours = 3 * 3600
    cause = cause_of(
        tmp_path,
        rank_0=[waited(0, until=600)],
        rank_3=[ran_out(3, three_hours - 40), waited(3, until=three_hours + 600, ran=1)],
        rank_5=[waited(5, until=600)],
    )
    assert "this came first: 40 s before" in told(cause)
    assert "rank_3.log and rank_0.log disagree by about 10,800 s" in told(cause)


def test_a_clock_that_nothing_sets_is_not_trusted_over_hours(tmp_path: Path) -> None:
    cause = cause_of(tmp_path, rank_0=[waited(0, until=600)], rank_3=[ran_out(3, -3 * 3600)])
    assert "the clocks of the two logs may disagree by hours" in told(cause)
    near = cause_of(tmp_path, rank_0=[waited(0, until=600)], rank_3=[ran_out(3, -40)])
    assert "this came first: 40 s before" in told(near)


def test_an_end_in_another_file_follows_only_by_its_time(tmp_path: Path) -> None:
    killed = "run.py:9] failed (exitcode: -9) local_rank: 3 (pid: 7) of binary: python"
    late = cause_of(
        tmp_path, a_console=[f"E{stamp(700)} 7 {killed}"], rank_0=[waited(0, until=600)]
    )
    assert late.cause_class is CauseClass.HANG
    early = cause_of(
        tmp_path, a_console=[f"E{stamp(-5)} 7 {killed}"], rank_0=[waited(0, until=600)]
    )
    assert (early.cause_class, early.ranks) == (CauseClass.HOST_OOM, (3,))


def test_ranks_in_different_calls_are_not_given_more_time(tmp_path: Path) -> None:
    status = (
        "[rank{0}]:[E0325 ProcessGroupNCCL.cpp:9] [PG ID 0 PG GUID 0(default_pg) Rank {0}] x work: "
        "9, last enqueued NCCL work: 9, last completed NCCL work: 8."
    )
    rows = [waited(r, 600) for r in (0, 1, 2)]
    rows.append(waited(3, 600).replace("ALLREDUCE", "ALLGATHER"))
    cause = cause_of(tmp_path, job=[*rows, *(status.format(r) for r in range(4))])
    assert cause.kind == "mismatch_op"
    assert "do not raise the time-out: ranks in different calls never meet" in told(cause)


def test_work_that_takes_longer_than_the_limit_is_given_more_time(tmp_path: Path) -> None:
    cause = cause_of(tmp_path, job=["saving checkpoint at iteration 5", waited(0, until=600)])
    assert "raise the time-out above what this takes (the limit was 600 s)" in told(cause)


def test_the_answer_is_said_in_chinese_too(tmp_path: Path) -> None:
    cause = cause_of(tmp_path, job=[ran_out(3, -40), waited(0, until=600)])
    assert any("早 40 s" in say(each, "zh") for each in cause.chain)
