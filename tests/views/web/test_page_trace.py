"""The page works with a trace: its plan, a search, a range, and figures on the map."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

import pytest

from serried.trace.model.trace import Trace
from serried.views.web.trace.payload import NamedTrace
from tests.page import Open
from tests.trace.measure.ranks.test_slowest import even
from tests.trace.simulated_run import FORWARD, simulated_run
from tests.views.trace.test_verdict import data_parallel
from tests.views.web.served import served
from tests.views.web.workbench import Workbench

SLOW_RANK, EXTRA = 4, 400_000
LANGUAGES = ["en-US", pytest.param("zh-CN", marks=pytest.mark.soak)]


def slow(pipeline: int, step: int, stage: int, microbatch: int) -> int:
    """Rank 4 takes longer over one forward of the middle step."""
    return FORWARD + EXTRA * ((pipeline, step, stage, microbatch) == (0, 1, 2, 3))


def slow_loader() -> Trace:
    own = even(4, 6)
    for row in own["loader"]:
        row[2] += 15
    return data_parallel(own, loads=1.0)


@pytest.fixture(scope="module")
def planned() -> Iterator[str]:
    """The address of a workbench with a run of 8 ranks and 3 steps, and two like it.

    One is shown as if it were large, the other says no schedule and has the order of none. The
    fourth is of replicas alone, one of which loads slowly.
    """
    run = simulated_run(forward=slow)
    job = dataclasses.replace(run.job, schedule="unknown")
    shuffled = dataclasses.replace(run.spans, microbatch=(run.spans.microbatch * 3) % 8)
    unknown = dataclasses.replace(run, job=job, spans=shuffled)
    traces = [
        NamedTrace("slow", run),
        NamedTrace("large", run, whole_below=10),
        NamedTrace("unknown", unknown),
        NamedTrace("replicas", slow_loader()),
    ]
    with served(traces) as address:
        yield address


def search(workbench: Workbench, text: str) -> None:
    workbench.page.fill("#timeline-search", text)
    workbench.page.press("#timeline-search", "Enter")
    workbench.settle()


def written(workbench: Workbench) -> str:
    """Returns what the address bar holds once the newest view is written there."""
    workbench.page.evaluate("serried.written()")
    return workbench.query()


def slice_of(workbench: Workbench, name: str, rank: int, step: int) -> int:
    shown = workbench.page.evaluate(
        "Array.from({length: serried.slices()}, (_, i) => serried.slice(i))"
    )
    return next(
        number
        for number, each in enumerate(shown)
        if (each["name"], each["rank"], each["step"]) == (name, rank, step)
    )


def test_the_plan_is_drawn_below_the_rows_and_the_address_holds_it(
    page_of: Open, planned: str
) -> None:
    workbench = page_of(planned)
    before = workbench.picture("timeline")
    workbench.click("#timeline-plan")
    drawn = workbench.picture("timeline")
    assert drawn != before
    assert "plan=1" in workbench.query()
    assert workbench.page.get_attribute("#timeline-plan", "aria-pressed") == "true"
    workbench.open(workbench.query())
    assert workbench.picture("timeline") == drawn
    workbench.click("#timeline-plan")
    assert workbench.picture("timeline") == before
    assert "plan" not in workbench.query()


LATE = {
    "en-US": ["started 400.0 us late", "because rank 4 computed 400.0 us longer in 1 action"],
    "zh-CN": ["晚开始 400.0 us", "因为 rank 4 在它之前的 1 个动作里多用了 400.0 us"],
}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_late_slice_says_how_late_it_was_and_why(page_of: Open, planned: str, lang: str) -> None:
    workbench = page_of(planned, "plan=1", lang=lang)
    number = slice_of(workbench, "0B7", 0, 1)
    workbench.click_slice(number)
    workbench.hover_slice(number)
    for words in LATE[lang]:
        assert words in workbench.text("#selected .late")
        assert words in workbench.text("#tip")


def test_a_link_with_a_slice_and_the_plan_says_how_late_it_was(page_of: Open, planned: str) -> None:
    workbench = page_of(planned)
    late = slice_of(workbench, "0B7", 0, 1)
    workbench.open(f"slice={late}&plan=1")
    assert "started 400.0 us late" in workbench.text("#selected")


def test_another_language_asks_nothing_of_the_trace_again(page_of: Open, planned: str) -> None:
    workbench = page_of(planned, "plan=1&heat=busy&range=4000000,12000000,0-3&time=1000000,9000000")
    view = workbench.read("view().timeline")
    asked: list[str] = []
    workbench.page.on("request", lambda request: asked.append(request.url))
    workbench.click("#language")
    assert not [url for url in asked if "/api/trace" in url]
    assert workbench.read("view().timeline") == view
    for place, words in (("#bubble", "气泡"), ("#stretch", "忙碌"), ("#heat-panel", "中位数")):
        assert words in workbench.text(place)
    options = workbench.page.locator("#timeline-colour option").all_inner_texts()
    assert options == ["动作", "微批次", "训练步", "迟到多少"]


def test_colours_by_lateness_tell_early_from_late(page_of: Open, planned: str) -> None:
    workbench = page_of(planned, "colour=lateness")
    legend = workbench.page.locator("#actions li").all_inner_texts()
    assert legend[0] == "not planned"
    assert legend[1].startswith("early by ")
    assert legend[4] == "on time"
    assert legend[7].startswith("late by ")
    workbench.hover_slice(slice_of(workbench, "1F0", 2, 0))
    assert "started on time" in workbench.text("#tip")


def test_a_run_without_a_schedule_says_why_it_has_no_plan(page_of: Open, planned: str) -> None:
    workbench = page_of(planned, "trace=2&plan=1")
    title = workbench.page.get_attribute("#timeline-plan", "title") or ""
    assert "does not say which schedule ran" in title
    assert workbench.page.is_disabled("#timeline-plan")
    assert workbench.page.get_attribute("#timeline-plan", "aria-pressed") == "false"
    assert "plan" not in written(workbench)


def test_a_search_counts_dims_and_goes_from_one_to_the_next(page_of: Open, planned: str) -> None:
    workbench = page_of(planned)
    clear = workbench.picture("timeline")
    workbench.page.focus("#timeline")
    workbench.press("/")
    assert workbench.page.evaluate("document.activeElement.id") == "timeline-search"
    workbench.page.keyboard.type("1F2")
    workbench.press("Enter")
    assert workbench.text("#timeline-count") == "1 of 6, on 2 ranks"
    assert workbench.text("#selected h3") == "1F2"
    assert workbench.picture("timeline") != clear
    places = []
    for key in ("Enter", "Enter", "Shift+Enter"):
        workbench.press(key)
        rank = workbench.page.locator("#selected dd").first.inner_text()
        places.append((workbench.text("#timeline-count").split(",")[0], rank))
    assert places == [("2 of 6", "3"), ("3 of 6", "2"), ("2 of 6", "3")]
    workbench.page.focus("#timeline")
    workbench.press("n", "n", "Shift+N")
    assert workbench.text("#timeline-count").startswith("3 of 6")
    assert "seek=1F2" in workbench.query()
    workbench.press("Escape")
    assert workbench.text("#timeline-count") == ""
    assert "seek" not in written(workbench)


FOUND = {
    "rank 5": 48,
    "5": 48,
    "mb 5": 48,
    "forward step 2": 64,
    "反向 stage 3": 48,
}


def test_what_is_typed_is_found_by_action_rank_microbatch_and_step(
    page_of: Open, planned: str
) -> None:
    workbench = page_of(planned, "seek=rank 7")
    assert workbench.text("#timeline-count") == "1 of 48, on 1 rank"
    for text, count in FOUND.items():
        search(workbench, text)
        assert f" of {count}, on " in workbench.text("#timeline-count"), text


def test_what_is_not_there_is_said(page_of: Open, planned: str) -> None:
    workbench = page_of(planned)
    for text, said in (("rank 99", "nothing found"), ("rank 1 rank 2", "two different numbers")):
        search(workbench, text)
        assert said in workbench.text("#timeline-count")
        assert workbench.page.locator("#timeline-search[aria-invalid]").count() == 1
    workbench.press("Escape")
    assert workbench.text("#timeline-count") == ""
    assert workbench.page.evaluate("document.activeElement.id") == "timeline"


def test_a_search_reaches_slices_that_were_not_sent(page_of: Open, planned: str) -> None:
    workbench = page_of(planned, "trace=1&time=0,2000000")
    search(workbench, "3B7 step 2")
    assert workbench.text("#timeline-count") == "1 of 2, on 2 ranks"
    assert workbench.text("#selected h3") == "3B7"


RANGE = {
    "en-US": ["4 ranks", "busy", "late peer", "backward"],
    "zh-CN": ["4 个 rank", "忙碌", "对端迟到", "反向"],
}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_range_shows_what_its_ranks_did_and_is_copied_as_text(
    page_of: Open, planned: str, lang: str
) -> None:
    workbench = page_of(planned, "range=4000000,12000000,0-3", lang=lang)
    panel = workbench.text("#stretch")
    for words in RANGE[lang]:
        assert words.lower() in panel.lower()
    shares = [float(each) for each in re.findall(r"([\d.]+)%", panel)]
    assert shares[0] + shares[1] == pytest.approx(100, abs=0.11)
    workbench.click("#copy-stretch")
    lines = workbench.copied().split("\n")
    assert len([line for line in lines if line.count("\t") >= 1]) >= 7
    workbench.click("#stretch-close")
    assert not workbench.page.is_visible("#stretch")
    assert "range" not in written(workbench)


def test_a_range_drawn_with_shift_is_measured(page_of: Open, planned: str) -> None:
    workbench = page_of(planned)
    first = workbench.read(f"whereSlice({slice_of(workbench, '0F0', 0, 0)})")
    last = workbench.read(f"whereSlice({slice_of(workbench, '0B7', 1, 0)})")
    mouse, keyboard = workbench.page.mouse, workbench.page.keyboard
    mouse.move(first["x"], first["y"])
    keyboard.down("Shift")
    mouse.down()
    mouse.move(last["x"], last["y"], steps=3)
    mouse.up()
    keyboard.up("Shift")
    workbench.settle()
    assert "2 ranks · 3" in workbench.text("#stretch")


def test_a_figure_colours_the_map_and_lists_who_stands_out(page_of: Open, planned: str) -> None:
    workbench = page_of(planned)
    assert workbench.read("heat(0)") is None
    workbench.choose("heat", "excess")
    assert "heat=excess" in workbench.query()
    colours = [workbench.read(f"heat({rank})") for rank in range(8)]
    assert len({*colours}) == 2
    assert colours.count(colours[SLOW_RANK]) == 1
    panel = workbench.text("#heat-panel") + workbench.text("#map-key")
    assert all(words in panel for words in ("median 0 ns", "133.3 us", "+133.3 us"))
    workbench.hover_rank(SLOW_RANK)
    assert "excess 133.3 us" in workbench.text("#tip")
    workbench.click("#heat-panel button.rank")
    assert "Rank 4" in workbench.text("#selected")
    assert workbench.page.evaluate("document.activeElement.id") == "timeline"
    workbench.choose("heat", "")
    assert workbench.read("heat(0)") is None
    assert not workbench.page.is_visible("#heat-panel")


def test_another_layout_than_the_trace_s_is_not_coloured_and_says_so(
    page_of: Open, planned: str
) -> None:
    workbench = page_of(planned, "heat=busy")
    assert workbench.read("heat(0)") is not None
    workbench.fill(world_size="16")
    assert workbench.read("heat(0)") is None
    assert "another layout" in workbench.text("#heat-panel")
    workbench.click("#heat-panel button")
    assert workbench.read("heat(0)") is not None


def test_a_figure_that_the_trace_lacks_is_said(page_of: Open, planned: str) -> None:
    workbench = page_of(planned, "heat=exchange")
    assert "'exchange' is no figure of this trace" in workbench.text("#heat-panel")


PERIOD = {
    "en-US": ("period 49", "data 4.750 ms (9.7%)"),
    "zh-CN": ("周期 49", "数据 4.750 ms (9.7%)"),
}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_job_without_a_pipeline_has_its_period_in_place_of_a_bubble(
    page_of: Open, planned: str, lang: str
) -> None:
    workbench = page_of(planned, "trace=3", lang=lang)
    period, data = PERIOD[lang]
    assert workbench.text("#bubble").startswith(period)
    assert data in workbench.text("#period .legend")
    assert workbench.text("#period tbody tr >> nth=0 >> th") == "2"
    workbench.click("#period-toggle")
    assert workbench.page.is_hidden("#period")
    assert workbench.page.get_attribute("#period-toggle", "aria-expanded") == "false"
    workbench.open("trace=0")
    assert "27.3%" in workbench.text("#bubble")
    assert workbench.page.is_hidden("#period")
