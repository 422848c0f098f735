"""The score of readings: what counts as right, as an innocent accused, and how classes weigh."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.diagnosis.__main__ import TAXONOMY
from benchmarks.diagnosis.cases import Case
from benchmarks.diagnosis.score import scored
from benchmarks.diagnosis.torchrun_word import torchrun_word
from benchmarks.diagnosis.weights import class_weights


def case(cause_class: str, culprits: tuple[int, ...] | None, **collective: object) -> Case:
    return Case("x", Path("x.log"), cause_class, "kind", culprits, collective)


def test_a_culprit_counts_only_where_it_is_exact_and_an_innocent_always() -> None:
    cases = [case("hang", (3,)), case("hang", (3,)), case("hang", None), case("hang", None)]
    answers = [{"class": "hang", "ranks": ranks} for ranks in ([3], [3, 4], [0], None)]
    score = scored(cases, answers, {"hang": 1.0})
    assert (score.culprit, score.accused) == ((1, 2), (1, 2))


def test_a_class_that_happens_often_weighs_more() -> None:
    cases = [case("hardware", None), case("numerics", None)]
    answers = [{"class": "hardware", "ranks": None}, {"class": "hang", "ranks": None}]
    score = scored(cases, answers, {"hardware": 0.75, "numerics": 0.25})
    assert score.weighted == pytest.approx(0.75)


def test_only_figures_that_the_truth_has_are_asked() -> None:
    asked = case("hang", None, op="ALLREDUCE", seq=None, pg="PG 1")
    answer = {"class": "hang", "ranks": None, "collective": {"op": "ALLREDUCE", "group": "PG 2"}}
    assert scored([asked], [answer], {}).fields == (1, 2)


def test_the_weights_of_all_surveys_add_up_to_one() -> None:
    weights = class_weights(TAXONOMY)
    assert sum(weights.values()) == pytest.approx(1)
    assert weights["hardware"] > weights["numerics"] > 0


def test_torchruns_word_is_its_first_failure() -> None:
    summary = (
        "Root Cause (first observed failure):\n  rank : 6 (local_rank: 2)\n  exitcode : -9 (pid: 1)"
    )
    assert torchrun_word(summary) == {"class": "host_oom", "ranks": [6], "collective": None}
