"""``serried collect`` brings files, names what failed, and prints commands without running any."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Call


@pytest.fixture(autouse=True)
def outside_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "out.log").write_text("step 1\n")
    return folder


def test_a_folder_is_brought_and_the_next_command_is_named(
    serried: Call, run: Path, tmp_path: Path
) -> None:
    told = serried("collect", str(run), "-o", str(tmp_path / "all"))
    assert told.code == 0
    assert told.out.endswith(f"next: serried diagnose {tmp_path / 'all'}\n")
    assert (tmp_path / "all/here/run/out.log").read_text() == "step 1\n"


def test_a_host_that_sends_nothing_makes_the_exit_code_1(
    serried: Call, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "serried.diagnose.collect.transport.SSH", ("bash", "-c", "echo refused >&2; exit 255")
    )
    told = serried("collect", str(run), "-o", str(tmp_path / "all"), "--hosts", "node7")
    assert told.code == 1
    assert "node7: nothing whole came: refused" in told.err
    manifest = json.loads((tmp_path / "all/manifest.json").read_text())
    assert manifest["hosts"]["node7"]["files"] == []


def test_a_dry_run_prints_commands_and_runs_none(serried: Call, run: Path, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("node0 slots=8\nnode1\n")
    words = ("-o", str(tmp_path / "all"), "--hostfile", str(tmp_path / "hosts"), "--dry-run")
    told = serried("collect", str(run), *words)
    assert told.out.splitlines() == [
        f"ssh -o BatchMode=yes -o ConnectTimeout=10 {host} 'python3 - 16 512 {run}' < packing.py"
        for host in ("node0", "node1")
    ]
    assert not (tmp_path / "all").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--hosts", "a", "--slurm", "4"], "give one of --hosts, --hostfile and --slurm"),
        (["--hosts", "-oProxyCommand=x"], "'-oProxyCommand=x' is not the name of a host"),
        (["--most-file", "0"], "a bound of 0 MB keeps nothing"),
        (["--slurm", "x;y"], "Slurm does not answer"),
    ],
)
def test_what_cannot_be_asked_is_said_in_a_sentence(
    words: list[str], sentence: str, serried: Call, run: Path, tmp_path: Path
) -> None:
    told = serried("collect", str(run), "-o", str(tmp_path / "all"), *words)
    assert told.code in (2, 3)
    assert sentence in told.err
    assert not (tmp_path / "all").exists()


def test_a_bare_name_is_the_folder_below_this_one_on_every_host(serried: Call) -> None:
    told = serried("collect", "run", "~/logs", "-o", "e", "--hosts", "a", "--dry-run")
    assert told.code == 0
    assert f" {Path.cwd() / 'run'} " in told.out
    assert "~/logs" in told.out
