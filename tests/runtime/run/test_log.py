"""The log file holds one JSON line a step, there as soon as the step is over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tensorboard.summary.writer.record_writer import RecordWriter

from serried.errors import InputError
from serried.runtime.job.report import (
    Event,
    Learned,
    LogLost,
    MemoryPeaks,
    RankReport,
    Resumed,
    Saved,
    Started,
    StepDone,
    Validated,
)
from serried.runtime.job.settings import CheckpointSettings, Emulated, TrainSettings
from serried.runtime.run import log as run_log
from serried.runtime.run.log import RunLog
from serried.runtime.run.tensorboard import EventFile

RANK = RankReport(
    rank=0,
    pid=1,
    device="cpu",
    coordinates={},
    groups={},
    modules=(),
    parameter_bytes=0,
    reads_data=True,
)


def test_each_step_is_a_line_that_can_be_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    told: list[Event] = []
    with RunLog(TrainSettings(world_size=1, log_file=path), told.append) as log:
        log.tell(Started("run", (RANK,)))
        log.tell(StepDone(0, 5.5, 12.3456, Learned(2.5, 1e-3, 1024.0, False), 2048.04))
        first = json.loads(path.read_text())
        log.tell(StepDone(1, 5.25, 10.0))
        result = log.result()
    assert first == {
        "step": 0,
        "loss": 5.5,
        "compute": "real",
        "duration_ms": 12.346,
        "tokens_per_s": 2048.0,
        "grad_norm": 2.5,
        "lr": 0.001,
        "loss_scale": 1024.0,
        "skipped": False,
    }
    assert [json.loads(line)["loss"] for line in path.read_text().splitlines()] == [5.5, 5.25]
    assert (result.run, result.ranks, result.losses) == ("run", (RANK,), [5.5, 5.25])
    assert told == [Started("run", (RANK,)), *result.steps]


@pytest.mark.parametrize("loss", [None, float("nan"), float("inf")])
def test_a_loss_that_is_no_number_is_null(tmp_path: Path, loss: float | None) -> None:
    path = tmp_path / "log.jsonl"
    settings = TrainSettings(world_size=1, log_file=path, emulated=Emulated())
    with RunLog(settings, lambda event: None) as log:
        log.tell(StepDone(0, loss, 1.0))
    assert json.loads(path.read_text()) == {
        "step": 0,
        "loss": None,
        "compute": "emulated",
        "duration_ms": 1.0,
        "tokens_per_s": 0.0,
    }


def test_a_norm_that_overflowed_is_null_and_its_step_skipped(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with RunLog(TrainSettings(world_size=1, log_file=path), lambda event: None) as log:
        log.tell(StepDone(0, 5.5, 1.0, Learned(float("inf"), 1e-3, 1024.0, True)))
    line = json.loads(path.read_text())
    assert (line["grad_norm"], line["loss_scale"], line["skipped"]) == (None, 1024.0, True)


def test_a_log_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "log.jsonl"
    with (
        pytest.raises(InputError) as refused,
        RunLog(TrainSettings(world_size=1, log_file=path), lambda event: None),
    ):
        pass
    assert str(refused.value) == f"log file {path} cannot be written: No such file or directory"


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_else_happens_is_a_line_with_an_event(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with RunLog(TrainSettings(world_size=1, log_file=path), lambda event: None) as log:
        log.tell(Validated(3, 5.5, 352, 12.3456))
        log.tell(Saved(3, "runs/step-000003", 1.0))
        log.tell(Saved(6, "runs/step-000006", 1.0, "No space left on device"))
    place = {"path": "runs/step-000006", "stall_ms": 1.0}
    assert lines(path) == [
        {"step": 3, "event": "validated", "loss": 5.5, "bytes": 352, "duration_ms": 12.346},
        {"step": 3, "event": "saved", "path": "runs/step-000003", "stall_ms": 1.0},
        {"step": 6, "event": "not saved", **place, "reason": "No space left on device"},
    ]


def log_steps(settings: TrainSettings, steps: range, *events: Event) -> None:
    with RunLog(settings, lambda event: None) as log:
        log.tell(Started("run", (RANK,)))
        for event in events:
            log.tell(event)
        for step in steps:
            log.tell(StepDone(step, 5.0 - step / 10, 1.0))


def test_a_run_that_resumes_goes_on_in_its_log_file(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    settings = TrainSettings(
        world_size=1, log_file=path, checkpoints=CheckpointSettings(tmp_path, every=1, resume=True)
    )
    log_steps(settings, range(4))
    with path.open("a") as file:
        file.write('{"step": 2, "event": "saved"}\n{"step": 3, "event": "saved"}\n{"step": 4, "lo')
    log_steps(settings, range(2, 4), Resumed(2, "runs/step-000002"))
    assert [(line["step"], line.get("event")) for line in lines(path)] == [
        (0, None),
        (1, None),
        (2, "saved"),
        (2, "resumed"),
        (2, None),
        (3, None),
    ]


def test_a_run_that_begins_anew_begins_its_log_file_anew(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    settings = TrainSettings(
        world_size=1, log_file=path, checkpoints=CheckpointSettings(tmp_path, resume=True)
    )
    for _ in range(2):
        log_steps(settings, range(3))
        assert [line["step"] for line in lines(path)] == [0, 1, 2]


def test_what_gpus_held_at_most_is_a_line_and_in_the_result(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with RunLog(TrainSettings(world_size=1, log_file=path), lambda event: None) as log:
        log.tell(Started("run", (RANK,)))
        assert log.result().memory is None
        log.tell(MemoryPeaks(4, (3_000_000, 2_000_000)))
        result = log.result()
    assert json.loads(path.read_text()) == {
        "step": 4,
        "event": "memory",
        "peak_bytes": [3_000_000, 2_000_000],
    }
    assert result.memory == MemoryPeaks(4, (3_000_000, 2_000_000))


class FullBoard(EventFile):
    """Is an event file whose disk is full after its first event."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._writer.close()
        self._writer = RecordWriter(Path("/dev/full").open("wb"))  # noqa: SIM115  it closes it


@pytest.mark.parametrize("option", ["log_file", "tensorboard"])
def test_a_log_on_a_full_disk_is_given_up_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.setattr(run_log, "EventFile", FullBoard)
    place = tmp_path if option == "tensorboard" else Path("/dev/full")
    told: list[Event] = []
    with RunLog(TrainSettings(world_size=1, **{option: place}), told.append) as log:  # type: ignore[arg-type]
        log.tell(Started("run", (RANK,)))
        for step in range(3):
            log.tell(StepDone(step, 5.5, 1.0))
        result = log.result()
    lost = LogLost(str(place), "No space left on device")
    assert [event for event in told if isinstance(event, LogLost)] == [lost]
    assert (len(result.steps), result.lost) == (3, (lost,))


def test_checkpoints_that_were_and_were_not_written_are_in_the_result() -> None:
    good, bad = Saved(2, "runs/step-000002", 1.0), Saved(4, "runs/step-000004", 1.0, "no space")
    with RunLog(TrainSettings(world_size=1), lambda event: None) as log:
        log.tell(Started("run", (RANK,)))
        for event, is_saved in ((good, True), (bad, False), (good, True)):
            log.tell(event)
            assert log.result().is_saved is is_saved
        assert log.result().saved == (good, bad, good)
