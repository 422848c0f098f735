"""Spans reach a rank's file in the recorded steps only."""

from __future__ import annotations

from pathlib import Path

from serried.runtime.recording import Recording
from serried.runtime.settings import TrainSettings
from serried.span import ActionKind
from serried.trace.record import read_recording


def test_only_steps_of_the_window_are_kept(tmp_path: Path) -> None:
    settings = TrainSettings(world_size=1, trace_dir=tmp_path, trace_steps=(1, 3))
    recording = Recording.of(settings, run="r", rank=0, backend="gloo")
    for step in range(4):
        recording.begin_step(step)
        start = recording.now()
        recording.add(ActionKind.SEND_F, start, recording.now(), 2, 5, 7)
        recording.add(ActionKind.OPTIMIZER, start, recording.now())
    recording.close()
    read = read_recording(tmp_path / "rank-00000.spans")
    assert read.header.job == settings.job("gloo")
    assert [(span.step, str(span.action), span.peer) for span in read.spans] == [
        (1, "2SEND_F5", 7),
        (1, "OPTIMIZER", -1),
        (2, "2SEND_F5", 7),
        (2, "OPTIMIZER", -1),
    ]


def test_without_a_trace_folder_nothing_is_written(tmp_path: Path) -> None:
    recording = Recording.of(TrainSettings(world_size=1), run="r", rank=0, backend="gloo")
    recording.begin_step(0)
    recording.add(ActionKind.F, 1, 2, 0, 0)
    recording.close()
    assert list(tmp_path.iterdir()) == []
