"""``serried trace compare RUN --planned FILE``: which constant of a plan was wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from serried.plan.retime.constants import PlanError, plan_error, retimed_document
from serried.plan.retime.observed import ObservedRun, observe
from serried.plan.retime.retimed import RetimedStep, Target, retime
from serried.trace.formats.reading import read_trace
from serried.views.plan.plan_error_text import error_verdict, interval_line
from tests.conftest import Call
from tests.schemas.conform import conform
from tests.trace.recorded_run import Run


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Run(pp=2, num_steps=6).write(tmp_path_factory.mktemp("runs") / "pp2")


@pytest.fixture(scope="module")
def plan(recorded: Path) -> Path:
    """Holds the plan of such a run in which messages take 2 ms; those of the run take none."""
    step = retime(observe(read_trace([recorded])), Target(hop_s=0.002))
    file = recorded.parent / "plan.json"
    file.write_text(json.dumps(retimed_document(step)))
    return file


def test_the_wrong_constant_comes_first_with_what_it_costs(
    serried: Call, recorded: Path, plan: Path
) -> None:
    told = serried("trace", "compare", str(recorded), "--planned", str(plan))
    text = " ".join(told.out.split())
    assert told.code == 0
    assert "measured 28.0 ms" in text
    assert "most wrong was message from rank to rank, 2.00 ms planned and 0 ns measured" in text
    assert "outside the plan's interval" in text


def test_json_has_every_constant(serried: Call, recorded: Path, plan: Path) -> None:
    words = ("trace", "compare", str(recorded), "--planned", str(plan), "--format", "json")
    told = json.loads(serried(*words).out)
    conform(told, "serried.plan-error/1")
    assert told["constants"][0]["name"] == "hop"
    more = sum(each["more_s"] for each in told["constants"]) + told["rest_s"]
    assert more == pytest.approx(told["measured_s"] - told["planned_s"])


@pytest.fixture(scope="module")
def alike(recorded: Path) -> tuple[RetimedStep, ObservedRun]:
    run = observe(read_trace([recorded]))
    return retime(run, Target()), run


def verdict(planned: RetimedStep, run: ObservedRun) -> str:
    found: PlanError = plan_error(planned, run)
    return f"{error_verdict(found)}; {interval_line(found, planned)}"


def test_a_run_as_planned_has_no_wrong_constant(alike: tuple[RetimedStep, ObservedRun]) -> None:
    assert "+0.0%; no constant was wrong; the measured step lies within" in verdict(*alike)


def test_what_no_constant_explains_is_said(alike: tuple[RetimedStep, ObservedRun]) -> None:
    planned, run = alike
    told = verdict(planned, replace(run, period=2 * run.period))
    assert "+100.0%; no constant alone explains most of it (+28.0 ms)" in told


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--plan",), "--plan, --sharding and --planned compare with different plans; take one"),
        (("{run}",), "compare takes two runs, or one with --plan, --sharding or --planned"),
    ],
)
def test_one_run_is_compared_with_one_plan(
    words: tuple[str, ...], sentence: str, serried: Call, recorded: Path, plan: Path
) -> None:
    given = [word.format(run=recorded) for word in words]
    told = serried("trace", "compare", str(recorded), "--planned", str(plan), *given)
    assert (told.code, told.out) == (2, "")
    assert sentence in told.err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[]", "is no plan of a run; serried plan --from RUN -o FILE.json writes one"),
        ("{", "other.json is no JSON"),
        ('{"schema": "serried.plan/1"}', "is no plan of a run"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(
    text: str, sentence: str, serried: Call, recorded: Path, tmp_path: Path
) -> None:
    file = tmp_path / "other.json"
    file.write_text(text)
    told = serried("trace", "compare", str(recorded), "--planned", str(file))
    assert told.code == 2
    assert sentence in told.err


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf"), "soon"])
def test_times_that_cannot_be_are_refused(
    seconds: object, serried: Call, recorded: Path, plan: Path, tmp_path: Path
) -> None:
    document = json.loads(plan.read_text())
    document["constants"]["layer"]["forward"] = seconds
    file = tmp_path / "other.json"
    file.write_text(json.dumps(document))
    told = serried("trace", "compare", str(recorded), "--planned", str(file))
    assert told.code == 2
    assert "cannot be read" in told.err
