"""A recorded job exports its own figures: to Prometheus and OpenTelemetry, till after its death."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import serried
from serried.runtime.recording import api as recorder_doors
from serried.runtime.recording.beside import SAID_FILE, exports_asked, watch_beside
from tests.runtime.test_watched_job import until
from tests.views.cli.diagnose.otlp_receiver import Receiver
from tests.views.cli.diagnose.otlp_receiver import receiver as receiver
from tests.views.cli.diagnose.test_metrics import Samples, scraped

_GONE = ("serried_notices_total", "gone")
TRAINING = """
import sys, time, torch, serried
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [torch.randn(2, 4)] * int(sys.argv[2])
for batch in serried.record(batches, sys.argv[1], metrics="0"):
    model(batch).sum().backward()
    optimizer.step()
    time.sleep(0.01)
"""


def test_a_job_is_scraped_while_it_trains_and_after_it_was_killed(tmp_path: Path) -> None:
    folder, found = tmp_path / "run", Samples()
    said = folder / SAID_FILE

    def has(*name: str) -> bool:
        found.clear()
        found.update(scraped(url))
        return name in found

    def has_told_of_the_end() -> bool:
        assert has("serried_step_seconds")  # every scrape tells what was measured last
        return _GONE in found

    command = [sys.executable, "-c", TRAINING, str(folder), "1000000"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as training:
        try:
            until(lambda: said.exists() and "/metrics" in said.read_text())
            (url,) = re.findall(r"http://\S+/metrics", said.read_text())
            until(lambda: has("serried_step_seconds"))
            assert found["serried_step_seconds",] > 0.01
            assert found["serried_world_size",] == 1
            os.kill(training.pid, signal.SIGKILL)
            until(has_told_of_the_end)
            training.communicate()  # ends, as the watch holds no pipe of the training's
        finally:
            training.kill()


def test_a_receiver_has_the_figures_of_a_job_that_has_ended(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERRIED_EXPORT", f"otlp={receiver.address}")
    for number in serried.record(range(30), tmp_path / "run", accumulate=1):
        with serried.span("F", microbatch=number):
            sum(range(10_000))
    recorder_doors.finish()
    until(lambda: receiver.points.get(("serried_job_ended",)) == 1)
    assert receiver.points["serried_step_seconds",] > 0
    assert receiver.points["serried_rank_step", "0"] == 29


def test_what_cannot_be_exported_is_logged_and_the_training_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "serried"):
        seen = list(serried.record(range(3), tmp_path / "run", export="carrier-pigeon"))
        until(lambda: bool(caplog.messages))
    recorder_doors.finish()
    assert seen == [0, 1, 2]
    assert "--export carrier-pigeon is none; it takes otlp" in " ".join(caplog.text.split())


@pytest.mark.parametrize("variable", ["RANK", "TORCHELASTIC_RESTART_COUNT"])
def test_one_rank_of_the_first_attempt_starts_the_watch(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "1")
    watch_beside(tmp_path, ("--metrics", "0"))
    assert not (tmp_path / SAID_FILE).exists()


def test_a_recording_that_exports_nothing_has_no_watch(tmp_path: Path) -> None:
    before = threading.active_count()
    list(serried.record(range(3), tmp_path / "run"))
    recorder_doors.finish()
    assert threading.active_count() == before
    assert not (tmp_path / "run" / SAID_FILE).exists()


def test_a_program_s_words_go_before_those_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SERRIED_METRICS", "9464")
    monkeypatch.setenv("SERRIED_EXPORT", "otlp tensorboard=logs")
    both = ("--export", "otlp", "--export", "tensorboard=logs")
    assert exports_asked() == ("--metrics", "9464", *both)
    assert exports_asked(0, ()) == ("--metrics", "0")
    assert exports_asked("", "otlp") == ("--export", "otlp")
