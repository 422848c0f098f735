from __future__ import annotations

from dataclasses import replace

import pytest

from serried.plan.retime.observed import ObservedRun, observe
from serried.plan.retime.retimed import Target, retime
from serried.runtime.job.settings import ModelSizes, TrainSettings
from serried.runtime.tune.candidates import Candidate
from serried.runtime.tune.tuning import TunedLayout, Tuning
from serried.views.runs.tuning import (
    tuning_document,
    tuning_notes,
    tuning_table,
    tuning_verdict,
)
from tests.plan.retime.simulated import run_of
from tests.schemas.conform import conform


@pytest.fixture(scope="module")
def constants() -> ObservedRun:
    return observe(run_of(4, "1f1b", 8)[0])


def layout_of(constants: ObservedRun, schedule: str, off: float | None) -> TunedLayout:
    settings = TrainSettings(
        4, pp=4, schedule=schedule, microbatches=8, model=ModelSizes(layers=16)
    )
    planned = retime(constants, Target(pp=4, schedule=schedule, microbatches=8))
    measured = None
    if off is not None:
        measured = replace(constants, period=planned.period / (1 + off))
    return TunedLayout(Candidate(settings), planned, measured)


@pytest.fixture
def found(constants: ObservedRun) -> Tuning:
    given = (("zbv", -0.02), ("zb-h1", 0.04), ("gpipe", None))
    layouts = tuple(layout_of(constants, name, off) for name, off in given)
    return Tuning(layouts, constants)


def test_the_verdict_names_the_best_run_and_how_far_plans_were_off(found: Tuning) -> None:
    first, second = tuning_verdict(found)
    assert first.startswith("best of 3 layouts: tp 1, pp 4, dp 1, ")
    assert second.startswith("planned steps are off by 3.0% on average over 2 runs")
    zh = "\n".join(tuning_verdict(found, lang="zh"))
    assert "3 种布局中最好的" in zh
    assert "average" not in zh


def test_an_order_that_differs_only_among_level_runs_is_said_to_be_right(
    constants: ObservedRun,
) -> None:
    first, second = (layout_of(constants, name, None).planned.period for name in ("zbv", "gpipe"))
    assert first < second

    def told(measured: float) -> str:
        """Returns what is said where the first takes what was planned."""
        off = second / measured - 1
        rows = (layout_of(constants, "zbv", 0.0), layout_of(constants, "gpipe", off))
        return tuning_verdict(Tuning(rows, constants))[1].partition("and in ")[2]

    assert told(second) == "the order of measured ones"
    assert told(0.999 * first).startswith("the order of measured ones but where")
    assert told(first / 100) == "another order than measured ones"


def test_one_run_has_no_order(constants: ObservedRun) -> None:
    alone = Tuning((layout_of(constants, "zbv", -0.02),), constants)
    assert tuning_verdict(alone)[1] == "the planned step is off by 2.0%"


def test_runs_stand_before_what_was_only_planned(found: Tuning) -> None:
    lines = list(tuning_table(found).lines(100))
    assert [line.split(", ")[3] for line in lines[1:]] == ["zb-h1", "zbv", "gpipe"]
    assert ["+4.0%" in lines[1], "-2.0%" in lines[2], "%" in lines[3]] == [True, True, False]
    assert max(map(len, lines)) <= 100


def test_what_plans_take_for_granted_is_told_once(found: Tuning) -> None:
    assert tuning_notes(found) == [
        "assumed: the run has whole backwards; each half is taken to be half of one"
    ]
    assert tuning_notes(found, lang="zh")[0].startswith("假设：")


def test_the_document_holds_every_layout_in_seconds(found: Tuning) -> None:
    document = tuning_document(found)
    conform(document, "serried.tuning/1")
    assert [each["schedule"] for each in document["layouts"]] == ["zbv", "zb-h1", "gpipe"]
    assert document["layouts"][2]["measured_s"] is None
