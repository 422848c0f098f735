"""The latest steps of a running job are measured from what was kept of every rank."""

from __future__ import annotations

from pathlib import Path

import pytest

from serried.action import ActionKind
from serried.diagnose.watch.figures import figures_in
from serried.diagnose.watch.following import FollowedJob
from serried.trace.model.record import RecordHeader, TracedJob
from serried.trace.model.record_writer import RecordWriter

JOB = TracedJob("megatron", 2, {"tp": 1, "pp": 1, "dp": 2}, "tp-cp-ep-dp-pp", "unknown", 1)
MS = 1_000_000


def record(folder: Path, rank: int, *, steps: int, forward_ms: int, period_ms: int = 20) -> None:
    """Writes steps of a forward, and of waiting for the other rank for what is left of 15 ms."""
    to = RecordWriter(folder, RecordHeader("run", rank, JOB, boot="b", host="h"))
    for step in range(steps):
        begin = step * period_ms * MS
        middle, end = begin + forward_ms * MS, begin + 15 * MS
        to.add(ActionKind.F, begin, middle, stage=0, microbatch=0, step=step)
        to.add(ActionKind.ALL_REDUCE, middle, end, step=step)
        to.add(ActionKind.OPTIMIZER, end, end + MS, step=step)
    to.close()


def test_step_time_idle_share_and_lateness_follow_the_latest_steps(tmp_path: Path) -> None:
    record(tmp_path, 0, steps=40, forward_ms=14)
    record(tmp_path, 1, steps=40, forward_ms=6)
    job = FollowedJob(tmp_path)
    job.look()
    figures = figures_in(job.latest)
    assert figures is not None
    assert figures.step_s == pytest.approx(0.020)
    assert figures.microbatches_per_s == pytest.approx(2 / 0.020)
    assert (figures.num_steps, figures.has_pipeline) == (22, False)  # of 24, neither end
    late, early = figures.ranks
    assert (late.rank, late.compute_s, late.waits_s) == pytest.approx((0, 0.014, 0.001))
    assert late.waited_for_s == pytest.approx(0.008)
    assert early.waited_for_s == pytest.approx(-0.008)


def test_a_step_that_some_rank_still_runs_is_not_measured(tmp_path: Path) -> None:
    record(tmp_path, 0, steps=2, forward_ms=14)
    record(tmp_path, 1, steps=2, forward_ms=14)
    job = FollowedJob(tmp_path)
    job.look()
    assert figures_in(job.latest) is None


def test_nothing_is_measured_where_nothing_was_written() -> None:
    assert figures_in([]) is None
