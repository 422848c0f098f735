"""The page shows which rank is in which group: each type, each framework, every scale."""

from __future__ import annotations

import json

import pytest

from serried import frameworks
from serried.frameworks import Sizes
from serried.mesh import Layout
from tests.conftest import Call
from tests.page import Open
from tests.views.web.workbench import Workbench

TYPES = [
    *("dp", "tp", "pp", "cp", "dp,tp", "dp,pp", "dp,tp,pp"),
    *("dp,cp", "dp,tp,cp", "dp,pp,cp", "dp,tp,pp,cp"),
]
LANGUAGES = ["en-US", pytest.param("zh-CN", marks=pytest.mark.soak)]
HINTS = {"en-US": "Choose a type of groups", "zh-CN": "请先选择通信组类型"}
SIZES = Sizes(16, tp=2, pp=2, cp=2)
ASKED = "pp=2&cp=2"


def groups(layout: Layout, dims: str) -> dict[str, list[list[int]]]:
    """Returns what the page must show: data groups with context folded in beside cp."""
    folded = "cp" in dims.split(",")
    kinds = [layout.kind_of(dim, with_cp=folded) for dim in dims.split(",")]
    return {kind: layout.groups(kind).lists() for kind in kinds}


def peers(layout: Layout, dims: str, rank: int) -> set[int]:
    return {
        each
        for lists in groups(layout, dims).values()
        for ranks in lists
        if rank in ranks
        for each in ranks
    }


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_page_opens_with_a_picture_and_says_what_to_choose_without_a_type(
    page_of: Open, plain: str, lang: str
) -> None:
    workbench = page_of(plain, lang=lang)
    layout = frameworks.layout("megatron", Sizes(16, tp=2, pp=4))
    assert workbench.read("groups()") == groups(layout, "dp,tp,pp")
    assert not workbench.page.is_visible("#hint")
    workbench.choose("type", "")
    assert HINTS[lang] in workbench.text("#hint")
    assert workbench.read("groups()") == {}
    assert workbench.read("where(0)") is None
    assert workbench.text("#group-list") == ""
    workbench.choose("type", "tp")
    assert not workbench.page.is_visible("#hint")
    assert workbench.read("where(0)") is not None


@pytest.mark.parametrize("lang", LANGUAGES)
def test_what_colours_mean_and_why_a_row_is_a_stage_stands_under_learn(
    page_of: Open, plain: str, lang: str
) -> None:
    workbench = page_of(plain, lang=lang)
    basics = workbench.page.locator("#basics")
    for place in ("", "dims=dp,tp", "dims=pp&tp=3"):
        workbench.open(place)
        assert not basics.is_visible(), "the picture has the room until it is asked for"
        workbench.click("#right-toggle")
        workbench.click("#side-learn")
        shown = basics.inner_text()
        assert all(word in shown for word in ("DP", "TP", "PP", "CP", "stage"))
        assert basics.evaluate("e => e.scrollWidth <= e.clientWidth"), "nothing is cut off"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_each_of_the_eleven_types_changes_the_picture_and_the_text(
    page_of: Open, plain: str, lang: str
) -> None:
    workbench = page_of(plain, f"{ASKED}&side=groups", lang=lang)
    workbench.page.set_viewport_size({"width": 1640, "height": 900})  # narrower, only switches fit
    layout = frameworks.layout("megatron", SIZES)
    options = workbench.page.locator("#type option").evaluate_all("all => all.map(e => e.value)")
    assert options == ["", *TYPES]
    pictures, lists, explanations = set(), set(), set()
    for dims in TYPES:
        workbench.choose("type", dims)
        assert workbench.read("groups()") == groups(layout, dims)
        pictures.add(workbench.picture())
        lists.add(workbench.text("#group-list"))
        explanations.add(workbench.page.text_content("#explanation"))
        marks = workbench.read("marks(5)")
        assert [each["label"].rstrip("0123456789") for each in marks] == dims.upper().split(",")
    assert len(pictures) == len(lists) == len(explanations) == len(TYPES)


def test_any_other_combination_is_made_with_the_toggles(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, f"{ASKED}&dims=")
    workbench.click("[data-dim=tp]")
    workbench.click("[data-dim=cp]")
    assert list(workbench.read("groups()")) == ["tp", "cp"]
    assert workbench.value("type") == "tp,cp"
    workbench.click("[data-dim=tp]")
    assert list(workbench.read("groups()")) == ["cp"]


def test_other_kinds_of_a_framework_are_shown_beside_dimensions(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=pp")
    workbench.click("#others summary")
    workbench.click("#kinds label:has([value=embd])")
    layout = frameworks.layout("megatron", Sizes(16, tp=2, pp=4))
    assert workbench.read("groups()")["embd"] == layout.groups("embd").lists()
    assert [each["label"] for each in workbench.read("marks(6)")] == ["PP2"]
    assert [each["label"] for each in workbench.read("marks(2)")] == ["PP2", "embd2"]


def test_dimensions_have_marks_of_their_own_and_groups_colours_of_their_own(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain, f"{ASKED}&dims=dp,tp,pp,cp")
    marked = workbench.page.evaluate(
        "Array.from({ length: 16 }, (_, rank) => serried.marks(rank)).flat()"
    )
    assert {each["mark"] for each in marked} == {"triangle", "pentagon", "hexagon", "square"}
    colours = {each["colour"] for each in marked}
    assert len(colours) == sum(len(lists) for lists in workbench.read("groups()").values())


def test_hovering_a_rank_lights_exactly_its_peers(page_of: Open, plain: str) -> None:
    dims = "dp,tp,pp,cp"
    workbench = page_of(plain, f"{ASKED}&dims={dims}")
    layout = frameworks.layout("megatron", SIZES)
    for rank in range(16):
        workbench.hover_rank(rank)
        assert set(workbench.lit()) == peers(layout, dims, rank)
        for kind, lists in groups(layout, dims).items():
            assert workbench.read(f"litBy('{kind}')") == next(g for g in lists if rank in g)
    workbench.page.mouse.move(5, 5)
    workbench.settle()
    assert workbench.lit() == []


def test_lighting_changes_what_is_seen_and_leaves_the_map_as_it_is(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain, "dims=tp")
    below, above = workbench.picture("map-base"), workbench.picture("map")
    drawn = workbench.read("drawn().maps")
    workbench.hover_rank(3)
    assert workbench.picture("map") != above
    assert workbench.picture("map-base") == below
    assert workbench.read("drawn().maps") == drawn


def test_a_click_pins_a_rank_and_python_says_what_it_is(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=dp,tp,pp&gpus_per_rank=2")
    workbench.click_rank(5)
    workbench.page.mouse.move(5, 5)
    workbench.settle()
    assert workbench.lit() == [1, 4, 5, 7, 9, 13]
    panel = workbench.text("#selected")
    for words in ("Rank 5", "Node\n1", "Local rank\n1", "GPU\n2, 3", "tp 1 · dp 0 · pp 1"):
        assert words in panel
    assert "takes from 1 · sends to 9" in panel.replace("\n", " ")
    assert "[1, 5, 9, 13]" in panel
    workbench.click_rank(5 + 8)
    assert "last stage" in workbench.text("#selected")
    workbench.press("Escape")
    assert workbench.lit() == []
    assert not workbench.page.is_visible("#right"), "the picture has its room back"


def test_a_group_in_the_list_lights_its_ranks_and_a_click_pins_it(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain, "dims=tp,pp&side=groups")
    line = workbench.page.locator("#group-list [role=option]", has_text="PP 1: [1, 5, 9, 13]")
    line.hover()
    workbench.settle()
    assert workbench.lit() == [1, 5, 9, 13]
    line.click()
    workbench.settle()
    assert line.is_visible(), "the list stays, for the next one"
    workbench.click("#side-selected")
    assert "over 2 nodes" in workbench.text("#selected")


def test_groups_are_listed_as_text_that_can_be_copied(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=dp,tp&side=groups")
    assert "TP 0: [0, 1]" in workbench.text("#group-list")
    workbench.click("#copy-groups")
    layout = frameworks.layout("megatron", Sizes(16, tp=2, pp=4))
    assert workbench.copied().splitlines() == [
        f"{dim.upper()} {number}: {ranks}"
        for dim in ("dp", "tp")
        for number, ranks in enumerate(layout.groups(dim).lists())
    ]
    assert workbench.page.locator("#live").text_content() == "Copied."
    workbench.click("#copy-json")
    document = json.loads(workbench.copied())
    assert document["schema"] == "serried.groups/1"
    assert document["groups"]["tp"] == layout.groups("tp").lists()


def test_the_command_for_the_same_groups_is_shown_and_can_be_copied(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain, "dims=dp,cp&cp=2&gpus_per_node=4")
    command = "serried groups --world-size 16 --tp 2 --pp 4 --cp 2 --gpus-per-node 4"
    command += " --kind dp_cp --kind cp"
    workbench.page.focus("#command-open")
    workbench.press("Enter")
    assert workbench.text("#command") == command
    workbench.click("#copy-command")
    assert workbench.copied() == command
    workbench.press("Escape")
    assert not workbench.page.is_visible("#command")


def test_frameworks_differ_for_the_same_sizes(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=dp")
    for framework, group in (("internlm", [0, 8]), ("megatron", [0, 2])):
        workbench.choose("framework", framework)
        workbench.hover_rank(0)
        assert workbench.lit() == group


def test_internlm_says_in_place_that_it_has_no_context_parallelism(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain, "dims=dp,cp&cp=2")
    workbench.choose("framework", "internlm")
    assert workbench.text("#no-axes") == "InternLM (classic) has no CP."
    assert not workbench.page.is_visible("#cp") and workbench.text("#alert") == ""
    assert workbench.page.is_disabled("[data-dim=cp]")
    assert list(workbench.read("groups()")) == ["data"]


def test_order_and_settings_reach_the_framework(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=dp")
    workbench.click("#more summary")
    workbench.fill(order="tp-cp-ep-pp-dp")
    workbench.hover_rank(0)
    assert workbench.lit() == [0, 8]
    workbench.fill(order="", set="use_tp_pp_dp_mapping=true")
    workbench.hover_rank(0)
    assert workbench.lit() == [0, 8]


def test_any_nodes_are_drawn_as_boxes_with_names(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp&world_size=12&pp=1&gpus_per_node=4")
    four = workbench.picture()
    workbench.fill(gpus_per_node="6")
    assert workbench.picture() != four
    assert "2 nodes of 6 GPUs" in workbench.text("#headline")


def test_arranged_by_stage_a_box_is_a_stage(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=pp&order=tp-cp-ep-pp-dp")
    layout = frameworks.layout("megatron", Sizes(16, tp=2, pp=4, order="tp-cp-ep-pp-dp"))
    workbench.choose("arrange", "stage")
    rows = {round(workbench.read(f"where({rank})")["y"]) for rank in range(16)}
    assert len(rows) == 4
    for stage in range(4):
        ranks = [group[stage] for group in layout.groups("pp").lists()]
        assert len({round(workbench.read(f"where({rank})")["y"]) for rank in ranks}) == 1


def test_a_world_of_one_rank_is_shown(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=dp,tp&world_size=1&tp=1&pp=1")
    workbench.hover_rank(0)
    assert workbench.lit() == [0]
    assert "1 rank" in workbench.text("#headline")


@pytest.mark.parametrize("framework", ["megatron", "torchtitan"])
def test_the_page_names_axes_in_the_order_of_the_terminal(
    page_of: Open, plain: str, serried: Call, framework: str
) -> None:
    said = page_of(plain, f"framework={framework}&world_size=64&tp=2&pp=4").text("#headline")
    sizes = ("--world-size", "64", "--tp", "2", "--pp", "4")
    printed = serried("groups", "--framework", framework, *sizes)
    axes = printed.out.partition(" = ")[2].partition(", order")[0]
    assert axes.upper().replace(" X ", " × ") in said


def check_large(workbench: Workbench, layout: Layout, dims: str) -> None:
    for rank in (0, 5000, 16383):
        workbench.hover_rank(rank)
        assert set(workbench.lit()) == peers(layout, dims, rank)


def test_sixteen_thousand_ranks_stay_responsive(page_of: Open, plain: str) -> None:
    dims = "dp,tp,pp,cp"
    workbench = page_of(plain, f"dims={dims}&world_size=16384&tp=8&pp=16&cp=2&side=groups")
    layout = frameworks.layout("megatron", Sizes(16384, tp=8, pp=16, cp=2))
    drawn = workbench.read("drawn()")
    check_large(workbench, layout, dims)
    after = workbench.read("drawn()")
    assert after["maps"] == drawn["maps"], "hovering draws the light alone, never the map"
    assert after["lights"] > drawn["lights"]
    lines = workbench.page.locator("#group-list .line").count()
    assert 0 < lines < 60, "only the lines in view are made"
    assert workbench.page.locator("*").count() < 1500
    workbench.press("w", "w", "d")
    assert workbench.read("drawn()")["maps"] > after["maps"]
    workbench.press("0")
    check_large(workbench, layout, dims)


def test_the_list_of_many_groups_scrolls_to_its_end(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp&world_size=16384&tp=8&pp=16&side=groups")
    workbench.page.locator("#group-list").evaluate("list => list.scrollTo(0, list.scrollHeight)")
    workbench.settle()
    last = workbench.page.locator("#group-list [role=option]").last
    assert last.inner_text().startswith("TP 2047: [16376, 16377,")
    workbench.click("#copy-groups")
    assert len(workbench.copied().splitlines()) == 2048


def test_a_click_counts_though_the_list_scrolls_between_press_and_release(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain, "dims=tp&world_size=256&side=groups")
    box = workbench.page.locator("#group-list [role=option]:has-text('TP 6:')").bounding_box()
    assert box
    mouse = workbench.page.mouse
    mouse.move(box["x"] + 60, box["y"] + 8)
    mouse.down()
    workbench.page.locator("#group-list").evaluate("list => list.scrollBy(0, 3)")
    workbench.settle()
    mouse.up()
    workbench.settle()
    assert workbench.read("state()")["pinned_group"] == "tp:6"
    assert workbench.lit() == [12, 13]


def test_the_zero_stage_is_a_control_where_it_says_what_ranks_hold(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain)
    workbench.open("framework=deepspeed&dims=dp&side=learn")
    workbench.page.locator("#more summary").click()
    assert workbench.page.is_visible("#zero")
    assert "At zero_optimization.stage 0, the default" in workbench.text("#explanation")
    workbench.open("framework=deepspeed&dims=dp&zero=3&pp=1&side=learn")
    assert "The weights are sharded" in workbench.text("#explanation")
    assert "hold the same weights" not in workbench.text("#basics")
    workbench.open("framework=torchtitan&dims=dp&zero=3&side=learn")
    workbench.page.locator("#more").evaluate("each => { each.open = true; }")
    assert workbench.page.is_visible("#zero")
    assert "each rank of dp_shard holds one part" in workbench.text("#explanation")
    workbench.open("framework=custom&dims=dp")
    workbench.page.locator("#more").evaluate("each => { each.open = true; }")
    assert not workbench.page.is_visible("#zero")
