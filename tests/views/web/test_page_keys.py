"""The page by keyboard alone, and for those who listen to it."""

from __future__ import annotations

import pytest

from tests.page import Open
from tests.views.web.workbench import Workbench


def focused(workbench: Workbench) -> str:
    return str(workbench.page.evaluate("document.activeElement.id"))


def tab_to(workbench: Workbench, target: str) -> None:
    for _ in range(90):
        if focused(workbench) == target:
            return
        workbench.page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach #{target}")


def test_a_rank_is_found_kept_and_cleared_without_a_pointer(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=")
    tab_to(workbench, "type")
    workbench.press("ArrowDown", "ArrowDown")
    assert workbench.read("state()")["dims"] == "tp"
    tab_to(workbench, "map")
    workbench.press("ArrowRight")
    assert workbench.lit() == [0, 1]
    workbench.press("ArrowRight", "ArrowRight", "ArrowDown")
    assert workbench.lit() == [6, 7]
    assert "rank 6" in (workbench.page.text_content("#live") or "")
    workbench.press("Enter")
    assert "Rank 6" in workbench.text("#selected")
    assert workbench.read("state()")["rank"] == "6"
    workbench.press("Escape")
    assert workbench.read("state()")["rank"] == ""
    assert "Rank 6" not in workbench.text("#selected")


def test_leaving_the_map_puts_its_light_out(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp")
    tab_to(workbench, "map")
    workbench.press("ArrowRight")
    assert workbench.lit() == [0, 1]
    workbench.press("Tab")
    assert workbench.lit() == []


def test_the_list_of_groups_is_walked_with_arrows(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp,pp&side=groups")
    tab_to(workbench, "group-list")
    workbench.press("ArrowDown", "ArrowDown", "ArrowDown")
    assert workbench.lit() == [2, 3]
    active = workbench.page.get_attribute("#group-list", "aria-activedescendant")
    assert workbench.text(f"#{active}") == "TP 1: [2, 3]"
    workbench.press("End", "Enter")
    assert workbench.lit() == [3, 7, 11, 15]
    assert workbench.read("state()")["pinned_group"] == "pp:3"


def test_slices_are_walked_with_arrows(page_of: Open, traced: str) -> None:
    workbench = page_of(traced)
    tab_to(workbench, "timeline")
    workbench.press(".")
    first = workbench.text("#selected h3")
    workbench.press("ArrowRight")
    assert workbench.text("#selected h3") != first
    workbench.press("ArrowDown")
    assert workbench.page.locator("#selected dd").first.inner_text() == "1"
    assert "rank 1" in (workbench.page.text_content("#live") or "")


def test_slash_searches(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp")
    for text, lit, said in (
        ("13", [12, 13], "Rank 13"),
        ("node 1", list(range(8, 16)), "8 ranks: node 1"),
        ("pp=2 tp=1", [9, 11], "2 ranks: pp=2 tp=1"),
    ):
        workbench.press("/")
        assert focused(workbench) == "search"
        workbench.page.keyboard.type(text)
        workbench.press("Enter")
        assert workbench.lit() == lit
        assert said in workbench.text("#selected")
        workbench.press("Escape")
        assert workbench.lit() == []
        assert workbench.value("search") == ""


def test_a_search_without_an_answer_says_why(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp")
    for text, sentence in (
        ("16", "No rank matches “16”."),
        ("ep=x", "“ep=x” is not a search; one reads 5000, node 625 or pp=4 tp=0."),
        ("zz=1", "“zz=1” names what this layout has not; it has rank, node, local, stage, tp,"),
    ):
        workbench.fill(search=text)
        workbench.page.press("#search", "Enter")
        assert workbench.text("#tip").startswith(sentence)
        assert (workbench.page.text_content("#live") or "").startswith(sentence)


def test_letters_typed_into_a_field_move_nothing(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp")
    before = workbench.read("view()")
    workbench.page.focus("#search")
    workbench.page.keyboard.type("wasd0?/")
    workbench.settle()
    assert workbench.read("view()") == before
    assert workbench.value("search") == "wasd0?/"
    assert not workbench.page.is_visible("#keys")


def test_w_and_s_zoom_the_map_under_the_pointer(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp&world_size=256")
    workbench.hover_rank(77)
    before = workbench.read("view().map.scale")
    place = workbench.read("where(77)")
    for key, grows in (("w", True), ("s", False)):
        workbench.press(key)
        assert (workbench.read("view().map.scale") > before) == grows
        after = workbench.read("where(77)")
        assert (after["x"], after["y"]) == pytest.approx((place["x"], place["y"]), abs=0.5)
        workbench.press("0")
        assert workbench.read("view().map.scale") == pytest.approx(before)


def test_the_map_zooms_with_the_wheel_and_pans_by_dragging(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp&world_size=256")
    workbench.hover_rank(100)
    before = workbench.read("view().map")
    workbench.page.mouse.wheel(0, -300)
    workbench.settle()
    zoomed = workbench.read("view().map")
    assert zoomed["scale"] > before["scale"]
    place = workbench.read("where(100)")
    workbench.page.mouse.down()
    workbench.page.mouse.move(place["x"] + 60, place["y"] + 30)
    workbench.page.mouse.up()
    workbench.settle()
    moved = workbench.read("where(100)")
    assert (moved["x"] - place["x"], moved["y"] - place["y"]) == pytest.approx((60, 30), abs=1)
    workbench.click("#map-fit")
    assert workbench.read("view().map") == pytest.approx(before)


def test_question_mark_lists_the_keys(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp")
    workbench.press("?")
    keys = workbench.page.locator("#keys kbd").all_inner_texts()
    assert {"W", "A", "S", "D", "0", "/", "?", "Esc", "F", "Enter"} <= set(keys)
    workbench.press("Escape")
    assert not workbench.page.is_visible("#keys")


def test_terms_are_explained_where_they_stand_by_keyboard_too(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp&rank=5")
    for term in ("world", "node", "rank", "local_rank"):
        element = workbench.page.locator(f"[data-term={term}]").locator("visible=true").first
        element.focus()
        workbench.page.wait_for_selector(f"[data-term={term}][aria-describedby=card]")
        assert len(workbench.text("#card")) > 30
    workbench.page.focus("#search")
    workbench.page.wait_for_selector("#card", state="hidden")


def test_everything_that_can_be_used_has_a_name(page_of: Open, traced: str) -> None:
    workbench = page_of(traced)
    used = "button, select, input, textarea, canvas[tabindex], [role]"
    silent = "[role=alert], [role=tooltip], [role=presentation], [role=status]"
    nameless = workbench.page.evaluate(
        """([used, silent]) => [...document.querySelectorAll(used)]
          .filter((e) => e.checkVisibility() && !e.matches(silent))
          .filter((e) => !(e.ariaLabel || e.textContent.trim() || e.labels?.length
            || e.getAttribute("aria-labelledby")))
          .map((e) => e.outerHTML.slice(0, 90))""",
        [used, silent],
    )
    assert nameless == []


def test_the_splitter_moves_by_keyboard(page_of: Open, traced: str) -> None:
    workbench = page_of(traced)
    before = workbench.page.locator("#timeline-frame").bounding_box()
    tab_to(workbench, "splitter")
    workbench.press("ArrowUp")
    after = workbench.page.locator("#timeline-frame").bounding_box()
    assert before and after
    assert after["height"] > before["height"]
