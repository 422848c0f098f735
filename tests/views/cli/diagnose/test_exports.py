"""``serried diagnose --watch --export``: what receivers and trackers get, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from serried.diagnose.watch.watching import Notice
from serried.errors import InputError
from serried.finding import said
from serried.views.cli.diagnose.exports import exporter_of
from serried.views.cli.diagnose.told import WatchedState, WatchListener
from tests.conftest import Call
from tests.trace.recorded_run import Run
from tests.views.cli.diagnose.otlp_receiver import Receiver
from tests.views.cli.diagnose.otlp_receiver import receiver as receiver
from tests.views.cli.diagnose.test_metrics import FIGURES, LOOK

STATE = WatchedState(LOOK, FIGURES, 0.0, 30.0, has_ended=False)


def told(exporter: WatchListener) -> None:
    """Tells an exporter of a job at step 6, then of its end at step 9."""
    exporter.tell(STATE)
    exporter.hear(Notice(1000.0, "gone", said("a rank is gone"), (1,)))
    ranks = {rank: replace(each, step=9) for rank, each in LOOK.ranks.items()}
    figures = replace(FIGURES, step_s=0.75)
    exporter.tell(WatchedState(replace(LOOK, ranks=ranks), figures, 0.0, 30.0, has_ended=True))
    exporter.linger()


def test_an_otlp_receiver_gets_the_figures_with_their_units(receiver: Receiver) -> None:
    told(exporter_of(f"otlp={receiver.address}", "pp4"))
    found = receiver.points
    assert found["serried_step_seconds",] == 0.75
    assert found["serried_bubble_ratio",] == 0.25
    assert found["serried_rank_lateness_seconds", "0"] == 0.05
    assert ("serried_rank_lateness_seconds", "1") not in found
    assert found["serried_ranks", "gone"] == 1
    assert found["serried_notices", "gone"] == 1
    assert found["serried_job_ended",] == 1
    assert receiver.units["serried_step_seconds"] == "s"
    assert receiver.units["serried_bubble_ratio"] == "1"


def test_a_watched_recording_is_sent_as_it_was(
    receiver: Receiver, serried: Call, tmp_path: Path
) -> None:
    Run(num_steps=6).write(tmp_path / "run")
    where = f"otlp={receiver.address}/v1/metrics"
    serried("diagnose", "--watch", str(tmp_path / "run"), "--every", "0.01", "--export", where)
    assert receiver.points["serried_job_ended",] == 1
    assert receiver.points["serried_step_seconds",] > 0
    assert 0 < receiver.points["serried_bubble_ratio",] < 1


def test_tensorboard_reads_the_figures_by_step(tmp_path: Path) -> None:
    told(exporter_of(f"tensorboard={tmp_path}", "pp4"))
    read = EventAccumulator(str(tmp_path / "pp4"))
    read.Reload()
    steps = [(each.step, each.value) for each in read.Scalars("serried/step_seconds")]
    assert steps == [(6, 0.5), (9, 0.75)]
    late = read.Scalars("serried/rank_lateness_seconds/0")
    assert [each.value for each in late] == pytest.approx([0.05, 0.05])
    assert [each.value for each in read.Scalars("serried/notices/gone")] == [1]


def test_a_step_is_logged_once(tmp_path: Path) -> None:
    exporter = exporter_of(f"tensorboard={tmp_path}", "pp4")
    exporter.tell(STATE)
    exporter.tell(STATE)
    exporter.linger()
    read = EventAccumulator(str(tmp_path / "pp4"))
    read.Reload()
    assert [each.step for each in read.Scalars("serried/step_seconds")] == [6]


@pytest.mark.adapters
def test_mlflow_keeps_the_figures_by_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow.tracking import MlflowClient

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # its small package has no database
    store = tmp_path.as_uri()
    told(exporter_of(f"mlflow={store}", "pp4"))
    client = MlflowClient(store)
    experiment = client.get_experiment_by_name("serried")
    assert experiment is not None
    [run] = client.search_runs([experiment.experiment_id])
    history = client.get_metric_history(run.info.run_id, "serried/step_seconds")
    assert [(each.step, each.value) for each in history] == [(6, 0.5), (9, 0.75)]
    assert (run.info.run_name, run.info.status) == ("pp4", "FINISHED")


def records(log: bytes) -> Iterator[Any]:
    """Yields the records of a run of W&B: of a short one, all are in a block."""
    from wandb.proto.wandb_internal_pb2 import Record

    at = 7
    while at + 7 <= len(log) < 1 << 15:
        size = int.from_bytes(log[at + 4 : at + 6], "little")
        yield Record.FromString(log[at + 7 : at + 7 + size])
        at += 7 + size


@pytest.mark.adapters
def test_wandb_keeps_the_figures_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    import wandb

    told(exporter_of("wandb=tests", "pp4"))
    wandb.teardown()  # its service has written all when it is gone
    [file] = tmp_path.glob("wandb/offline-run-*/*.wandb")
    found = [
        float(item.value_json)
        for record in records(file.read_bytes())
        for item in record.history.item
        if "serried/step_seconds" in (item.key, *item.nested_key)
    ]
    assert found == [0.5, 0.75]


@pytest.mark.adapters
def test_what_mlflow_refuses_is_told_in_its_own_words(
    serried: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE", raising=False)
    found = serried("diagnose", "--watch", str(tmp_path), "--export", f"mlflow={tmp_path.as_uri()}")
    assert found.code == 3
    assert "--export mlflow cannot begin: The filesystem tracking backend" in found.err


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("grafana", "--export grafana is none; it takes otlp, tensorboard, wandb or mlflow"),
        ("", "--export  is none"),
        ("otlp=collector:4318", "no address of a receiver"),
        ("otlp=ftp://collector", "no address of a receiver"),
        ("tensorboard", "needs a folder"),
    ],
)
def test_what_cannot_be_exported_to_is_refused(asked: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        exporter_of(asked, "pp4")


def test_a_missing_client_is_named_with_the_command_that_installs_it(
    serried: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    found = serried("diagnose", "--watch", str(tmp_path), "--export", "wandb")
    assert found.code == 3
    assert "pip install 'serried[wandb]'" in " ".join(found.err.split())


def test_exports_belong_to_a_watch(serried: Call, tmp_path: Path) -> None:
    found = serried("diagnose", str(tmp_path), "--export", "otlp")
    assert (found.code, "belong to --watch" in found.err) == (2, True)
