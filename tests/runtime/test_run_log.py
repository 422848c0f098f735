"""The log file holds one JSON line a step, there as soon as the step is over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.runtime.report import Event, RankReport, Started, StepDone
from serried.runtime.run_log import RunLog
from serried.runtime.settings import Emulated, TrainSettings

RANK = RankReport(
    rank=0, pid=1, device="cpu", coordinates={}, groups={}, modules=(), parameter_bytes=0
)


def test_each_step_is_a_line_that_can_be_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    told: list[Event] = []
    with RunLog(TrainSettings(world_size=1, log_file=path), told.append) as log:
        log.tell(Started("run", (RANK,)))
        log.tell(StepDone(0, 5.5, 12.3456))
        first = json.loads(path.read_text())
        log.tell(StepDone(1, 5.25, 10.0))
        result = log.result()
    assert first == {"step": 0, "loss": 5.5, "compute": "real", "duration_ms": 12.346}
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
    }


def test_a_log_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "log.jsonl"
    with (
        pytest.raises(InputError) as refused,
        RunLog(TrainSettings(world_size=1, log_file=path), lambda event: None),
    ):
        pass
    assert str(refused.value) == f"log file {path} cannot be written: No such file or directory"
