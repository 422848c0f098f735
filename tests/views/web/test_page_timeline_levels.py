"""The timeline of a large trace: windows and levels of detail, rows in groups, colours, ranges."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from serried.trace.merge.in_memory import merge
from serried.views.web.trace.payload import NamedTrace
from tests.page import Open
from tests.trace.recorded_run import Run
from tests.views.web.conftest import SMALL
from tests.views.web.served import served
from tests.views.web.workbench import Workbench

DENSE = Run(pp=2, tp=2, dp=2, num_microbatches=200, num_steps=3, compute="real")
"""Seen whole it has several spans to a pixel."""


@pytest.fixture(scope="module")
def windowed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a workbench whose traces are sent in windows, however small they are."""
    folder = tmp_path_factory.mktemp("runs")
    traces = [
        NamedTrace(name, merge([run.write(folder / name)]), whole_below=1)
        for name, run in (("small", SMALL), ("dense", DENSE))
    ]
    with served(traces) as address:
        yield address


def timeline(workbench: Workbench) -> dict[str, Any]:
    found: dict[str, Any] = workbench.read("timeline()")
    return found


def drag(workbench: Workbench, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Draws a range with Shift held, from one point of the page to another."""
    mouse = workbench.page.mouse
    mouse.move(*start)
    workbench.page.keyboard.down("Shift")
    mouse.down()
    mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    mouse.move(*end)
    mouse.up()
    workbench.page.keyboard.up("Shift")
    workbench.settle()


def slice_of(workbench: Workbench, name: str, rank: int, step: int = 0) -> int:
    """Returns the number of the slice of an action on a rank, of those that have been sent."""
    number: int = workbench.page.evaluate(
        """([name, rank, step]) => {
          for (let i = 0; i < serried.slices(); i++) {
            const each = serried.slice(i);
            if (each && each.name === name && each.rank === rank && each.step === step) return i;
          }
          return -1;
        }""",
        [name, rank, step],
    )
    assert number >= 0, f"no slice {name} on rank {rank} has been sent"
    return number


def test_a_large_trace_comes_as_an_overview_of_shares_and_then_in_windows(
    page_of: Open, windowed: str
) -> None:
    workbench = page_of(windowed, "trace=1")
    seen = timeline(workbench)
    assert not seen["isWhole"]
    assert workbench.read("slices()") == len(DENSE.spans())
    (overview,) = seen["sheets"]
    assert overview["shares"] >= 8, "a track of each rank is dense"
    assert workbench.read("drawn().spans") == 0, "what is dense is not drawn one by one"
    workbench.page.focus("#timeline")
    workbench.press(*"wwwwwwwwwwww")
    window, *_, last = timeline(workbench)["sheets"]
    assert window["bucket"] < overview["bucket"]
    assert last == overview, "it stays below what comes"


def test_zoomed_in_every_span_is_there_as_it_was_recorded(page_of: Open, windowed: str) -> None:
    low, high = 300_000_000, 330_000_000
    workbench = page_of(windowed, f"trace=1&time={low},{high}")
    sent = workbench.page.evaluate(
        "Array.from({length: serried.slices()}, (_, i) => serried.slice(i)).filter((s) => s)"
    )
    spans = DENSE.spans()
    first = min(span.start_ns for span in spans)
    expected = {
        (str(s.action), s.rank, s.step, s.start_ns - first, s.end_ns - first)
        for s in spans
        if s.start_ns - first < high and s.end_ns - first > low
    }
    names = ("name", "rank", "step", "start_ns", "end_ns")
    assert expected <= {tuple(each[name] for name in names) for each in sent}
    assert 100 < workbench.read("drawn().spans") < len(spans)


def test_panning_asks_only_for_what_is_not_there(page_of: Open, windowed: str) -> None:
    workbench = page_of(windowed, "trace=1&time=300000000,330000000")
    workbench.page.focus("#timeline")
    before = timeline(workbench)["asked"]
    workbench.press("d")
    assert timeline(workbench)["asked"] == before, "some of what is beside comes along"
    workbench.press(*"dddddddddd")
    assert timeline(workbench)["asked"] > before
    newest = timeline(workbench)["sheets"][0]
    view = workbench.read("view().timeline")
    assert newest["from"] <= view["start"] <= view["end"] <= newest["to"]


def test_a_click_on_what_is_too_thin_to_draw_selects_the_span_there(
    page_of: Open, windowed: str
) -> None:
    workbench = page_of(windowed, "trace=1")
    seen = timeline(workbench)
    line = next(line for line in seen["lines"] if line["rank"] == 5)
    workbench.page.mouse.move(seen["left"] + 400, seen["top"] + 36 + line["top"] + line["high"] / 3)
    workbench.settle()
    tip = workbench.text("#tip")
    assert "rank 5" in tip
    workbench.page.mouse.down()
    workbench.page.mouse.up()
    workbench.settle()
    assert workbench.text("#selected h3") in tip
    assert workbench.page.locator("#selected dd").first.inner_text() == "5"
    workbench.page.evaluate("serried.written()")
    assert "slice=" in workbench.query()


def test_an_address_names_a_slice_that_has_not_been_sent(page_of: Open, windowed: str) -> None:
    spans = len(DENSE.spans())
    workbench = page_of(windowed, f"trace=1&slice={spans - 1}&time=0,9000000")
    assert workbench.text("#selected h3") == "1SEND_B199"
    span = workbench.read(f"slice({spans - 1})")
    workbench.open(f"trace=1&slice={span['rank']}.{span['start_ns']:.0f}&time=0,9000000")
    assert workbench.text("#selected h3") == "1SEND_B199"
    view = workbench.read("view().timeline")
    assert view["end"] - view["start"] == pytest.approx(9_000_000), "the address says where"


def test_the_bubble_of_a_large_trace_stands_there_too(page_of: Open, windowed: str) -> None:
    workbench = page_of(windowed)
    workbench.click("#findings-toggle")  # which say it themselves
    assert workbench.text("#bubble").split("\n") == ["bubble 20.0% measured", "20.0% ideal"]


def test_an_arrow_leads_over_each_boundary_for_the_selected_microbatch(
    page_of: Open, windowed: str
) -> None:
    workbench = page_of(windowed)
    before = workbench.picture("timeline")
    number = slice_of(workbench, "1F2", 5)
    workbench.click_slice(number)
    seen = timeline(workbench)
    ends = [[workbench.read(f"slice({end})") for end in arrow] for arrow in seen["arrows"]]
    assert {(one["name"], other["name"]) for one, other in ends} == {
        ("0F2", "1F2"),
        ("1B2", "0B2"),
        ("0SEND_F2", "1RECV_F2"),
        ("1SEND_B2", "0RECV_B2"),
    }
    assert {one["rank"] for pair in ends for one in pair} == {1, 5}, "of its own pipeline"
    assert number in seen["kin"]
    assert workbench.picture("timeline") != before


@pytest.mark.parametrize("address", ["windowed", "traced"])
def test_rows_stand_under_groups_and_fold(
    page_of: Open, address: str, request: pytest.FixtureRequest
) -> None:
    workbench = page_of(request.getfixturevalue(address))
    options = workbench.page.locator("#timeline-by option").all_inner_texts()
    assert options[:3] == ["by rank", "under nodes", "under stages"]
    assert {"under tp", "under dp", "under pp"} <= set(options)
    workbench.choose("timeline-by", "dp")
    lines = timeline(workbench)["lines"]
    assert [line["rank"] for line in lines] == [-1, 0, 2, -1, 1, 3, -1, 4, 6, -1, 5, 7]
    seen = timeline(workbench)
    before = workbench.picture("timeline")
    workbench.page.mouse.click(seen["left"] + 40, seen["top"] + 36 + lines[0]["top"] + 8)
    workbench.settle()
    seen = timeline(workbench)
    assert [line["rank"] for line in seen["lines"]][:3] == [-1, -1, 1]
    assert seen["lines"][0]["folded"]
    assert seen["sheets"][0]["groups"] == 1, "what its ranks did is added up by the server"
    assert workbench.picture("timeline") != before
    assert {"by=dp", "folded=0"} <= set(workbench.query().split("&"))
    workbench.click("#timeline-fold")
    assert all(line["folded"] for line in timeline(workbench)["lines"])
    workbench.click("#timeline-fold")
    assert len(timeline(workbench)["lines"]) == 12


def test_a_link_brings_groups_folds_and_colours_back(page_of: Open, windowed: str) -> None:
    workbench = page_of(windowed, "by=stage&folded=1&colour=step&range=1000000,9000000,2-5")
    seen = timeline(workbench)
    assert [line["rank"] for line in seen["lines"]] == [-1, 0, 1, 2, 3, -1]
    assert (seen["colour"], workbench.value("timeline-colour")) == ("step", "step")
    assert seen["range"] == {"start": 1_000_000, "end": 9_000_000, "ranks": [2, 3, 4, 5]}
    assert workbench.value("timeline-by") == "stage"


@pytest.mark.parametrize(
    ("address", "lang", "scheme"), [("windowed", "en-US", "light"), ("traced", "zh-CN", "dark")]
)
def test_colours_stand_for_action_microbatch_step_or_lateness_and_are_explained(
    page_of: Open, address: str, lang: str, scheme: str, request: pytest.FixtureRequest
) -> None:
    workbench = page_of(request.getfixturevalue(address), lang=lang, scheme=scheme)
    pictures, legends = set(), set()
    for colour in ("", "microbatch", "step", "lateness"):
        workbench.choose("timeline-colour", colour)
        assert timeline(workbench)["colour"] == colour
        pictures.add(workbench.picture("timeline"))
        legends.add(workbench.text("#actions"))
        assert (f"colour={colour}" in workbench.query()) == bool(colour)
    assert len(pictures) == len(legends) == 4


def test_dragging_with_shift_held_marks_a_range_that_f_centres_and_escape_clears(
    page_of: Open, windowed: str
) -> None:
    workbench = page_of(windowed)
    seen = timeline(workbench)
    lines = seen["lines"]
    top = seen["top"] + 36
    drag(
        workbench,
        (seen["left"] + 300, top + lines[1]["top"] + 3),
        (seen["left"] + 420, top + lines[3]["top"] + 3),
    )
    found = timeline(workbench)["range"]
    assert found["ranks"] == [1, 2, 3]
    assert 0 < found["start"] < found["end"]
    workbench.page.evaluate("serried.written()")
    assert f"range={round(found['start'])},{round(found['end'])},1-3" in workbench.query()
    assert "slice=" not in workbench.query(), "drawing a range selects nothing"
    workbench.press("f")
    view = workbench.read("view().timeline")
    assert view["start"] < found["start"] < found["end"] < view["end"]
    assert view["end"] - view["start"] == pytest.approx(1.5 * (found["end"] - found["start"]))
    workbench.press("Escape")
    assert timeline(workbench)["range"] is None


def test_a_double_click_fits_the_slice(page_of: Open, windowed: str) -> None:
    workbench = page_of(windowed)
    number = slice_of(workbench, "1B1", 6)
    workbench.click_slice(number)  # the right column is there, and the canvas keeps its width
    place = workbench.read(f"whereSlice({number})")
    workbench.page.mouse.dblclick(place["x"], place["y"])
    workbench.settle()
    view = workbench.read("view().timeline")
    assert view["end"] - view["start"] == pytest.approx(3_000_000)


def test_up_and_down_go_from_rank_to_rank_as_they_stand_in_view(
    page_of: Open, windowed: str
) -> None:
    workbench = page_of(windowed, "by=dp")
    workbench.click_slice(slice_of(workbench, "0F1", 0))
    workbench.page.focus("#timeline")
    ranks = []
    for key in ("ArrowDown", "ArrowDown", "ArrowUp"):
        workbench.press(key)
        ranks.append(workbench.page.locator("#selected dd").first.inner_text())
    assert ranks == ["2", "1", "2"]


def test_keys_pressed_faster_than_answers_come_each_count(page_of: Open, windowed: str) -> None:
    workbench = page_of(windowed)
    workbench.click_slice(slice_of(workbench, "0F1", 2))
    workbench.page.focus("#timeline")
    workbench.press(".", ".", ".", ",")
    spans = sorted((s for s in SMALL.spans() if s.rank == 2), key=lambda s: (s.start_ns, s.end_ns))
    names = [str(span.action) for span in spans]
    assert workbench.text("#selected h3") == names[names.index("0F1") + 2]


def test_with_many_ranks_only_the_rows_in_view_are_drawn_and_a_link_scrolls_to_its_slice(
    page_of: Open, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = Run(pp=2, tp=8, dp=16, num_microbatches=1, num_steps=1)
    trace = merge([run.write(tmp_path_factory.mktemp("runs") / "wide")])
    with served([NamedTrace("wide", trace, whole_below=1)]) as address:
        workbench = page_of(address)
        seen = timeline(workbench)
        assert len(seen["lines"]) == 256
        assert 0 < workbench.read("drawn().spans") < len(trace.spans) / 4
        tops = [line["top"] for line in seen["lines"]]
        assert all(below > above for above, below in pairwise(tops))
        workbench.open(f"slice={len(trace.spans) - 1}")
        assert timeline(workbench)["scrolled"] > 1000
