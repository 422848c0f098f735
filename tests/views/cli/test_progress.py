"""Long work is told on stderr as each piece of it begins; short work is silent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from serried.trace.formats import events, reading
from serried.trace.measure import analysis
from tests.conftest import Call
from tests.trace.recorded_run import Run

APP = Path(__file__).parents[2] / "goldens" / "traces" / "megatronapp"


@pytest.fixture
def all_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (events, reading):
        monkeypatch.setattr(module, "LARGE_BYTES", 1)
    for module in (events, analysis):
        monkeypatch.setattr(module, "LARGE_SPANS", 1)


@pytest.mark.parametrize("command", [["stats"], ["merge", "-o", "{out}"]])
@pytest.mark.parametrize(
    ("lang", "lines"),
    [
        (
            "en",
            [
                "reading {place}, 69.6 kB …",
                "sorting 512 events of MegatronApp by rank …",
                "measuring the steps of 256 spans …",
                "comparing the order with schedules, and finding the critical path …",
                "replaying 256 spans without each rank's slowness …",
            ],
        ),
        (
            "zh",
            [
                "正在读取 {place}，共 69.6 kB …",
                "正在把 MegatronApp 的 512 个事件按 rank 排好 …",
                "正在度量 256 个 span 的各步 …",
                "正在把顺序与各种调度对照，并找关键路径 …",
                "正在重放 256 个 span，并去掉每个 rank 自身的慢 …",
            ],
        ),
    ],
)
@pytest.mark.usefixtures("all_is_large")
def test_each_piece_of_long_work_is_told_as_it_begins(
    serried: Call, tmp_path: Path, command: list[str], lang: str, lines: list[str]
) -> None:
    words = [word.format(out=tmp_path / "a.json") for word in command]
    answer = serried("trace", *words, str(APP), "--lang", lang, "--format", "json")
    told = [line for line in answer.err.splitlines() if line.endswith("…")]
    assert told == [line.format(place=APP) for line in lines]
    assert json.loads(answer.out)["steps"]


def test_short_work_is_silent(serried: Call, tmp_path: Path) -> None:
    folder = Run(pp=2, num_microbatches=2, num_steps=1).write(tmp_path / "run")
    assert serried("trace", "stats", str(folder)).err == ""


def test_a_comparison_tells_of_both_of_its_runs(
    serried: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (events, reading):
        monkeypatch.setattr(module, "LARGE_BYTES", 1)
    places = [Run(pp=2, num_microbatches=2).write(tmp_path / name) for name in ("a", "b")]
    told = serried("trace", "compare", *map(str, places)).err.splitlines()
    assert [line.split(",")[0] for line in told] == [f"reading {place}" for place in places]
