"""Whatever the disk does, the training goes on, and what is lost is said once."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

import serried as package
from serried.action import ActionKind
from serried.runtime.job.settings import TrainSettings
from serried.runtime.recorder.header import keep_run
from serried.runtime.recorder.window import SIGNAL, StepWindow
from serried.runtime.recording import api as recorder_doors
from serried.runtime.recording.training import TrainingRecorder
from serried.trace.merge.in_memory import merge
from serried.trace.model.record import file_name, read_rank_record
from tests.conftest import Call
from tests.runtime.small_disk import PAGE, small_disk

STEPS, SPANS, NAMES = 4, 100, 7
FEW = [PAGE, 2 * PAGE, 3 * PAGE, 5 * PAGE, 64 * PAGE]
"""Too small for a header and names, filled in the middle, large enough."""
ALL = [PAGE * count for count in range(1, 12)]
"""Every size up to where all that these tests record fits."""
Train = Callable[[Path], None]


Item = TypeVar("Item")


def recorded(numbers: Iterable[Item], folder: Path, *, start: int = 0) -> Iterator[Item]:
    """Yields what a program goes over in steps of its own, of which nothing but spans is kept."""
    for step, number in enumerate(numbers):
        with package.record_steps(step, start, 1 << 20, folder=folder):
            yield number


def by_doors(folder: Path) -> None:
    """Trains as a program that records itself does."""
    for _ in recorded(range(STEPS), folder):
        for number in range(SPANS):
            with package.span(f"part {number % NAMES}", number, 0):
                pass
    recorder_doors.finish()


def by_trainer(folder: Path) -> None:
    """Records as ``serried train`` does."""
    settings = TrainSettings(world_size=1, steps=STEPS, trace_dir=folder)
    recorder = TrainingRecorder.of(settings, run="run-a", rank=0, backend="gloo", num_local_ranks=1)
    for step in range(STEPS):
        recorder.begin_step(step)
        for number in range(SPANS):
            recorder.end(recorder.begin(0, number), ActionKind.F, 0, number)
    recorder.close()


def check(folder: Path, messages: list[str], train: Train) -> int:
    """Checks what was kept and said; returns how many spans were lost."""
    path = folder / file_name(0)
    recording = read_rank_record(path) if path.is_file() else None
    lost = STEPS * SPANS - (len(recording.spans) if recording else 0)
    assert recording is None or (recording.torn, recording.lost) == (False, lost)
    if lost:
        why, count = messages
        assert why.endswith("; the training goes on")
        assert count.startswith(f"{lost} spans were not recorded: ")
    else:
        assert messages == []
    if recording and train is by_doors:
        spans = recording.spans
        told = [recording.names[peer] for peer in spans.peer.tolist()]
        assert told == [f"part {number % NAMES}" for number in spans.microbatch.tolist()]
    return lost


def on_small_disk(tmp_path: Path, size: int, train: Train, caplog: Any) -> int:
    caplog.clear()
    with small_disk(tmp_path / "disk", size) as disk:
        train(disk / "run")
        return check(disk / "run", caplog.messages, train)


@pytest.mark.parametrize("train", [by_doors, by_trainer])
def test_a_training_goes_on_on_disks_of_any_size(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, train: Train
) -> None:
    lost = [on_small_disk(tmp_path, size, train, caplog) for size in FEW]
    assert lost[0] == STEPS * SPANS
    assert lost[-1] == 0
    assert 0 < lost[2] < lost[0], "a disk that fills in the middle keeps what found space"


@pytest.mark.soak
@pytest.mark.parametrize("train", [by_doors, by_trainer])
@pytest.mark.parametrize("size", ALL)
def test_a_training_goes_on_on_a_disk_of_every_size(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, size: int, train: Train
) -> None:
    lost = on_small_disk(tmp_path, size, train, caplog)
    assert lost == 0 or size < ALL[-1]


def test_space_that_comes_back_is_used_from_the_next_step_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with small_disk(tmp_path / "disk", 16 * PAGE) as disk:
        (disk / "other").write_bytes(bytes(16 * PAGE))
        for step in recorded(range(4), disk / "run"):
            if step == 2:
                (disk / "other").unlink()
            with package.span(f"part {step}", 0, 0):
                pass
        recorder_doors.finish()
        recording = read_rank_record(disk / "run" / file_name(0))
    assert recording.spans.step.tolist() in ([3], [2, 3])
    assert [recording.names[peer] for peer in recording.spans.peer.tolist()][-1] == "part 3"
    assert len(caplog.messages) == 2


def test_a_name_cut_short_by_a_full_disk_is_written_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    long = "x" * (3 * PAGE)
    with small_disk(tmp_path / "disk", 4 * PAGE) as disk:
        for name in recorded(["a", long, "b"], disk / "run"):
            with package.span(name, 0, 0):
                pass
        recorder_doors.finish()
        recording = read_rank_record(disk / "run" / file_name(0))
    assert [recording.names[peer] for peer in recording.spans.peer.tolist()] == ["a", "b"]
    assert caplog.messages[1].startswith("1 spans were not recorded: ")


@pytest.mark.parametrize("code", [errno.EIO, errno.EDQUOT, errno.EROFS, errno.EMFILE])
@pytest.mark.parametrize("call", ["posix_fallocate", "open", "mkdir"])
@pytest.mark.parametrize("train", [by_doors, by_trainer])
def test_a_training_goes_on_whatever_fails(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    train: Train,
    call: str,
    code: int,
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os if call == "posix_fallocate" else Path, call, fails)
    train(tmp_path / "run")
    monkeypatch.undo()
    assert check(tmp_path / "run", caplog.messages, train) == STEPS * SPANS
    assert os.strerror(code) in caplog.messages[0]


def test_a_folder_that_vanishes_is_said_with_all_that_was_in_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for step in recorded(range(4), tmp_path / "run"):
        if step == 2:
            shutil.rmtree(tmp_path / "run")
        with package.span("F", 0, 0):
            pass
    recorder_doors.finish()
    assert caplog.messages == [
        f"4 spans were not recorded: {tmp_path}/run/{file_name(0)} was removed"
    ]


def test_a_folder_that_vanishes_before_the_first_span_is_made_again(tmp_path: Path) -> None:
    for step in recorded(range(3), tmp_path / "run", start=2):
        if step == 1:
            shutil.rmtree(tmp_path / "run")
        with package.span("F", 0, 0):
            pass
    recorder_doors.finish()
    assert len(read_rank_record(tmp_path / "run" / file_name(0)).spans) == 1


def test_a_number_that_no_record_holds_loses_its_span_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in recorded([0, 1 << 40, 2], tmp_path):
        with package.span("F", number, 0):
            pass
    recorder_doors.finish()
    recording = read_rank_record(tmp_path / file_name(0))
    assert recording.spans.microbatch.tolist() == [0, 2]
    assert recording.lost == 1
    assert caplog.messages[1].startswith("1 spans were not recorded: a span's number ")


def test_what_the_run_and_its_window_keep_beside_it_may_fail_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "0")
    monkeypatch.setenv(SIGNAL, "USR2:3")
    with small_disk(tmp_path / "disk", PAGE) as disk:
        (disk / "other").write_bytes(bytes(PAGE))
        keep_run(disk, "run-a")
        window = StepWindow(disk)
        try:
            os.kill(os.getpid(), 12)
            assert not window.holds(0, None)
        finally:
            window.close()
        left = sorted(path.name for path in disk.iterdir())
    assert left == ["other"]
    assert [message.partition(": ")[2] for message in caplog.messages] == [
        "No space left on device"
    ] * 2


def test_what_fits_of_a_full_disk_is_merged_and_the_loss_told(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 4 * PAGE) as disk:
        by_doors(disk / "run")
        trace = merge([disk / "run"])
    assert "lost" in [each.kind for each in trace.warnings]


def test_serried_train_ends_well_on_a_disk_that_fills(tmp_path: Path, serried: Call) -> None:
    model = "--layers 2 --hidden 16 --seq-len 16 --steps 3 --device cpu"
    with small_disk(tmp_path / "disk", 3 * PAGE) as disk:
        run = disk / "run"
        done = serried(
            "train", "--nproc", "2", "--pp", "2", *model.split(), "--trace-dir", str(run)
        )
        assert done.code == 0
        assert "3 steps on 2 ranks" in done.out
        lost = [read_rank_record(path).lost for path in sorted(run.glob("*.spans"))]
    assert max(lost) > 0
