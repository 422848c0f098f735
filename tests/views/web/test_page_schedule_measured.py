"""A recorded step among the planned schedules: one axis, its own times, labelled as measured."""

from __future__ import annotations

import pytest

from tests.page import Open
from tests.trace.recorded_run import BACKWARD_NS, FORWARD_NS
from tests.views.web.workbench import Workbench


def titles(workbench: Workbench) -> list[str]:
    return [head.split("\n")[0] for head in workbench.page.locator(".head").all_inner_texts()]


def test_a_step_of_a_run_stands_below_its_plan_on_one_axis(page_of: Open, traced: str) -> None:
    workbench = page_of(traced, "view=schedule&name=zb-h1")
    workbench.choose("schedule-add", "run:0")
    assert titles(workbench) == ["1f1b", "small · step 1", "zb-h1"]
    head = workbench.text(".head:nth-child(2)")
    assert "measured" in head
    assert "pipeline of ranks 0 4, emulated compute" in head
    planned, measured, _ = workbench.read("schedules()")
    # The run was placed by the longest path, so its plan is as long as what was recorded.
    assert measured["makespan"] == 5 * (FORWARD_NS + BACKWARD_NS) / 1e6
    assert measured["makespan"] == pytest.approx(planned["makespan"])
    assert workbench.value("schedule-forward") == "1"
    for action in ("0F0", "1B3"):
        above, below = (workbench.read(f"whereAction({block}, '{action}')") for block in (0, 1))
        assert (above["x"], below["y"] > above["y"]) == (pytest.approx(below["x"], abs=0.5), True)
    workbench.page.mouse.move(below["x"], below["y"])
    workbench.settle()
    tip = workbench.text("#tip")
    assert "1B3 · backward · rank 4" in tip
    assert "critical" not in tip
    assert "serried schedule 1f1b,zb-h1 " in workbench.text("#schedule-command")


def test_the_step_is_chosen_by_number_and_the_address_holds_it(page_of: Open, traced: str) -> None:
    workbench = page_of(traced, "view=schedule&name=1f1b,run:0:1&stages=2", lang="zh-CN")
    assert titles(workbench)[1] == "small · 第 1 步"
    assert "实测" in workbench.text(".head:nth-child(2)")
    workbench.page.fill("#schedule-step-0", "0")
    workbench.page.press("#schedule-step-0", "Tab")
    workbench.settle()
    assert titles(workbench)[1] == "small · 第 0 步"
    assert "run%3A0%3A0" in workbench.query() or "run:0:0" in workbench.query()
    workbench.page.fill("#schedule-step-0", "9")
    workbench.page.press("#schedule-step-0", "Tab")
    workbench.settle()
    assert "这次运行没有第 9 步" in workbench.text("#schedule-names")
    workbench.click("#language")
    assert "the run has no step 9" in workbench.text("#schedule-names")
