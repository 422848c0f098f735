"""``serried plan --gpu-mtbf``: what failures do to a planned job."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Call

JOB = (
    *("plan", "--cluster", "h100", "--world-size", "1024", "--tp", "2", "--pp", "4"),
    *("--model", "llama3-8b", "--sequence", "8192", "--global-batch", "1024"),
)
FAILING = ("--gpu-mtbf", "50000", "--checkpoint-time", "30", "--restart-time", "600")


def test_goodput_stands_below_the_plan(serried: Call) -> None:
    told = serried(*JOB, *FAILING, "--steps", "100000")
    assert told.code == 0
    goodput = told.out.partition("goodput ")[2]
    assert goodput.startswith("97.8%: a failure every 2.03 d on average; best a checkpoint every")
    assert "100,000 steps take" in goodput
    assert [line.split("  ")[0] for line in goodput.splitlines()[-5:]] == [
        "useful work",
        "saving checkpoints",
        "work done again",
        "restarting",
        "waiting for nodes",
    ]


def test_json_has_shares_that_sum_to_one(serried: Call) -> None:
    away = ("--repair-time", "48", "--spares", "2", "--tokens", "15T", "--write-time", "60")
    told = json.loads(serried(*JOB, *FAILING, *away, "--format", "json").out)["goodput"]
    names = ("useful", "saving", "redone", "restarting", "waiting")
    assert sum(told[name] for name in names) == pytest.approx(1)
    assert told["mtbf_s"] == pytest.approx(50_000 * 3600 / 1024)
    assert told["steps"] == -(-15 * 10**12 // (1024 * 8192))
    assert told["wall_s"] == pytest.approx(told["work_s"] / told["useful"])
    assert (told["spare_nodes"], told["best_spare_nodes"]) == (2, 4)


def test_a_job_that_never_ends_says_so(serried: Call) -> None:
    hopeless = ("--gpu-mtbf", "1", "--checkpoint-time", "600", "--restart-time", "6000")
    told = serried(*JOB, *hopeless, "--steps", "10")
    assert "10 steps never end: failures come faster than a checkpoint" in told.out
    document = json.loads(serried(*JOB, *hopeless, "--steps", "10", "--format", "json").out)
    assert document["goodput"]["wall_s"] is None


def test_without_failures_nothing_is_said_of_them(serried: Call) -> None:
    assert "goodput" not in serried(*JOB).out
    assert "goodput" not in json.loads(serried(*JOB, "--format", "json").out)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (FAILING[:2], "--gpu-mtbf is of a job with failures, which needs --checkpoint-time, "),
        (("--steps", "5"), "--steps is of a job with failures, which needs --gpu-mtbf"),
        ((*FAILING, "--steps", "5", "--tokens", "1T"), "leave out one of them"),
        ((*FAILING, "--steps", "0"), "a job of 0 steps cannot be"),
        ((*FAILING, "--spares", "3"), "give --repair-time too"),
        ((*FAILING, "--tokens", "many"), "'many' is not a number of tokens; one reads 15T"),
        ((*FAILING, "--explain"), "goodput stands in the table and in JSON; leave out --explain"),
        ((*FAILING, "--format", "svg"), "leave out --format svg or --gpu-mtbf"),
        (("--gpu-mtbf", "0", *FAILING[2:]), "gpu_mtbf_s=0.0; it is above 0"),
    ],
)
def test_bad_input_is_a_sentence(words: tuple[str, ...], sentence: str, serried: Call) -> None:
    told = serried(*JOB, *words)
    assert (told.code, told.out) == (2, "")
    assert sentence in told.err
