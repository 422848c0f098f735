"""A run that is still being written: read again once every rank has finished another step."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from serried.action import ActionKind
from serried.trace.formats.reading import read_trace
from serried.trace.model.record import RecordHeader
from serried.trace.model.record_writer import RecordWriter
from serried.views.web.trace.live import SILENT_S, STILL, LiveRun, LiveRuns
from serried.views.web.trace.payload import NamedTrace
from tests.trace.recorded_run import Run
from tests.trace.simulated_run import simulated_run

RUN = Run(pp=1, dp=2, num_microbatches=1)


class Job:
    """Is a job of two ranks that records one step after another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # In an hour's time, so that however busy this machine is no rank has been idle for long.
        self.begin_ns = time.monotonic_ns() + 3_600_000_000_000
        folder.mkdir()
        self.writers = [
            RecordWriter(folder, RecordHeader(run="live", rank=rank, job=RUN.job))
            for rank in range(RUN.world_size)
        ]

    def step(self, number: int, *ranks: int) -> None:
        for rank in ranks or range(RUN.world_size):
            at = self.begin_ns + 1_000 * number
            for kind, begin in ((ActionKind.F, at), (ActionKind.B, at + 200)):
                self.writers[rank].add(kind, begin, begin + 150, step=number, stage=0, microbatch=0)

    def close(self) -> None:
        for each in self.writers:
            each.close()


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    job = Job(tmp_path / "live")
    job.step(0)
    job.step(1)
    yield job
    job.close()


def steps(named: NamedTrace) -> list[int]:
    return sorted({*named.trace.spans.step.tolist()})


def followed(job: Job) -> LiveRun:
    return LiveRun(NamedTrace("live", read_trace([job.folder]), place=job.folder))


def test_a_step_that_every_rank_finished_is_read(job: Job) -> None:
    live = followed(job)
    assert live.look()["state"] == "growing"
    assert live.revision == 0
    for number in (2, 3):
        job.step(number)
    assert live.look() | {"note": None} == STILL | {"state": "growing", "revision": 1}
    assert steps(live.named) == [0, 1, 2, 3]


def test_a_step_that_one_rank_has_not_begun_is_waited_for(job: Job) -> None:
    live = followed(job)
    job.step(2, 0)
    job.step(3, 0)
    assert live.look()["revision"] == 0
    job.step(2, 1)
    job.step(3, 1)
    assert live.look()["revision"] == 1


def test_a_run_that_ends_is_read_to_its_end(job: Job) -> None:
    live = followed(job)
    job.step(2)
    job.close()
    assert live.look()["state"] == "ended"
    assert steps(live.named) == [0, 1, 2]
    assert live.look()["revision"] == 1


def test_a_run_opened_within_its_last_step_is_read_to_its_end(job: Job) -> None:
    job.step(2, 0)
    live = followed(job)
    job.step(2, 1)
    job.close()
    assert live.look()["state"] == "ended"
    spans = live.named.trace.spans
    assert (spans.step == 2).sum() == 4
    assert not live.named.trace.torn


def test_a_run_whose_ranks_record_nothing_more_is_said_to_be_silent(job: Job) -> None:
    live, now = followed(job), [0.0]
    live.clock = lambda: now[0]
    assert live.look()["note"] is None
    now[0] = SILENT_S - 1
    assert live.look()["note"] is None
    now[0] = 2.5 * SILENT_S
    told = live.look()
    assert told["state"] == "growing"
    assert f"no rank has recorded a span for {2 * SILENT_S} s" in told["note"]["en"]
    assert f"serried diagnose {job.folder}" in told["note"]["zh"]
    job.step(2)
    job.step(3)
    assert live.look()["note"] is None


def test_it_is_not_read_again_before_some_times_as_long_have_passed(job: Job) -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    live = followed(job)
    live.clock = clock
    job.step(2)
    job.step(3)
    assert live.look()["revision"] == 1
    job.step(4)
    assert live.look()["revision"] == 1
    now[0] += 100
    assert live.look()["revision"] == 2


def test_files_that_vanish_are_told_and_what_was_read_stays(job: Job) -> None:
    traces = [NamedTrace("live", read_trace([job.folder]), place=job.folder)]
    live = LiveRuns(traces)
    assert live.look(0)["state"] == "growing"
    shutil.rmtree(job.folder)
    told = live.look(0)
    assert told["state"] == "gone"
    assert told["note"]["en"].startswith(f"{job.folder} is not there any more; what was read of it")
    assert "不在了" in told["note"]["zh"]
    assert steps(traces[0]) == [0, 1]


def test_what_no_recorder_writes_stands_still(tmp_path: Path) -> None:
    assert LiveRun(NamedTrace("sim", simulated_run())).look() == STILL
    assert LiveRun(NamedTrace("sim", simulated_run(), place=tmp_path)).look() == STILL
