"""Spans reach a rank's file in the recorded steps only."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from serried.action import ActionKind
from serried.runtime.job.settings import TrainSettings
from serried.runtime.recording.training import TrainingRecorder, run_before
from serried.trace.model.record import read_rank_record


def test_only_steps_of_the_window_are_kept(tmp_path: Path) -> None:
    settings = TrainSettings(world_size=1, trace_dir=tmp_path, trace_steps=(1, 3))
    recorder = TrainingRecorder.of(settings, run="r", rank=0, backend="gloo")
    for step in range(4):
        recorder.begin_step(step)
        start = recorder.begin()
        recorder.tracer.keep_since(start, ActionKind.SEND_F, 2, 5, 7)
        recorder.end(start, ActionKind.OPTIMIZER)
    recorder.close()
    read = read_rank_record(tmp_path / "rank-00000.spans")
    job = read.header.job
    assert job == settings.job("gloo")
    assert (job.device, job.threads) == ("cpu", torch.get_num_threads())
    assert job.cores >= 1
    assert (job.model["hidden"], job.model["vocab"], job.training["dtype"]) == (64, 256, "float32")
    assert [(span.step, str(span.action), span.peer) for span in read.spans] == [
        (1, "2SEND_F5", 7),
        (1, "OPTIMIZER", -1),
        (2, "2SEND_F5", 7),
        (2, "OPTIMIZER", -1),
    ]


def test_an_exchange_belongs_to_the_computation_that_runs(tmp_path: Path) -> None:
    recorder = TrainingRecorder.of(
        TrainSettings(world_size=1, trace_dir=tmp_path), run="r", rank=0, backend="gloo"
    )
    recorder.begin_step(0)
    for microbatch in (4, 5):
        recorder.begin(2, microbatch)
        work = recorder.tracer.work
        with recorder.tracer.exchange(ActionKind.RING, work.stage, work.microbatch, 7):
            pass
    recorder.close()
    spans = read_rank_record(tmp_path / "rank-00000.spans").spans
    assert [(str(span.action), span.peer) for span in spans] == [("2RING4", 7), ("2RING5", 7)]


def test_an_attempt_after_a_restart_goes_on_with_the_run_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "0")
    settings = TrainSettings(world_size=1, trace_dir=tmp_path)
    assert run_before(None) == run_before(tmp_path) == ""
    TrainingRecorder.of(settings, run="r", rank=0, backend="gloo").close()
    assert run_before(tmp_path) == ""  # what stands here is another job's
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert run_before(tmp_path / "restart-1") == "r"


def test_without_a_trace_folder_nothing_is_written(tmp_path: Path) -> None:
    recorder = TrainingRecorder.of(TrainSettings(world_size=1), run="r", rank=0, backend="gloo")
    recorder.begin_step(0)
    recorder.end(recorder.begin(0, 0), ActionKind.F, 0, 0)
    recorder.close()
    assert list(tmp_path.iterdir()) == []
