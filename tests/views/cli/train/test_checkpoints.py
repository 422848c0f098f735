"""``serried train`` stopped and gone on with, and ``serried export``, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Call

TINY = ["--layers", "2", "--hidden", "32", "--heads", "4", "--seq-len", "16", "--device", "cpu"]


@pytest.fixture(autouse=True)
def outside_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)


def test_a_run_is_stopped_gone_on_with_measured_and_exported(serried: Call, tmp_path: Path) -> None:
    runs, log, model = tmp_path / "runs", tmp_path / "log.jsonl", tmp_path / "out" / "m.safetensors"
    words = ["train", *TINY, "--save-dir", str(runs), "--log-file", str(log)]
    words += ["--validate-every", "2", "--validate-sequences", "3", "--lr-schedule", "constant"]
    first = serried(*words, "--steps", "2", "--tensorboard", str(tmp_path / "board"))
    assert first.code == 0, first.err
    assert first.err.splitlines()[-1] == f"saved {runs}/step-000002"
    assert f"checkpoints: {runs}" in first.out.splitlines()
    again = serried(*words, "--steps", "3")
    assert (again.code, again.err) == (
        2,
        f"serried: {runs} already holds checkpoints up to step-000002; add --resume to go on from "
        "it, or choose another folder\n",
    )
    again = serried(*words, "--steps", "3", "--resume", "--export", str(model))
    assert again.code == 0, again.err
    assert again.out.startswith("1 step on 1 rank")
    assert f"resumed from {runs}/step-000002: 2 steps are done" in again.err.splitlines()
    assert " on 48 held out bytes" in again.err
    told = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["step"] for line in told if "event" not in line] == [0, 1, 2]
    there = tmp_path / "llama" / "model.safetensors"  # in a folder that is made
    exported = serried("export", str(runs), "-o", str(there))
    assert exported.out.startswith(f"{runs}/step-000003 -> {there} and ")
    assert model.read_bytes() == there.read_bytes()


def test_what_holds_no_checkpoint_is_not_exported(serried: Call, tmp_path: Path) -> None:
    done = serried("export", str(tmp_path))
    assert done.code == 2
    assert done.err == (
        f"serried: {tmp_path} holds no committed checkpoint, which is a folder such as step-000040 "
        "with .metadata in it; give one, or a folder of them\n"
    )


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("safetensors", ("export", "runs")),
        ("safetensors", ("train", "--save-dir", "runs", "--export", "m.safetensors")),
        ("tensorboard", ("train", "--tensorboard", "board")),
    ],
)
def test_a_missing_package_is_named_with_what_installs_it(
    serried: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    package: str,
    words: tuple[str, ...],
) -> None:
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else found(name)
    )
    done = serried(*words)
    extra = {"safetensors": "export", "tensorboard": "tensorboard"}[package]
    assert done.code == 3
    assert f"pip install 'serried[{extra}]'" in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_refused(serried: Call, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = serried("train", "--save-dir", str(tmp_path / "file" / "runs"))
    assert (done.code, done.err) == (
        2,
        f"serried: folder {tmp_path}/file/runs cannot be made: Not a directory\n",
    )
