"""The page shows a recorded run: every slice, its name and duration, and its rank on the map."""

from __future__ import annotations

import pytest

from serried import frameworks
from serried.frameworks import Sizes
from tests.page import Open
from tests.views.web.conftest import LONG, SMALL, is_no_send
from tests.views.web.workbench import Workbench

LANGUAGES = ["en-US", pytest.param("zh-CN", marks=pytest.mark.soak)]
EMULATED = {"en-US": "emulated compute", "zh-CN": "模拟计算"}


FOUND = """([name, rank, step]) => Array.from({ length: serried.slices() }, (_, i) =>
  serried.slice(i)).findIndex((each) =>
  each.name === name && each.rank === rank && each.step === step)"""


def find(workbench: Workbench, name: str, rank: int, step: int = 0) -> int:
    """Returns the number of the slice of an action on a rank."""
    number: int = workbench.page.evaluate(FOUND, [name, rank, step])
    assert number >= 0, f"no slice {name} on rank {rank}"
    return number


@pytest.mark.parametrize("lang", LANGUAGES)
def test_opened_on_a_trace_it_shows_the_trace_s_own_layout_and_timeline(
    page_of: Open, traced: str, lang: str
) -> None:
    workbench = page_of(traced, lang=lang)
    assert workbench.value("world_size") == "8"
    assert list(workbench.read("groups()")) == ["dp", "tp", "pp"]
    assert workbench.page.is_visible("#timeline")
    assert not workbench.page.is_visible("#own-layout")
    assert workbench.text("#emulated") == EMULATED[lang]


def test_without_a_trace_there_is_no_timeline(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp")
    assert not workbench.page.is_visible("#timeline")
    assert workbench.read("slices()") == 0


def test_it_holds_as_many_slices_as_were_recorded_each_with_name_and_duration(
    page_of: Open, traced: str
) -> None:
    workbench = page_of(traced)
    spans = SMALL.spans()
    assert workbench.read("slices()") == len(spans)
    shown = workbench.page.evaluate(
        "Array.from({length: serried.slices()}, (_, i) => serried.slice(i))"
    )
    rows = {
        (each["name"], each["rank"], each["step"], each["start_ns"], each["end_ns"])
        for each in shown
    }
    first = min(span.start_ns for span in spans)
    assert rows == {
        (str(span.action), span.rank, span.step, span.start_ns - first, span.end_ns - first)
        for span in spans
    }
    assert {each["duration"] for each in shown if each["action"] == "F"} == {"1.000 ms"}
    assert {each["duration"] for each in shown if each["action"] == "B"} == {"2.000 ms"}


def test_hovering_a_slice_lights_its_rank_and_says_its_name_and_duration(
    page_of: Open, traced: str
) -> None:
    workbench = page_of(traced)
    layout = frameworks.layout("megatron", Sizes(8, tp=2, pp=2))
    for rank, name in ((0, "0B1"), (6, "1F2")):
        workbench.hover_slice(find(workbench, name, rank))
        peers = {
            each
            for kind in ("dp", "tp", "pp")
            for each in layout.groups(kind)[layout.groups(kind).containing(rank)[0]].tolist()
        }
        assert set(workbench.lit()) == peers
        tip = workbench.text("#tip")
        assert all(words in tip for words in (name, f"rank {rank}", " ms"))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_click_on_a_slice_shows_all_of_its_details(page_of: Open, traced: str, lang: str) -> None:
    workbench = page_of(traced, lang=lang)
    number = find(workbench, "0B2", 1, step=1)
    each = workbench.read(f"slice({number})")
    workbench.click_slice(number)
    panel = workbench.text("#selected")
    facts = workbench.page.locator("#selected dd").all_inner_texts()
    assert panel.startswith("0B2\n")
    assert facts == [
        "1",
        "0",
        "2",
        "1",
        f"{each['start_ns'] / 1e6:.2f} ms",
        f"{each['end_ns'] / 1e6:.2f} ms",
        "2.000 ms",
    ]
    workbench.page.mouse.move(5, 5)
    workbench.settle()
    assert 1 in workbench.lit()


def test_a_wait_says_for_whom(page_of: Open, traced: str) -> None:
    workbench = page_of(traced)
    number = find(workbench, "1RECV_F0", 4)
    workbench.click_slice(number)
    assert workbench.page.locator("#selected dd").all_inner_texts()[-1] == "0"
    assert "waits for activations" in workbench.text("#selected")
    workbench.click("#selected dd:last-child button.rank")
    assert "Rank 0" in workbench.text("#selected")


def test_a_rank_chosen_on_the_map_is_shown_on_the_timeline(page_of: Open, traced: str) -> None:
    workbench = page_of(traced)
    before = workbench.picture("timeline-over")
    workbench.click_rank(5)
    assert workbench.picture("timeline-over") != before


def test_pointing_at_a_span_draws_the_canvas_above_and_no_track(page_of: Open, traced: str) -> None:
    workbench = page_of(traced)
    before, above = workbench.picture("timeline"), workbench.picture("timeline-over")
    frames = workbench.read("timeline()")["frames"]
    workbench.hover_slice(find(workbench, "1RECV_F0", 4))
    assert workbench.picture("timeline-over") != above
    assert workbench.picture("timeline") == before
    assert workbench.read("timeline()")["frames"] == frames


def test_the_bubble_measured_stands_beside_the_ideal(page_of: Open, traced: str) -> None:
    workbench = page_of(traced)
    workbench.click("#findings-toggle")  # which say it themselves
    assert workbench.text("#bubble").split("\n") == ["bubble 20.0% measured", "20.0% ideal"]


def test_another_trace_is_chosen_and_its_layout_follows(page_of: Open, traced: str) -> None:
    workbench = page_of(traced)
    workbench.choose("trace", "1")
    assert workbench.read("slices()") == sum(map(is_no_send, LONG.spans()))
    assert workbench.value("world_size") == "4"
    assert not workbench.page.is_visible("#emulated"), "its compute was real"
    assert "trace=1" in workbench.query()


def test_a_layout_that_is_not_the_trace_s_own_offers_that_one(page_of: Open, traced: str) -> None:
    workbench = page_of(traced)
    workbench.fill(world_size="16")
    assert workbench.page.is_visible("#own-layout")
    workbench.click("#own-layout")
    assert workbench.value("world_size") == "8"
    assert not workbench.page.is_visible("#own-layout")


def test_w_a_s_d_zoom_and_pan_the_timeline(page_of: Open, traced: str) -> None:
    workbench = page_of(traced)
    workbench.hover_slice(find(workbench, "1F2", 5))
    workbench.press("w", "w")

    def view() -> tuple[float, float]:
        """Returns when it begins, and how long it is."""
        seen = workbench.read("view().timeline")
        return float(seen["start"]), float(seen["end"] - seen["start"])

    for key, place, grows in (("w", 1, False), ("s", 1, True), ("d", 0, True), ("a", 0, False)):
        before = view()[place]
        workbench.press(key)
        assert (view()[place] > before) == grows, key
        assert view()[place] != before, key


def test_zooming_keeps_the_time_under_the_pointer(page_of: Open, traced: str) -> None:
    workbench = page_of(traced)
    number = find(workbench, "1B1", 6)
    workbench.hover_slice(number)
    before = workbench.read(f"whereSlice({number})")
    workbench.press("w", "w")
    after = workbench.read(f"whereSlice({number})")
    assert after["x"] == pytest.approx(before["x"], abs=1)


def test_the_wheel_zooms_and_pans_as_perfetto_does(page_of: Open, traced: str) -> None:
    workbench = page_of(traced)
    workbench.hover_slice(find(workbench, "1F2", 5))

    def turn(x: float, y: float, key: str | None = None) -> tuple[float, float]:
        if key:
            workbench.page.keyboard.down(key)
        workbench.page.mouse.wheel(x, y)
        workbench.settle()
        if key:
            workbench.page.keyboard.up(key)
        view = workbench.read("view().timeline")
        return view["start"], view["end"] - view["start"]

    start, span = turn(0, 0)
    zoomed = turn(0, -200, "Control")
    assert zoomed[1] < span
    panned = turn(0, 120, "Shift")
    assert panned[0] > zoomed[0]
    assert panned[1] == pytest.approx(zoomed[1])
    sideways = turn(-90, 0)
    assert sideways[0] < panned[0]
    assert start < sideways[0]


def test_dragging_pans(page_of: Open, traced: str) -> None:
    workbench = page_of(traced)
    workbench.hover_slice(find(workbench, "1F2", 5))
    workbench.press("w", "w")
    before = workbench.read("view().timeline.start")
    workbench.page.mouse.down()
    workbench.page.mouse.move(700, 700)
    workbench.page.mouse.up()
    workbench.settle()
    assert workbench.read("view().timeline.start") != before
    assert workbench.query().count("slice=") == 0, "a drag selects nothing"


def test_comma_and_full_stop_go_along_a_rank_and_f_centres(page_of: Open, traced: str) -> None:
    workbench = page_of(traced)
    workbench.page.focus("#timeline")
    workbench.click_slice(find(workbench, "0F1", 2))
    names = []
    for key in (".", ".", ","):
        workbench.press(key)
        names.append(workbench.text("#selected h3"))
    spans = [span for span in SMALL.spans() if span.rank == 2 and span.step == 0]
    actions = [str(span.action) for span in sorted(spans, key=lambda span: span.start_ns)]
    place = actions.index("0F1")
    assert names == [actions[place + 1], actions[place + 2], actions[place + 1]]
    workbench.press("f")
    view = workbench.read("view().timeline")
    assert view["end"] - view["start"] < 4e6
    workbench.press("0")
    view = workbench.read("view().timeline")
    assert view["start"] < 0 < view["end"]


def test_thin_slices_are_drawn_by_exact_shares_and_wide_ones_one_by_one(
    page_of: Open, traced: str
) -> None:
    workbench = page_of(traced, "trace=1")
    assert workbench.read("drawn().spans") == 0
    number = find(workbench, "1B5", 1)
    start = int(workbench.read(f"slice({number})")["start_ns"])
    workbench.open(f"trace=1&time={start - 3_000_000},{start + 9_000_000}")
    assert 10 < workbench.read("drawn().spans") < len(LONG.spans())


def test_actions_in_the_trace_are_explained_by_colour(page_of: Open, traced: str) -> None:
    workbench = page_of(traced)
    legend = workbench.page.locator("#actions li").all_inner_texts()
    assert legend == ["forward", "backward", "send", "wait", "optimizer"]
    titles = workbench.page.locator("#actions li").evaluate_all("all => all.map(e => e.title)")
    assert "waits for activations · waits for gradients" in titles
