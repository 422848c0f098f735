"""``serried demo``: both runs, what it prints of them, and the files it leaves."""

from __future__ import annotations

import json
import socket
from pathlib import Path

from tests.conftest import Call

SMALL = ("demo", "--nproc", "2", "--tp", "1", "--pp", "2", "--steps", "3", "--no-serve")


def test_the_demo_trains_for_real_then_emulated_and_measures_both(
    serried: Call, tmp_path: Path
) -> None:
    folder = tmp_path / "demo"
    shown = serried(*SMALL, "--folder", str(folder))
    assert shown.code == 0, shown.err
    assert "3 steps, real compute" in shown.out
    assert "emulated compute, fixed times" in shown.out
    assert shown.out.count("bubble measured") == 2
    assert [line.split()[2] for line in shown.out.splitlines() if "bubble ideal" in line] == [
        "20.0%",
        "11.1%",
    ]
    losses = [json.loads(line)["loss"] for line in (folder / "real.jsonl").read_text().splitlines()]
    assert len(losses) == 3
    assert losses[-1] < losses[0]
    for run in ("real", "emulated"):
        assert len(list((folder / run).glob("rank-*.spans"))) == 2
        assert json.loads((folder / run / "trace.json").read_text())["traceEvents"]


def test_a_folder_with_something_in_it_is_left_alone(serried: Call, tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("mine")
    shown = serried(*SMALL, "--folder", str(tmp_path))
    assert (shown.code, shown.out) == (2, "")
    assert f"{tmp_path} is not empty; name a folder that is new" in shown.err
    assert [each.name for each in tmp_path.iterdir()] == ["kept.txt"]


def test_sizes_that_cannot_be_leave_no_folder(serried: Call, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    shown = serried("demo", "--nproc", "8", "--tp", "3", "--no-serve", "--folder", str(folder))
    assert (shown.code, shown.out) == (2, "")
    assert "tp=3 does not divide 8 ranks" in shown.err
    assert not folder.exists()


def test_a_port_in_use_is_told_before_anything_runs(serried: Call, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        shown = serried("demo", "--port", port, "--no-open", "--folder", str(folder))
    assert (shown.code, shown.out) == (3, "")
    assert f"port {port} is in use" in shown.err
    assert not folder.exists()
