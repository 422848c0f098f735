"""A running job's folder is read as it grows, and never again what was read."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from serried.action import ActionKind
from serried.diagnose.evidence.records import guard_file
from serried.diagnose.watch import tails
from serried.diagnose.watch.following import FollowedJob
from serried.diagnose.watch.look import RankIs
from serried.trace.model.record import RecordHeader, TracedJob
from serried.trace.model.record_writer import RecordWriter

JOB = TracedJob("megatron", 2, {"tp": 1, "pp": 1, "dp": 2}, "tp-cp-ep-dp-pp", "unknown", 1)
MS = 1_000_000


def writer(folder: Path, rank: int, *, wall_ns: int | None = None) -> RecordWriter:
    header = RecordHeader("run", rank, JOB, wall_ns=wall_ns or time.time_ns())
    return RecordWriter(folder, header)


def steps(
    to: RecordWriter, first: int, last: int, *, forward_ms: int = 10, wait_ms: int = 5
) -> None:
    """Writes steps of 20 ms: a forward, and waiting for the other rank."""
    for step in range(first, last):
        begin = step * 20 * MS
        to.add(ActionKind.F, begin, begin + forward_ms * MS, stage=0, microbatch=0, step=step)
        end = begin + (forward_ms + wait_ms) * MS
        to.add(ActionKind.ALL_REDUCE, end - wait_ms * MS, end, step=step)


def left(to: RecordWriter, first: int, last: int) -> None:
    """Writes steps and ends."""
    steps(to, first, last)
    to.close()


def test_each_look_tells_what_was_added(tmp_path: Path) -> None:
    job = FollowedJob(tmp_path)
    assert job.look().ranks == {}
    first = writer(tmp_path, 0)
    steps(first, 0, 3)
    look = job.look()
    assert [(each.count, each.step) for each in look.ranks.values()] == [(6, 2)]
    assert look.world_size == 2
    late = writer(tmp_path, 1)
    steps(late, 0, 1)
    steps(first, 3, 5)
    look = job.look()
    assert [(each.count, each.step) for each in look.ranks.values()] == [(10, 4), (2, 0)]
    first.close()
    assert job.look().ranks[0].state is RankIs.DONE
    late.close()


def test_a_look_reads_only_what_is_new(tmp_path: Path) -> None:
    made = writer(tmp_path, 0)
    steps(made, 0, 40_000)
    job = FollowedJob(tmp_path)
    job.look()
    (tail,) = job._spans.values()
    assert tail.count == 80_000
    assert len(tail.table) == 2 * tails.KEPT_STEPS  # however long the run is
    # What was read may even be lost.
    with next(tmp_path.glob("*.spans")).open("r+b") as file:
        file.seek(4096)
        file.write(bytes(40 * 1000))
    steps(made, 40_000, 40_002)
    assert job.look().ranks[0].count == 80_004
    made.close()


def test_who_is_slow_in_the_latest_steps_is_told(tmp_path: Path) -> None:
    ranks = [writer(tmp_path, rank) for rank in range(2)]
    for rank, each in enumerate(ranks):
        steps(each, 0, 30, forward_ms=(8, 16)[rank], wait_ms=(10, 2)[rank])
    look = FollowedJob(tmp_path).look()
    assert look.slow is not None
    assert [cause.ranks for cause in look.slow] == [(1,)]
    for each in ranks:
        each.close()


def test_nobody_is_slow_where_ranks_are_alike(tmp_path: Path) -> None:
    ranks = [writer(tmp_path, rank) for rank in range(2)]
    for each in ranks:
        steps(each, 0, 30)
        each.close()
    assert FollowedJob(tmp_path).look().slow == ()


def test_the_folder_of_a_restart_is_what_counts(tmp_path: Path) -> None:
    before = writer(tmp_path, 0, wall_ns=1_000)
    steps(before, 0, 9)
    job = FollowedJob(tmp_path)
    assert job.look().ranks[0].attempt == 0
    (tmp_path / "restart-1").mkdir()
    again = writer(tmp_path / "restart-1", 0, wall_ns=2_000)
    steps(again, 4, 6)
    look = job.look()
    assert (look.ranks[0].attempt, look.ranks[0].step) == (1, 5)
    shutil.rmtree(tmp_path / "restart-1")  # files may vanish, too
    assert job.look().ranks[0].step == 8
    before.close()
    again.close()


def test_a_restart_with_fewer_ranks_leaves_out_those_that_are_no_more(tmp_path: Path) -> None:
    for rank in range(2):
        left(writer(tmp_path, rank, wall_ns=1_000), 0, 9)
    (tmp_path / "restart-1").mkdir()
    alone = replace(JOB, world_size=1, sizes={**JOB.sizes, "dp": 1})
    again = RecordWriter(tmp_path / "restart-1", RecordHeader("run", 0, alone, wall_ns=2_000))
    left(again, 4, 6)
    look = FollowedJob(tmp_path).look()
    assert ([*look.ranks], look.world_size) == ([0], 1)


def test_a_record_written_anew_under_its_name_is_begun_anew(tmp_path: Path) -> None:
    left(writer(tmp_path, 0, wall_ns=1_000), 0, 9)
    job = FollowedJob(tmp_path)
    assert job.look().ranks[0].count == 18
    next(tmp_path.glob("*.spans")).unlink()
    left(writer(tmp_path, 0, wall_ns=2_000), 3, 5)
    rank = job.look().ranks[0]
    assert (rank.count, rank.step) == (4, 4)


def test_logs_are_read_by_whole_lines_from_near_their_end(tmp_path: Path) -> None:
    log = tmp_path / "rank_1.log"
    log.write_bytes(b"loss: nan long ago\n" + b"x" * tails.LOG_FIRST_BYTES)
    job = FollowedJob(tmp_path)
    assert job.look().signs == ()
    with log.open("a") as file:
        file.write("\nstep 3 loss: na")
    assert job.look().signs == ()
    with log.open("a") as file:
        file.write("n lr 1e-4\n")
    (sign,) = job.look().signs
    assert (sign.speaker.rank, sign.quote.text) == (1, "step 3 loss: nan lr 1e-4")
    assert job.look().signs == ()
    log.write_text("loss: inf\n")  # emptied and begun anew
    assert [each.kind for each in job.look().signs] == ["nan"]


def test_steps_that_logs_tell_are_followed(tmp_path: Path) -> None:
    job = FollowedJob(tmp_path)
    for rank, time_ms in ((0, 100), (1, 100)):
        lines = [f"step {step} compute_ms 40 step_ms {time_ms}\n" for step in range(5 + rank)]
        (tmp_path / f"rank_{rank}.log").write_text("".join(lines))
    assert [each.step for each in job.look().ranks.values()] == [4, 5]


@pytest.mark.parametrize(
    ("ended", "pid", "state"),
    [
        (guard_file.RUNS, "own", RankIs.RUNNING),
        (guard_file.LEFT, "own", RankIs.DONE),
        (guard_file.FAILED, "own", RankIs.FAILED),
        (guard_file.RUNS, "another", RankIs.GONE),
    ],
)
def test_a_guard_tells_what_became_of_its_rank(
    tmp_path: Path, ended: int, pid: str, state: RankIs
) -> None:
    from serried.diagnose.evidence.records.process import start_of

    start = start_of(os.getpid()) if pid == "own" else 1
    header = guard_file.GuardHeader(
        RecordHeader("run", 1, JOB), os.getpid(), start, 1, 2, attempt=3
    )
    page = bytearray(header.packed())
    guard_file.AT.pack_into(page, guard_file.AT_PLACE, 41, 0, 0)
    guard_file.STEP.pack_into(page, guard_file.STEP_PLACE, 7)
    guard_file.STEP.pack_into(page, guard_file.ENDED_PLACE, ended)
    (tmp_path / guard_file.guard_name(1)).write_bytes(page)
    (rank,) = FollowedJob(tmp_path).look().ranks.values()
    assert (rank.count, rank.step, rank.attempt, rank.state) == (41, 7, 3, state)


def test_a_file_that_is_no_record_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "rank-00000.spans").write_bytes(b"serried\x01")
    (tmp_path / "rank-00001.guard").write_bytes(b"nonsense")
    assert FollowedJob(tmp_path).look().ranks == {}
