"""The page at the sizes people have: nothing runs over, is cut off or lies on something else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.page import Open
from tests.views.web.workbench import Workbench

LARGE = "dims=dp,tp,pp,cp&tp=8&pp=16&cp=2"
BOTH_WAYS = "view=schedule&name=dualpipe,chimera,dualpipev&stages=8&microbatches=16"
SOUGHT = "plan=1&by=dp&colour=lateness&seek=F&slice=12"
MEASURED = "view=schedule&name=1f1b,run:0:1,zbv&stages=2&microbatches=4"
LIMITED = "view=schedule&name=1f1b,zb-h2,zbv&microbatches=6&latency=1/2&memory_limit=3"


@dataclass(frozen=True)
class Screen:
    """One way to look at the page, and the file that the picture of it goes to."""

    name: str
    query: str
    lang: str = "en-US"
    scheme: str = "light"
    width: int = 1400
    height: int = 900
    traced: bool = False


SCREENS = [
    Screen("start", ""),
    Screen("start-zh", "", lang="zh-CN", width=1280, height=720),
    Screen("16", "dims=dp,tp,pp&rank=5"),
    Screen("16-zh-dark", "dims=dp,tp,pp,cp&cp=2&rank=5", lang="zh-CN", scheme="dark"),
    Screen("16-stages", "dims=pp&arrange=stage&kind=embd&kind=mp", width=1280, height=720),
    Screen("wrong-zh", "dims=dp&tp=3", lang="zh-CN", width=1280, height=720),
    Screen("1024-dark", "dims=dp,tp,pp&world_size=1024&tp=8&pp=8&rank=100", scheme="dark"),
    Screen("plan-rank", "view=plan&world_size=64&tp=4&pp=4&rank=3"),
    Screen("16384", f"{LARGE}&world_size=16384&rank=5000"),
    Screen("16384-zh-near", f"{LARGE}&world_size=16384&map=5000,60", lang="zh-CN"),
    Screen("schedule", "view=schedule&action=1:2I3"),
    Screen("schedule-zh-dark", f"{BOTH_WAYS}&show=strips,path", lang="zh-CN", scheme="dark"),
    Screen("schedule-small", LIMITED, width=1280, height=720),
    Screen("schedule-small-zh", LIMITED, lang="zh-CN", width=1280, height=720),
    Screen("timeline", "slice=40", traced=True),
    Screen("timeline-zh-dark", "slice=40", lang="zh-CN", scheme="dark", traced=True),
    Screen("timeline-near", "time=0,9000000&slice=12", width=1280, height=720, traced=True),
    Screen("timeline-plan", f"{SOUGHT}&range=0,9000000,0-3", traced=True),
    Screen("timeline-plan-zh", f"{SOUGHT}&heat=idle", "zh-CN", width=1280, height=720, traced=True),
    Screen("schedule-measured", f"{MEASURED}&action=1:1B2", "zh-CN", "dark", 1280, 720, True),
    Screen("timeline-long-zh", "trace=1", lang="zh-CN", width=1280, height=720, traced=True),
]
EASY = {
    *("16", "16-stages", "16384", "schedule", "schedule-small"),
    *("timeline", "timeline-near", "timeline-plan", "timeline-zh-dark"),
}
"""Screens that have another one like them, in the longer language or with more on it."""

PANELS = (
    "#left, #job, #basics, #right > section, .toolbar, #bar, #schedule-form, "
    ".side > section, #schedule-frame"
)
WORDS = (
    "button:not(#skip-map), h2, h3:not(.head h3), label > span, summary, #legend li, #actions li, "
    "#bubble, #schedule-kinds li, .head .numbers span, #timeline-count, #schedule-count"
)
PIECES = (
    "button:not(#skip-map), input, select, h2, output, #legend li, #bubble, #emulated, "
    "#actions li, #schedule-kinds li, .head"
)

RUNS_OVER = """(selector) => [...document.querySelectorAll(selector)]
  .filter((e) => e.checkVisibility() && e.clientWidth && e.scrollWidth > e.clientWidth + 1)
  .map((e) => `${e.id || e.textContent.slice(0, 40)}: ${e.scrollWidth} in ${e.clientWidth}`)"""
CUT_CHOICES = """() => {
  const pen = document.createElement("canvas").getContext("2d");
  const arrow = 16;
  return [...document.querySelectorAll("select")]
    .filter((e) => e.checkVisibility() && e.clientWidth && e.selectedOptions.length)
    .map((e) => {
      const style = getComputedStyle(e);
      pen.font = style.font;
      const text = e.selectedOptions[0].textContent;
      const sides = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight) + arrow;
      return [e.id, text, e.clientWidth, Math.round(pen.measureText(text).width + sides)];
    })
    .filter(([, , has, needs]) => has < needs - 1);
}"""
OVERLAPS = """(selector) => {
  const all = [...document.querySelectorAll(selector)]
    .filter((e) => e.checkVisibility() && !e.closest("#others, #more, .card"));
  const boxes = all.map((e) => e.getBoundingClientRect());
  const found = [];
  all.forEach((one, i) => all.slice(i + 1).forEach((other, k) => {
    if (one.contains(other) || other.contains(one)) return;
    const [a, b] = [boxes[i], boxes[i + 1 + k]];
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    const names = [one, other].map((e) => e.outerHTML.slice(0, 60));
    if (wide > 1 && high > 1) found.push(names.join(" on "));
  }));
  return found;
}"""


@pytest.mark.parametrize(
    "screen",
    [
        pytest.param(each, id=each.name, marks=pytest.mark.soak if each.name in EASY else ())
        for each in SCREENS
    ],
)
def test_nothing_runs_over_is_cut_off_or_overlaps(
    page_of: Open, plain: str, traced: str, screenshots: Path, screen: Screen
) -> None:
    workbench: Workbench = page_of(
        traced if screen.traced else plain,
        screen.query,
        lang=screen.lang,
        scheme=screen.scheme,
        width=screen.width,
        height=screen.height,
    )
    workbench.page.screenshot(path=screenshots / f"{screen.name}.png")
    assert workbench.page.evaluate("document.documentElement.scrollHeight") <= screen.height
    assert workbench.page.evaluate("document.documentElement.scrollWidth") <= screen.width
    assert workbench.page.evaluate(RUNS_OVER, PANELS) == []
    assert workbench.page.evaluate(RUNS_OVER, WORDS) == []
    assert workbench.page.evaluate(CUT_CHOICES) == []
    assert workbench.page.evaluate(OVERLAPS, PIECES) == []
    lowest = workbench.page.locator("main").bounding_box()
    assert lowest and lowest["y"] + lowest["height"] == pytest.approx(screen.height, abs=1)


def test_a_narrow_window_stacks_the_columns(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp", width=600, height=900)
    assert workbench.page.evaluate("document.documentElement.scrollWidth") <= 600
    workbench.page.locator("#map").scroll_into_view_if_needed()
    workbench.hover_rank(3)
    assert workbench.lit() == [2, 3]


@pytest.mark.parametrize("panel", ["collective=all-reduce&collective_of=dp:0", "sharded=1"])
def test_on_a_phone_nothing_runs_over_the_map_and_a_panel(
    page_of: Open, plain: str, panel: str
) -> None:
    job = "framework=deepspeed&world_size=64&tp=4&pp=1&dims=dp&zero=2"
    workbench = page_of(plain, f"{job}&{panel}", lang="zh-CN", width=390, height=844)
    assert workbench.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert workbench.page.evaluate(RUNS_OVER, "#legend, .player, .player *") == []
