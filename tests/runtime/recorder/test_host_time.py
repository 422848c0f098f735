"""A host's clocks can be put in the place of this one's, for spans and for headers."""

from __future__ import annotations

import pickle
import socket
import time
from itertools import count
from pathlib import Path

import serried
from serried.action import ActionKind
from serried.runtime.job.settings import TrainSettings
from serried.runtime.recorder.host_time import HostTime
from serried.runtime.recording import api as recorder_doors
from serried.runtime.recording.training import TrainingRecorder
from serried.trace.model.record import boot_id, read_rank_record


def test_by_itself_it_is_this_host_s() -> None:
    host = HostTime()
    assert (host.name, host.boot) == (socket.gethostname(), boot_id())
    before = time.monotonic_ns(), time.time_ns()
    assert host.now_ns() >= before[0]
    assert host.wall_ns() >= before[1]
    assert pickle.loads(pickle.dumps(host)) == host


def test_a_clock_given_to_the_recorder_stamps_its_spans(tmp_path: Path) -> None:
    ticks = count(1_000, 10)
    host = HostTime(lambda: next(ticks), lambda: 77, "elsewhere", "its boot")
    for _ in serried.record(range(2), tmp_path, accumulate=1, clock=host):
        with serried.span("augment"):
            pass
    recorder_doors.finish()
    read = read_rank_record(tmp_path / "rank-00000.spans")
    header = read.header
    assert (header.host, header.boot, header.wall_ns) == ("elsewhere", "its boot", 77)
    assert 1_000 <= header.monotonic_ns < next(ticks)
    assert all(1_000 <= span.start_ns < span.end_ns < next(ticks) for span in read.spans)


def test_a_clock_given_to_training_stamps_its_spans(tmp_path: Path) -> None:
    ticks = count(1_000, 10)
    host = HostTime(lambda: next(ticks), lambda: 77, "elsewhere", "its boot")
    settings = TrainSettings(world_size=1, trace_dir=tmp_path)
    recorder = TrainingRecorder.of(settings, run="r", rank=0, backend="gloo", host=host)
    recorder.begin_step(0)
    recorder.end(recorder.begin(0, 0), ActionKind.F, 0, 0)
    recorder.close()
    read = read_rank_record(tmp_path / "rank-00000.spans")
    assert (read.header.host, read.header.monotonic_ns) == ("elsewhere", 1_000)
    assert [(span.start_ns, span.end_ns) for span in read.spans] == [(1_010, 1_020)]
