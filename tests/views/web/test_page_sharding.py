"""The page shows what every rank holds under ZeRO, event by event, as Python planned the step."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from serried.frameworks import Sizes, layout
from serried.plan.precision import RECIPES
from serried.plan.sharded_step import step_of
from serried.trace.merge.in_memory import merge
from serried.views.sharding.answer import StepAnswer
from serried.views.web.trace.payload import NamedTrace
from tests.page import Open
from tests.trace.planned_run import write_planned_run
from tests.views.web.served import served

DRAWN = Path(__file__).parents[2] / "web_modules" / "sharding" / "steps.json"


def test_the_steps_that_the_page_is_tested_on_are_what_python_plans() -> None:
    for stage, drawn in json.loads(DRAWN.read_text()).items():
        asked = {"parameters": "16"}
        job = layout("megatron", Sizes(4, zero=int(stage)))
        assert StepAnswer.of(job, asked, layers=2, microbatches=2).document("en") == drawn


@pytest.mark.parametrize("lang", ["en-US", pytest.param("zh-CN", marks=pytest.mark.soak)])
def test_every_event_of_a_step_is_shown_with_what_a_rank_then_holds(
    page_of: Open, plain: str, lang: str
) -> None:
    place = "framework=fsdp&world_size=8&tp=1&pp=1&dims=dp&zero=3&parameters=8000&layers=2"
    workbench = page_of(plain, place, lang=lang)
    workbench.click("#sharding-open")
    step, _ = step_of(
        layout("fsdp", Sizes(8, zero=3)), 8000, RECIPES["fp16-adam"], layers=2, microbatches=1
    )
    assert workbench.page.locator("#sharding-events li").count() == len(step.events)
    workbench.page.focus("#sharding-slider")
    pictures = {workbench.picture("sharding")}
    for done, event in enumerate(step.events[:6], 1):
        workbench.press("ArrowRight")
        shown = workbench.read("sharding()")
        assert (shown["done"], shown["held"]) == (done, asdict(event.held))
        pictures.add(workbench.picture("sharding"))
    assert len(pictures) == 7
    workbench.press("End")
    assert workbench.read("sharding()")["done"] == len(step.events)

    workbench.choose("sharding-stage", "0")
    assert workbench.value("zero") == "0"
    whole, _ = step_of(
        layout("fsdp", Sizes(8, zero=0)), 8000, RECIPES["fp16-adam"], layers=2, microbatches=1
    )
    assert workbench.read("sharding()")["events"] == len(whole.events)
    workbench.fill(**{"sharding-parameters": "x"})
    assert "x" in workbench.text("#sharding-alert")
    assert "sharded=1&parameters=x&layers=2" in workbench.query()
    workbench.click("#sharding-priced")
    assert workbench.value("sharding-parameters") == "8030261248", "those of llama3-8b"
    assert "dgx-h100" in workbench.text("#sharding-priced-told")
    workbench.fill(**{"sharding-layers": "2"})
    assert workbench.text("#sharding-priced-told") == ""
    assert workbench.value("sharding-parameters") == "8030261248", "it goes on from the plan's"
    workbench.click("#sharding-close")
    assert workbench.read("sharding()") is None


def test_a_recorded_step_stands_below_its_plan_and_where_it_differs_is_marked(
    page_of: Open, tmp_path: Path
) -> None:
    # Rank 0, whose step is shown, has recorded what was planned; then it is given another plan.
    place = write_planned_run(tmp_path / "run")
    with served([NamedTrace("run", merge([place]), place=place)]) as address:
        workbench = page_of(address)
        workbench.click("#sharding-open")
        shown = workbench.page.locator("#sharding-recorded")
        assert "rank 0 gathered and reduced what was planned" in shown.inner_text()
        rows = [row.inner_text().split() for row in shown.locator("tr").all()]
        assert [row[0] for row in rows] == ["Planned", "Recorded"]
        assert rows[0][1:] == rows[1][1:]
        assert rows[0][1:] == ["all-gather", "32,832", "B", "reduce-scatter", "13,440", "B"]
        assert shown.locator(".differs").count() == 0
        plan = place / "planned-step.json"
        plan.write_text(plan.read_text().replace("13440", "13448"))
        workbench.open("sharded=1")
        assert shown.locator(".differs").all_inner_texts() == [
            "reduce-scatter\n13,448 B",
            "reduce-scatter\n13,440 B",
        ]
