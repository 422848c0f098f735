"""The Schedule view in a real browser: parameters, stacked schedules, causes, path, link."""

from __future__ import annotations

from typing import Any

import pytest

from serried.pipeline import Costs, Request, critical_path, generate, simulate
from tests.page import Open
from tests.views.web.workbench import Workbench

LANGUAGES = ["en-US", pytest.param("zh-CN", marks=pytest.mark.soak)]


def shown(workbench: Workbench) -> dict[str, dict[str, Any]]:
    """Returns the schedules in view, by name, from the top."""
    return {each["name"]: each for each in workbench.read("schedules()")}


def point(workbench: Workbench, call: str, *, click: bool = False) -> None:
    place = workbench.read(call)
    assert place is not None, f"{call} is not in view"
    workbench.page.mouse.move(place["x"], place["y"])
    if click:
        workbench.page.mouse.click(place["x"], place["y"])
    workbench.settle()


@pytest.mark.parametrize(
    ("lang", "words"),
    [("en-US", "Schedule"), pytest.param("zh-CN", "调度", marks=pytest.mark.soak)],
)
def test_a_switch_shows_schedules_of_the_job_s_own_pipeline(
    page_of: Open, plain: str, lang: str, words: str
) -> None:
    workbench = page_of(plain, "pp=8&tp=1", lang=lang)
    assert workbench.text("#view-schedule") == words
    workbench.click("#view-schedule")
    assert not workbench.page.is_visible("#map")
    assert [each["num_ranks"] for each in shown(workbench).values()] == [8, 8, 8]
    assert "view=schedule" in workbench.query()
    workbench.page.go_back()
    workbench.settle()
    assert workbench.page.is_visible("#map")


def test_on_paper_schedules_are_whole_that_one_scrolls_to(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "view=schedule&name=1f1b,gpipe,zb-h1&stages=16&microbatches=16")
    page, sheets = workbench.page, workbench.page.locator(".sheet")
    assert page.evaluate("document.querySelector('#schedule-stack').clientHeight") > 1000
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert [text.split("\n")[0] for text in sheets.all_inner_texts()] == ["1f1b", "gpipe", "zb-h1"]
    pictures = [box for each in sheets.locator("canvas").all() if (box := each.bounding_box())]
    assert len(pictures) == 6, "an axis and rows of each"
    height = page.evaluate("document.body.getBoundingClientRect().height")
    assert height >= max(box["y"] + box["height"] for box in pictures)
    assert not page.is_visible("#schedule")
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert (sheets.count(), page.is_visible("#schedule")) == (0, True)


def test_schedules_stand_one_under_another_with_their_numbers(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "view=schedule&name=1f1b,zb-h1")
    heads = workbench.page.locator(".head").all_inner_texts()
    assert [head.split("\n")[0] for head in heads] == ["1f1b", "zb-h1"]
    for words in ("33 makespan", "27.3% of makespan", "37.5% over ideal", "27.3% of window",
                  "4 to W", "4 to I", "(p - 1)(f + b) = 9 for c = 0"):  # fmt: skip
        assert words in heads[0]
    first, second = (workbench.read(f"whereAction({block}, '0F0')") for block in (0, 1))
    assert first["x"] == second["x"]
    assert first["y"] < second["y"]
    commands = workbench.text("#schedule-command")
    assert commands == "serried schedule 1f1b,zb-h1 --stages 4 --microbatches 8"


def test_schedules_are_added_moved_and_removed(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "view=schedule&name=1f1b")
    workbench.choose("schedule-add", "gpipe")
    assert list(shown(workbench)) == ["1f1b", "gpipe"]
    workbench.click("#schedule-up-gpipe")
    assert list(shown(workbench)) == ["gpipe", "1f1b"]
    workbench.click("#schedule-away-1f1b")
    assert list(shown(workbench)) == ["gpipe"]
    workbench.choose("schedule-preset", "both_ways")
    assert list(shown(workbench)) == ["chimera", "dualpipe", "dualpipev"]
    assert workbench.value("schedule-stages") == "8"


@pytest.mark.parametrize(
    ("lang", "sentence", "why"),
    [
        (
            "en-US",
            "zb-h2 with 5 microbatches cannot be; it needs at least 7",
            "Below: the last that could be",
        ),
        pytest.param(
            "zh-CN", "zb-h2 不能用 5 个微批次，至少要 7", "上一次成立", marks=pytest.mark.soak
        ),
    ],
)
def test_what_cannot_be_is_said_where_it_was_typed_and_the_last_picture_stays(
    page_of: Open, plain: str, lang: str, sentence: str, why: str
) -> None:
    workbench = page_of(plain, "view=schedule&name=1f1b,zb-h2", lang=lang)
    workbench.fill(**{"schedule-microbatches": "5"})
    assert sentence in workbench.text("#schedule-form")
    assert workbench.page.get_attribute("#schedule-microbatches", "aria-invalid") == "true"
    assert why in workbench.text(".head.stale")
    schedules = shown(workbench)
    assert schedules["1f1b"]["num_microbatches"] == 5, "the others follow"
    assert schedules["zb-h2"]["num_microbatches"] == 8, "the last that could be"
    workbench.fill(**{"schedule-microbatches": "7"})
    assert not workbench.page.get_attribute("#schedule-microbatches", "aria-invalid")
    assert {each["num_microbatches"] for each in shown(workbench).values()} == {7}


@pytest.mark.parametrize(
    ("lang", "badge", "why"),
    [
        ("en-US", "refused by PyTorch, Megatron Core", "leave a last group of 1"),
        pytest.param(
            "zh-CN", "PyTorch、Megatron Core 不接受", "最后一组剩 1 个", marks=pytest.mark.soak
        ),
    ],
)
def test_sizes_that_packages_refuse_are_drawn_and_the_packages_named(
    page_of: Open, plain: str, lang: str, badge: str, why: str
) -> None:
    sizes = "name=interleaved-1f1b,gpipe&stages=4&microbatches=17&group=8"
    workbench = page_of(plain, f"view=schedule&{sizes}", lang=lang)
    heads = workbench.page.locator(".head").all_inner_texts()
    assert badge in heads[0]
    assert badge not in heads[1]
    listed = workbench.page.locator("#schedule-names li").all_inner_texts()
    assert why in listed[0]
    assert "Megatron" not in listed[1]
    workbench.fill(**{"schedule-group": "9", "schedule-microbatches": "20"})
    assert "Megatron" in workbench.text("#schedule-names"), "groups of 9 leave 2"
    workbench.fill(**{"schedule-group": "10"})
    assert "Megatron" not in workbench.text("#schedule-names")


def test_hovering_an_action_says_what_it_is_and_what_it_waited_for(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain, "view=schedule&latency=1/2")
    point(workbench, "whereAction(0, '1B0')")
    assert workbench.text("#tip").split("\n") == [
        "1B0 · backward · rank 1",
        "stage 1, microbatch 0",
        "10.5 – 12.5 (2)",
        "needed 2B0 of rank 2, which ended at 10 and arrived at 10.5",
        "waited 5.5 · waits for stage 2, microbatch 0: 2B0 on rank 2 has not ended",
        "waited 0.5 · latency: 2B0 of rank 2 has ended, its message (stage 2, microbatch 0) is "
        "under way",
        "on the critical path",
    ]


@pytest.mark.parametrize(
    ("lang", "causes"),
    [
        (
            "en-US",
            {
                "WARM_UP": "the first microbatch has not reached this rank",
                "DEPENDENCY": "waits for stage",
                "LATENCY": "its message",
                "MEMORY_LIMIT": "3 activations are held already",
                "COOL_DOWN": "this rank is done, others are not",
            },
        ),
        pytest.param(
            "zh-CN",
            {
                "WARM_UP": "第一个微批次还没有到达",
                "DEPENDENCY": "等待 stage",
                "LATENCY": "消息",
                "MEMORY_LIMIT": "已持有 3 个激活值",
                "COOL_DOWN": "其他 rank 还没有",
            },
            marks=pytest.mark.soak,
        ),
    ],
)
def test_hovering_a_bubble_says_its_cause(
    page_of: Open, plain: str, lang: str, causes: dict[str, str]
) -> None:
    workbench = page_of(
        plain, "view=schedule&name=1f1b&latency=1/2&memory_limit=3&stages=4", lang=lang
    )
    first: dict[str, int] = {}
    for number, each in enumerate(workbench.read("idles(0)")):
        first.setdefault(each["cause"], number)
    assert set(first) == set(causes)
    for cause, number in first.items():
        point(workbench, f"whereIdle(0, {number})")
        assert causes[cause] in workbench.text("#tip")


def test_causes_of_idle_time_add_up_beside_the_picture(page_of: Open, plain: str) -> None:
    workbench = page_of(
        plain, "view=schedule&name=1f1b&latency=1/2&memory_limit=3&stages=4&side=groups"
    )
    rows = workbench.page.locator("#schedule-causes tr").all_inner_texts()
    times = {row.split("\t")[0].strip(): float(row.split("\t")[1]) for row in rows}
    total = times.pop("all idle time")
    assert set(times) == {"warm-up", "dependency", "latency", "memory limit", "cool-down"}
    assert sum(times.values()) == total == 68


def test_the_critical_path_is_shown_and_said(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "view=schedule&name=gpipe&microbatches=3")
    before = workbench.picture("schedule")
    workbench.click("#schedule-path")
    assert workbench.picture("schedule") != before
    assert "show=strips,path" in workbench.query()
    path = critical_path(simulate(generate("gpipe", Request(4, 3)), Costs()))
    names = {str(step.action) for step in path}
    for stage in range(4):
        for action in ("F0", "F1", "B1", "B2"):
            each = workbench.read(f"action(0, '{stage}{action}')")
            assert each["critical"] == (f"{stage}{action}" in names)


def test_a_strip_says_how_many_activations_are_held(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "view=schedule&name=zbv&memory_limit=5")
    point(workbench, "whereStrip(0, 2)")
    held, most, limit, parts = workbench.text("#tip").split("\n")
    assert held.startswith("rank 2 holds 8 activations at ")
    assert (most, limit, parts) == ("8 at most", "10 fit", "each of 1/2 of the rank's layers")
    before = workbench.picture("schedule")
    workbench.click("#schedule-strips")
    assert workbench.picture("schedule") != before
    assert workbench.read("whereStrip(0, 2)")["y"] > 0


def test_the_keyboard_goes_from_action_to_action_and_what_is_chosen_is_said(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain, "view=schedule&name=1f1b,zb-h1")
    workbench.page.focus("#schedule")
    workbench.press("ArrowRight", "ArrowRight")
    assert "action=0:0F1" in written(workbench)
    workbench.press("ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown")
    assert "action=1:" in written(workbench), "past the last rank comes the next schedule"
    chosen = workbench.query().split("action=1:")[1]
    assert workbench.page.locator("#live").inner_text().startswith(f"zb-h1; {chosen} · ")
    view = workbench.read("scheduleView()")
    workbench.press("w", "w", "d")
    nearer = workbench.read("scheduleView()")
    assert nearer["end"] - nearer["start"] < view["end"] - view["start"]
    workbench.press("0")
    assert workbench.read("scheduleView()") == view
    workbench.press("Escape")
    assert "action" not in written(workbench)


def test_slash_goes_from_action_to_action_over_all_schedules(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "view=schedule&name=1f1b,zb-h1")
    workbench.press("/")
    workbench.page.keyboard.type("mb 3 rank 2 F")
    said = []
    for _ in range(3):
        workbench.press("Enter")
        said.append((workbench.text("#schedule-count"), workbench.text("#schedule-selected h3")))
    assert [count for count, _ in said] == ["1 of 2", "2 of 2", "1 of 2"]
    assert [title.split()[-1] for _, title in said] == ["1f1b", "zb-h1", "1f1b"]
    assert all(title.startswith("2F3") for _, title in said)
    workbench.page.fill("#schedule-search", "3F99")
    workbench.press("Enter")
    assert workbench.text("#schedule-count") == "nothing found"
    workbench.press("Escape")
    assert workbench.page.evaluate("document.activeElement.id") == "schedule"
    assert "action" not in written(workbench)


def test_a_link_is_a_bookmark(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "view=schedule")
    workbench.choose("schedule-of", "stage")
    workbench.fill(**{"schedule-forward": "1/3", "schedule-latency": "0.1"})
    point(workbench, "whereAction(1, '2I3')", click=True)
    workbench.press("w", "w", "c")
    query = written(workbench)
    state, view = workbench.read("state()"), workbench.read("scheduleView()")
    workbench.open(query)
    assert workbench.read("state()") == state
    again = workbench.read("scheduleView()")
    assert (again["start"], again["end"]) == pytest.approx((view["start"], view["end"]), abs=0.01)
    assert "2I3" in workbench.text("#schedule-selected h3")


def test_zoomed_out_no_action_is_drawn_on_its_own_and_zoomed_in_only_those_in_view(
    page_of: Open, plain: str
) -> None:
    query = "view=schedule&name=interleaved-1f1b&stages=16&microbatches=512&chunks=4"
    workbench = page_of(plain, query)
    assert shown(workbench)["interleaved-1f1b"]["num_actions"] == 16 * 512 * 4 * 2
    assert workbench.read("scheduleDrawn().actions") == 0
    workbench.open(f"{query}&window=500,510")
    near = workbench.read("scheduleDrawn().actions")
    assert 0 < near < 16 * 12 * 4


def written(workbench: Workbench) -> str:
    """Returns the address once it holds the newest view."""
    workbench.read("written()")
    return workbench.query()
