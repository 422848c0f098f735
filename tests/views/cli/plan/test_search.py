from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Call

SMALL = ("--global-batch", "64", "--world-size", "16")
JOB = ("search", "--model", "llama3-8b", "--cluster", "h100", "--sequence", "8192")


def test_the_best_layouts_come_with_what_each_loses(serried: Call) -> None:
    done = serried(*JOB, "--world-size", "16", "--global-batch", "64", "--most", "5")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].startswith("best of ")
    assert max(map(len, lines)) <= 100
    assert len([line for line in lines if line[:2].strip().isdigit()]) == 5


def test_chinese_holds_no_english_sentence(serried: Call) -> None:
    done = serried(*JOB, "--world-size", "8", "--global-batch", "16", "--lang", "zh")
    assert "布局" in done.out
    assert "best of" not in done.out and "why not" not in done.out


def test_what_fits_nowhere_exits_with_one_and_says_what_would_help(serried: Call) -> None:
    job = ("search", "--model", "llama3.1-405b", "--cluster", "h100", "--sequence", "8192")
    done = serried(*job, "--world-size", "8", "--global-batch", "8")
    assert done.code == 1
    assert "fits; the nearest lacks" in done.out
    assert "would make it fit" in done.out.replace("\n", " ")


def test_given_sizes_are_kept(serried: Call) -> None:
    job = (*JOB, "--world-size", "16", "--global-batch", "64", "--tp", "4", "--zero", "1")
    done = serried(*job, "--schedule", "1f1b", "--micro-batch", "2", "--format", "json")
    asked = [each["asked"] for each in json.loads(done.out)["best"]]
    assert {each["sizes"]["tp"] for each in asked} == {4}
    assert {(each["schedule"], each["micro_batch"]) for each in asked} == {("1f1b", 2)}


def test_given_replicas_and_modules_are_kept(serried: Call) -> None:
    job = (*JOB, *SMALL, "--dp", "2", "--recompute", "selective:mlp", "--format", "json")
    done = serried(*job)
    asked = [each["asked"] for each in json.loads(done.out)["best"]]
    assert {each["sizes"]["dp"] for each in asked} == {2}
    told = [each["recompute"] for each in asked]
    assert all((each["kind"], each["modules"]) == ("selective", ["mlp"]) for each in told)


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_pictures_are_written(serried: Call, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"search.{ending}"
    done = serried(*JOB, "--world-size", "8", "--global-batch", "16", "-o", str(path))
    assert done.code == 0, done.err
    assert path.stat().st_size > 2000


def test_only_the_front_is_given_as_json_and_drawn(serried: Call, tmp_path: Path) -> None:
    job = (*JOB, "--world-size", "8", "--global-batch", "16")
    whole, front = (
        json.loads(serried(*job, "--format", "json", *more).out) for more in ((), ("--pareto",))
    )
    assert "best" in whole and "best" not in front and "misses" not in front
    assert front["pareto"] == whole["pareto"]
    marks = []
    for name, more in (("whole.svg", ()), ("front.svg", ("--pareto",))):
        assert serried(*job, "-o", str(tmp_path / name), *more).code == 0
        marks.append((tmp_path / name).read_text().count("<rect"))
    assert marks[1] < marks[0] / 2


def test_every_row_says_why_it_loses(serried: Call) -> None:
    found = json.loads(serried(*JOB, *SMALL, "--format", "json").out)
    for name in ("best", "pareto"):
        assert [bool(each["why_not"]) for each in found[name]][:1] == [False]
        assert all(" +" in each["why_not"] for each in found[name][1:])
    assert all("on stage " in each["why_not"] for each in found["misses"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--global-batch", "64"), "the number of GPUs is missing"),
        (("--global-batch", "5", "--world-size", "7"), "no layout of"),
        (("--global-batch", "64", "--world-size", "16", "--recompute", "some"), "recompute"),
        ((*SMALL, "--recompute", "full:4"), "all layers or none"),
        ((*SMALL, "--order", "tp-cp"), "does not say whether dp or pp is nearer; one such as"),
        ((*SMALL, "--gpus-per-node", "4"), "does not look at --gpus-per-node"),
        ((*SMALL, "--account-for", "loss"), "does not look at --account-for"),
        ((*SMALL, "--ep", "2"), "has no experts, so that --ep would do nothing"),
        ((*SMALL, "--most", "0"), "most=0; it is at least 1"),
        ((*SMALL, "--tp", "0"), "at least 1"),
        ((*SMALL, "--micro-batch", "0"), "micro_batch=0; it is at least 1"),
        ((*SMALL, "--tp", "3"), "on 16 GPUs has tp 3: tp must divide 32 heads"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    serried: Call, words: tuple[str, ...], sentence: str
) -> None:
    done = serried(*JOB, *words)
    assert done.code == 2
    assert sentence in done.err
