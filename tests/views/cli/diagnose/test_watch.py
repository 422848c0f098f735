"""``serried diagnose --watch`` as a command: what it refuses, prints and exits with."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from serried.action import ActionKind
from serried.trace.model.record import RecordHeader, TracedJob
from serried.trace.model.record_writer import RecordWriter
from tests.conftest import Call

JOB = TracedJob("megatron", 1, {"tp": 1, "pp": 1, "dp": 1}, "tp-cp-ep-dp-pp", "unknown", 1)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["nowhere"], "nowhere is no folder"),
        ([".", "."], "--watch follows one folder; 2 were given"),
        ([".", "--still", "0"], "seconds, more than 0"),
        ([".", "--every", "-1"], "seconds, more than 0"),
    ],
)
def test_what_cannot_be_watched_is_said_in_a_sentence(
    words: list[str], reason: str, serried: Call
) -> None:
    found = serried("diagnose", "--watch", *words)
    assert (found.code, reason in found.err) == (2, True)


def test_options_of_watching_alone_are_refused(serried: Call, tmp_path: Path) -> None:
    found = serried("diagnose", str(tmp_path), "--once")
    assert (found.code, "belong to --watch" in found.err) == (2, True)


def recorded(folder: Path) -> None:
    writer = RecordWriter(folder, RecordHeader("run", 0, JOB))
    writer.add(ActionKind.F, 0, 10, stage=0, microbatch=0, step=3)
    writer.close()


def test_a_job_that_ended_well_is_told_and_exits_with_0(serried: Call, tmp_path: Path) -> None:
    recorded(tmp_path)
    found = serried("diagnose", "--watch", str(tmp_path))
    assert found.code == 0
    assert found.out.rstrip().endswith("the job ended at step 3")


def test_each_line_of_json_is_a_document(serried: Call, tmp_path: Path) -> None:
    recorded(tmp_path)
    (tmp_path / "job.log").write_text("step 3 loss: nan\n")
    found = serried("diagnose", "--watch", str(tmp_path), "--format", "json", "--lang", "zh")
    assert found.code == 1
    lines = [json.loads(line) for line in found.out.splitlines()]
    assert [line["kind"] for line in lines] == ["nan", "ended"]
    assert lines[0]["evidence"] == "job.log:1: step 3 loss: nan"


def test_beside_a_process_a_folder_is_waited_for(
    serried: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begun(_: float) -> None:
        folder.mkdir()
        recorded(folder)

    folder = tmp_path / "later"
    monkeypatch.setattr(os, "nice", lambda _: None)
    monkeypatch.setattr(time, "sleep", begun)
    found = serried("diagnose", "--watch", str(folder), "--pid", str(os.getpid()))
    assert (found.code, "the job ended at step 3" in found.out) == (0, True)


def test_a_verdict_is_told_once(
    serried: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, looks, wait = tmp_path / "rank_1.log", iter(range(9)), time.sleep

    def written(_: float) -> None:
        wait(0.06)
        if (look := next(looks)) == 4:
            log.write_text(log.read_text() + "\n")
        elif look == 8:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", written)
    log.write_text("[rank1]: torch.OutOfMemoryError: CUDA out of memory.\n")
    found = serried("diagnose", "--watch", str(tmp_path), "--still", "0.1")
    assert found.out.count("nothing was written for") == 2
    assert found.out.count("what to do") == found.out.count("the verdict is the one above") == 1


def test_ctrl_c_ends_it_without_a_word(
    serried: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupted)
    found = serried("diagnose", "--watch", str(tmp_path))
    assert (found.code, found.out) == (0, "")


def test_the_verdict_follows_what_stands_still(
    serried: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    (tmp_path / "rank_1.log").write_text(
        "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    )
    began = time.time()
    found = serried("diagnose", "--watch", str(tmp_path), "--still", "0.2", "--once")
    assert time.time() - began >= 0.2
    assert found.code == 1
    assert "nothing was written for 0 s" in found.out
    assert "memory" in found.out


def test_what_would_tell_why_is_named_where_nothing_does(
    serried: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    (tmp_path / "job.log").write_text("epoch 3\n")
    found = serried("diagnose", "--watch", str(tmp_path), "--still", "0.1", "--once")
    assert found.code == 1
    assert "py-spy dump --pid PID" in found.out
    told = json.loads(
        serried(
            "diagnose", "--watch", str(tmp_path), "--still", "0.1", "--once", "--format", "json"
        ).out
    )
    assert (told["diagnosis"], len(told["missing_evidence"])) == (None, 1)
