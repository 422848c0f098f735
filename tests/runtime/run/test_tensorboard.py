"""TensorBoard reads what a run wrote, also of a run that went back to a checkpoint."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from serried.errors import EnvironmentProblem, InputError
from serried.runtime.job.report import Learned, Resumed, StepDone, Validated
from serried.runtime.job.settings import TrainSettings
from serried.runtime.run.log import RunLog
from serried.runtime.run.tensorboard import EventFile, require_tensorboard


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Returns what TensorBoard itself finds."""
    found = EventAccumulator(str(folder))
    found.Reload()
    return {
        tag: [(event.step, event.value) for event in found.Scalars(tag)]
        for tag in found.Tags()["scalars"]
    }


def test_losses_and_what_the_optimizer_did_are_scalars(tmp_path: Path) -> None:
    settings = TrainSettings(world_size=1, tensorboard=tmp_path / "board")
    with RunLog(settings, lambda event: None) as log:
        log.tell(StepDone(0, 5.5, 250.0, Learned(2.5, 0.5, None, False), 2048.0))
        log.tell(StepDone(1, None, 125.0, Learned(float("inf"), 0.25, 1024.0, True), 4096.0))
        log.tell(Validated(2, 5.25, 352, 1.0))
    assert scalars(tmp_path / "board") == {
        "loss/training": [(0, 5.5)],
        "loss/validation": [(1, 5.25)],
        "gradient norm": [(0, 2.5)],
        "lr": [(0, 0.5), (1, 0.25)],
        "loss scale": [(1, 1024.0)],
        "speed/step ms": [(0, 250.0), (1, 125.0)],
        "speed/tokens per s": [(0, 2048.0), (1, 4096.0)],
    }


def test_steps_that_are_run_again_stand_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "tensorboard")  # it says that it forgets, as it is to
    settings = TrainSettings(world_size=1, tensorboard=tmp_path)
    for losses, first in (((5.0, 4.0, 3.0), 0), ((4.5, 3.5), 1)):
        with RunLog(settings, lambda event: None) as log:
            if first:
                log.tell(Resumed(first, "runs/step-000001"))
            for step, loss in enumerate(losses, first):
                log.tell(StepDone(step, loss, 1.0))
    assert scalars(tmp_path)["loss/training"] == [(0, 5.0), (1, 4.5), (2, 3.5)]


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError) as refused:
        EventFile(tmp_path / "file")
    assert str(refused.value) == (
        f"TensorBoard folder {tmp_path}/file cannot be written: File exists"
    )


def test_without_tensorboard_what_installs_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    require_tensorboard()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EnvironmentProblem) as refused:
        require_tensorboard()
    assert str(refused.value) == (
        "TensorBoard's files need the tensorboard package, which is not installed; install it "
        "with: pip install 'serried[tensorboard]'"
    )
