"""What failures do to a planned job: checkpoints in whole steps, days, spare nodes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from serried.plan.goodput import FailingJob, best_interval, goodput
from serried.plan.job_goodput import JobGoodput

JOB = FailingJob(16384, 50_000 * 3600, checkpoint_s=30, restart_s=600)


@pytest.mark.parametrize("step_s", [0.5, 8.2, 500.0, 10_000.0])
def test_no_other_whole_number_of_steps_between_checkpoints_is_better(step_s: float) -> None:
    told = JobGoodput(JOB, step_s)
    best = told.goodput.useful
    others = range(1, 2 * told.interval_steps + 3)
    assert best == max(goodput(JOB, count * step_s).useful for count in others)


def test_a_checkpoint_is_written_before_the_next_begins() -> None:
    job = replace(JOB, checkpoint_s=0.0, write_s=100.0)
    told = JobGoodput(job, step_s=30.0)
    assert told.interval_steps * told.step_s >= 100 >= best_interval(job)
    assert told.interval_steps == 4


def test_a_job_takes_longer_by_what_failures_take() -> None:
    told = JobGoodput(JOB, step_s=8.2, steps=20_000)
    assert told.work_s == pytest.approx(164_000)
    assert told.wall_s == pytest.approx(164_000 / told.goodput.useful)
    assert JobGoodput(JOB, step_s=8.2).wall_s is None


def test_spare_nodes_are_counted_only_where_nodes_are_away() -> None:
    assert JobGoodput(JOB, 8.2).spares is None
    away = JobGoodput(replace(JOB, repair_s=2 * 86400), 8.2).spares
    assert away is not None and away.count == 28
