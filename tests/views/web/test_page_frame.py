"""The frame of the page: six tabs at their own addresses, columns that give way to the picture."""

from __future__ import annotations

import pytest

from serried.frameworks import FRAMEWORKS
from tests.page import Open
from tests.soaked import rows

TABS = ("layout", "schedule", "plan", "run", "diagnose", "learn")
PICTURE = """() => {
  const pictures = "canvas, .chain, #plan-waterfall, #plan-found-table, #learn-cards, #learn-plays";
  const boxes = [...document.querySelectorAll(pictures)]
    .filter((each) => each.checkVisibility())
    .map((each) => {
      const seen = each.getBoundingClientRect().toJSON();
      for (let around = each.parentElement; around; around = around.parentElement) {
        if (getComputedStyle(around).overflow === "visible") continue;
        const { left, top, right, bottom } = around.getBoundingClientRect();
        seen.left = Math.max(seen.left, left);
        seen.top = Math.max(seen.top, top);
        seen.right = Math.min(seen.right, right);
        seen.bottom = Math.min(seen.bottom, bottom);
      }
      return seen;
    });
  const step = 4;
  let covered = 0;
  let all = 0;
  for (let x = 0; x < innerWidth; x += step)
    for (let y = 0; y < innerHeight; y += step) {
      all++;
      if (boxes.some((b) => x >= b.left && x < b.right && y >= b.top && y < b.bottom)) covered++;
    }
  return covered / all;
}"""
"""The share of the window that pictures cover, each as far as it is scrolled into view: canvases
with their axes and margins, and what is drawn of elements (the chain of a diagnosis, the steps of a
plan's time, the layouts that a search found, the cards of Learn). Forms, toolbars, legends beside a
picture, verdicts, keys and the columns at the sides are no picture."""
HANG = "view=diagnose&diagnosed=example:skipped-all-reduce&world_size=8&tp=2&pp=2&order=tp-dp-pp"
LANGUAGES = ["en-US", pytest.param("zh-CN", marks=pytest.mark.soak)]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_seven_tenths_of_every_tab_are_picture_and_two_thirds_of_lessons(
    page_of: Open, plain: str, traced: str, lang: str
) -> None:
    for address, query, least in (
        (plain, "", 0.73),
        (plain, "view=schedule", 0.73),
        (plain, "view=plan", 0.7),
        (traced, "", 0.72),
        (plain, HANG, 0.74),
        (plain, "view=learn", 0.65),
    ):
        workbench = page_of(address, query, lang=lang)
        assert workbench.page.evaluate(PICTURE) >= least, query
        assert not workbench.page.is_visible("#absent")
        assert workbench.page.is_visible("#launch-open")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_selection_leaves_the_picture_all_but_the_column_that_tells_of_it(
    page_of: Open, plain: str, traced: str, lang: str
) -> None:
    for address, query, least in (
        (plain, "rank=5", 0.63),
        (plain, "view=schedule&action=0:2B3", 0.63),
        (plain, "view=plan&rank=5", 0.48),
        (traced, "rank=1", 0.53),
        (plain, f"{HANG}&rank=1", 0.55),
        (plain, "view=learn&card=tp&side=learn", 0.63),
    ):
        workbench = page_of(address, query, lang=lang)
        assert workbench.page.evaluate(PICTURE) >= least, query
        box = workbench.page.locator("#left").bounding_box()
        assert box and box["y"] == 40 and box["width"] == 1400, "the form is a strip above it"
        assert box["height"] <= (66 if "view=plan" in query else 34), "in one line, Plan's in two"
    workbench.press("q")
    box = workbench.page.locator("#left").bounding_box()
    assert box and box["width"] == 264, "and a column again once nothing is selected"
    workbench.press("b")
    assert not workbench.page.is_visible("#left"), "which a key hides"


@pytest.mark.parametrize("framework", rows(FRAMEWORKS, {*FRAMEWORKS} - {"megatron", "deepspeed"}))
def test_the_strip_is_one_line_on_a_narrow_screen(
    page_of: Open, plain: str, framework: str
) -> None:
    job = f"framework={framework}&world_size=16384&tp=1&pp=1&dims=dp&rank=5"
    lang = "en-US" if framework == "megatron" else "zh-CN"
    workbench = page_of(plain, job, lang=lang, width=1280, height=800)
    box = workbench.page.locator("#left").bounding_box()
    assert box and box["height"] <= 34
    assert not workbench.page.is_visible("#gpus_per_rank")
    workbench.click("#more summary")
    assert workbench.page.is_visible("#gpus_per_rank"), "what is seldom changed is a click away"


def test_each_tab_has_its_address_and_keeps_the_selection(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp&rank=5")
    for tab in (*TABS[1:], TABS[0]):
        workbench.click(f"#view-{tab}")
        assert workbench.page.get_attribute(f"#view-{tab}", "aria-current") == "page"
        assert workbench.page.locator("#views [aria-current]").count() == 1
        assert (f"view={tab}" in workbench.query()) == (tab != "layout"), "the first says nothing"
        assert workbench.lit() == [4, 5]
        assert workbench.page.is_visible("#selected") == (tab != "schedule")
    other = page_of(plain, "view=schedule&dims=tp&rank=5")
    assert other.read("state()") == {**other.read("state()"), "view": "schedule", "rank": "5"}
    assert not other.page.is_visible("#selected")


@pytest.mark.parametrize(
    ("old", "tab"), [("view=job", "layout"), ("planned=1", "plan"), ("view=none", "layout")]
)
def test_addresses_from_before_the_tabs_still_open(
    page_of: Open, plain: str, old: str, tab: str
) -> None:
    assert page_of(plain, old).read("state()")["view"] == tab


def test_a_run_that_is_served_opens_in_its_tab_and_others_stay_a_click_away(
    page_of: Open, traced: str
) -> None:
    workbench = page_of(traced)
    assert workbench.read("state()")["view"] == "run"
    assert workbench.page.is_visible("#timeline") and workbench.page.is_visible("#map")
    workbench.click("#view-layout")
    assert not workbench.page.is_visible("#timeline")
    again = page_of(traced, workbench.query())
    assert again.read("state()")["view"] == "layout", "a link names the tab where a run would open"
    again.click("#examples button:has-text('long')")
    assert (again.read("state()")["view"], again.value("pp")) == ("run", "4")


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("en-US", "No {} is open"),
        pytest.param("zh-CN", "还没有打开", marks=pytest.mark.soak),
    ],
)
def test_a_tab_without_its_subject_says_what_opens_it(
    page_of: Open, plain: str, lang: str, words: str
) -> None:
    workbench = page_of(plain, lang=lang)
    for tab, subject in (("run", "run"), ("diagnose", "diagnosis")):
        workbench.click(f"#view-{tab}")
        assert words.format(subject) in workbench.text("#absent")
    workbench.click("#absent button")
    assert workbench.page.is_visible("#diagnose-verdict"), (
        "a hang among the examples is a click off"
    )
    workbench.click("#view-layout")
    assert not workbench.page.is_visible("#absent")


def test_the_right_column_comes_and_goes_with_the_selection(page_of: Open, plain: str) -> None:
    workbench = page_of(plain)
    assert not workbench.page.is_visible("#right")
    workbench.click_rank(5)
    assert "Rank 5" in workbench.text("#selected")
    workbench.click("#side-learn")
    assert workbench.page.is_visible("#explanation") and not workbench.page.is_visible("#selected")
    workbench.read("written()")
    assert "side=learn" in workbench.query()
    workbench.press("q")
    assert not workbench.page.is_visible("#right")
    workbench.click_rank(6)
    assert "Rank 6" in workbench.text("#selected")
    workbench.page.focus("#side-selected")
    workbench.press("ArrowRight")
    assert workbench.page.is_visible("#group-list")
    workbench.press("Escape")
    assert workbench.page.is_visible("#group-list"), "a tab that was turned to stays"


def test_the_right_column_grows_with_the_screen(page_of: Open, plain: str) -> None:
    for width, right, body in ((1400, 356, "14px"), (2560, 520, "16px")):
        workbench = page_of(plain, "rank=5", width=width, height=900 if width == 1400 else 1440)
        box = workbench.page.locator("#right").bounding_box()
        assert box and box["width"] == right
        assert workbench.page.evaluate("getComputedStyle(document.body).fontSize") == body


def test_every_example_opens_a_picture(page_of: Open, plain: str) -> None:
    workbench = page_of(plain)
    examples = workbench.page.locator("#examples button")
    for number in range(examples.count()):
        workbench.page.evaluate("document.getElementById('examples').open = true")
        examples.nth(number).click()
        workbench.settle()
        assert workbench.text("#alert") == workbench.text("#collective-alert") == ""
        assert workbench.page.evaluate(PICTURE) > 0.25
    workbench.page.go_back()
    workbench.settle()
    assert workbench.page.evaluate(PICTURE) > 0.25


@pytest.mark.parametrize("lang", ["en-US", pytest.param("zh-CN", marks=pytest.mark.soak)])
def test_the_tour_walks_the_page_and_brings_back_what_was_there(
    page_of: Open, plain: str, lang: str
) -> None:
    workbench = page_of(plain, "world_size=32&dims=tp", lang=lang)
    workbench.page.focus("#tour-open")
    workbench.press("Enter")
    views, titles = [], set()
    for _ in range(8):
        views.append(workbench.read("state()")["view"])
        titles.add(workbench.text("#tour-title"))
        ring = workbench.page.locator("#tour-ring").bounding_box()
        box = workbench.page.locator("#tour").bounding_box()
        assert ring and ring["width"] > 40 and ring["height"] > 20
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= 1400
        assert box["y"] >= 0 and box["y"] + box["height"] <= 900
        workbench.press("ArrowRight")
    assert views == ["layout", "layout", "layout", "schedule", "plan", "run", "diagnose", "layout"]
    assert len(titles) == 8
    assert not workbench.page.is_visible("#tour") and not workbench.page.is_visible("#tour-ring")
    assert workbench.value("world_size") == "32"
    workbench.click("#tour-open")
    workbench.press("Escape")
    assert not workbench.page.is_visible("#tour") and workbench.value("world_size") == "32"
