"""The address bar holds the whole state; wrong sizes are said in place; the form can be reset."""

from __future__ import annotations

from typing import Literal

import pytest

from tests.page import Open
from tests.views.web.workbench import Workbench

WRONG = {
    "en": "tp=3 does not divide 16 ranks; sizes that do: 1, 2, 4, 8, 16",
    "zh": "tp=3 不能整除 16 个 rank；可用的取值：1、2、4、8、16",
}


def test_defaults_leave_the_address_empty(page_of: Open, plain: str) -> None:
    workbench = page_of(plain)
    assert workbench.query() == ""
    workbench.choose("type", "dp,tp")
    assert workbench.query() == "dims=dp,tp"
    workbench.fill(world_size="32")
    assert workbench.query() == "world_size=32&dims=dp,tp"
    workbench.click("#view-plan")
    assert workbench.query() == "view=plan&world_size=32&dims=dp,tp"
    workbench.click("#view-layout")
    workbench.fill(world_size="16")
    assert workbench.query() == "dims=dp,tp"


def test_an_address_brings_everything_back(page_of: Open, traced: str) -> None:
    workbench = page_of(traced, "dims=dp,pp")
    workbench.fill(world_size="64", tp="4", pp="2")
    workbench.choose("arrange", "stage")
    workbench.hover_rank(20)
    workbench.press("w", "w", "w")
    workbench.page.hover("#timeline")
    workbench.press("w", "d")
    workbench.click("#right-toggle")
    workbench.click("#group-list [role=option]:has-text('PP 3:')")
    workbench.read("written()")
    state, view, lit, groups = map(workbench.read, ("state()", "view()", "lit()", "groups()"))
    other = page_of(traced, workbench.query())
    assert other.read("state()") == state
    assert other.text("#alert") == ""
    assert other.read("groups()") == groups
    assert other.read("lit()") == lit
    assert other.read("view().timeline") == pytest.approx(view["timeline"], abs=1)
    assert other.read("view().map.scale") == pytest.approx(view["map"]["scale"], rel=1e-3)


def test_a_view_stays_when_types_change_and_ends_when_ranks_move(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp&world_size=256")
    workbench.hover_rank(77)
    workbench.press("w", "w", "d")
    view = workbench.read("view().map")
    workbench.choose("type", "dp,tp")
    assert workbench.read("view().map") == view
    workbench.fill(world_size="128")
    assert workbench.read("view().map") != view
    assert workbench.read("state()")["map"] == ""


def test_a_link_can_be_copied(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=dp&world_size=32")
    workbench.click("#copy-link")

    assert workbench.copied() == workbench.page.url


def test_back_and_forward_walk_through_what_was_chosen(page_of: Open, plain: str) -> None:
    workbench = page_of(plain)
    workbench.choose("type", "tp")
    workbench.choose("type", "pp")
    workbench.choose("framework", "internlm")
    seen = []
    for step in ("go_back", "go_back", "go_back", "go_forward"):
        getattr(workbench.page, step)()
        workbench.settle()
        seen.append((workbench.value("framework"), workbench.value("type")))
    assert seen == [
        ("megatron", "pp"),
        ("megatron", "tp"),
        ("megatron", "dp,tp,pp"),
        ("megatron", "tp"),
    ]
    assert list(workbench.read("groups()")) == ["tp"]


def test_a_number_typed_letter_by_letter_is_one_step_back(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp")
    workbench.page.locator("#world_size").select_text()
    workbench.page.keyboard.type("1024", delay=250)
    workbench.settle()
    assert workbench.query() == "world_size=1024&dims=tp"
    workbench.page.go_back()
    workbench.settle()
    assert workbench.value("world_size") == "16"


@pytest.mark.parametrize("lang", ["en", pytest.param("zh", marks=pytest.mark.soak)])
def test_a_wrong_size_shows_its_sentence_and_keeps_the_picture(
    page_of: Open, plain: str, lang: str
) -> None:
    workbench = page_of(plain, f"dims=dp,tp&side=groups&lang={lang}")
    groups, text = workbench.read("groups()"), workbench.text("#group-list")
    workbench.fill(tp="3")
    assert workbench.text("#alert b") == WRONG[lang]
    assert workbench.page.get_attribute("#alert", "role") == "alert"
    assert workbench.page.get_attribute("#tp", "aria-invalid") == "true"
    assert workbench.read("groups()") == groups
    assert workbench.text("#group-list") == text
    assert "TP 2" in workbench.text("#alert span"), "it says what is still shown"
    workbench.hover_rank(0)
    assert workbench.lit() == [0, 1, 2]
    workbench.fill(tp="4")
    assert workbench.text("#alert") == ""
    assert workbench.page.get_attribute("#tp", "aria-invalid") is None


WRONG_INPUTS = (
    ("world_size", "0", "world size 0 cannot be; it is at least 1 rank"),
    ("world_size", "-4", "world size -4 cannot be; it is at least 1 rank"),
    ("world_size", "many", "world_size=many is not a whole number; one such as 16 is"),
    ("world_size", "18", "pp=4 does not divide the 9 ranks that tp=2 leave of 18"),
    ("pp", "3", "pp=3 does not divide the 8 ranks that tp=2 leave of 16"),
    ("gpus_per_rank", "3", "gpus_per_rank=3 does not divide 8 GPUs of a node"),
    ("order", "tp-tp-pp", "order 'tp-tp-pp' names tp twice"),
    ("order", "tp-zp", "order 'tp-zp' names an unknown axis 'zp'"),
    ("set", "nothing", "'nothing' is not a setting; one reads KEY=VALUE"),
)


def test_each_wrong_input_gets_its_sentence_in_place(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp")
    workbench.page.evaluate("document.getElementById('more').open = true")
    for field, value, sentence in WRONG_INPUTS:
        before = workbench.value(field)
        workbench.fill(**{field: value})
        assert workbench.text("#alert b").startswith(sentence)
        assert workbench.read("groups()")["tp"][0] == [0, 1]
        workbench.fill(**{field: before})
        assert workbench.text("#alert") == ""


def test_a_page_opened_on_a_wrong_size_says_so_and_can_be_mended(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp&tp=5")
    assert workbench.text("#alert b").startswith("tp=5 does not divide 16 ranks")
    assert workbench.read("groups()") == {}
    workbench.fill(tp="4")
    assert workbench.read("groups()")["tp"][0] == [0, 1, 2, 3]


def test_an_unknown_framework_in_an_address_is_named(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp&framework=nemo")
    assert workbench.text("#alert b").startswith("framework 'nemo' is not known")
    workbench.choose("framework", "megatron")
    assert workbench.text("#alert") == ""


def test_reset_returns_to_the_start(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=dp,tp&world_size=64&framework=internlm&rank=3&lang=zh")
    workbench.click("#reset")
    assert workbench.query() == "lang=zh", "the language stays"
    assert list(workbench.read("groups()")) == ["dp", "tp", "pp"]
    assert (workbench.value("world_size"), workbench.value("framework")) == ("16", "megatron")


def test_reset_beside_a_trace_returns_to_its_layout(page_of: Open, traced: str) -> None:
    workbench = page_of(traced)
    workbench.fill(world_size="64")
    workbench.click("#reset")
    assert workbench.value("world_size") == "8"
    assert list(workbench.read("groups()")) == ["dp", "tp", "pp"]


def test_the_language_follows_the_browser_and_can_be_changed(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp&side=learn", lang="zh-CN")
    assert workbench.page.get_attribute("html", "lang") == "zh-CN"
    assert "张量并行" in workbench.text("#explanation h3")
    workbench.click("#language")
    assert workbench.page.get_attribute("html", "lang") == "en"
    assert "lang=en" in workbench.query()
    assert "Tensor" in workbench.text("#explanation h3")
    french = page_of(plain, "dims=tp", lang="fr-FR")
    assert french.page.get_attribute("html", "lang") == "en"


def test_no_word_of_a_page_is_left_untranslated(page_of: Open, traced: str) -> None:
    workbench = page_of(traced, lang="zh-CN")
    workbench.click_slice(10)
    shown = workbench.text("body")
    assert "{" not in shown
    for words in ("Groups", "Selected", "Explanation", "Framework", "nodes", "forward", "Copy"):
        assert words not in shown.replace("Groups of", "")


def turn(workbench: Workbench, scheme: Literal["dark", "light"]) -> None:
    """Turns the page dark or light, and waits until it has heard of it and is drawn anew."""
    query = "matchMedia('(prefers-color-scheme: dark)')"
    workbench.page.evaluate(
        f"turned = new Promise((done) => {query}.addEventListener('change', done)), null"
    )
    workbench.page.emulate_media(color_scheme=scheme)
    workbench.page.evaluate("turned.then(() => null)")
    workbench.settle()


LIGHTNESS = """(name) => {
  const { width, height } = document.getElementById(name);
  const pen = document.getElementById(name).getContext("2d");
  const { data } = pen.getImageData(0, 0, width, height);
  let [sum, count] = [0, 0];
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3] < 255) continue;
    sum += data[at] + data[at + 1] + data[at + 2];
    count += 3;
  }
  return sum / count;
}"""


def test_a_dark_page_is_light_on_paper_and_dark_again_behind_it(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "view=plan")
    page = workbench.page
    turn(workbench, "dark")
    try:
        assert page.evaluate(LIGHTNESS, "map-base") < 100
        # Paper waits for no frame: what is drawn is drawn when the event has been heard.
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        on_paper = [page.evaluate(LIGHTNESS, name) for name in ("map-base", "plan-matrix")]
        assert min(on_paper) > 180, on_paper
        assert not page.is_visible("#map-links"), "the map has taken the links drawn over it"
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        workbench.settle()
        assert page.evaluate(LIGHTNESS, "map-base") < 100
        assert page.is_visible("#map-links")
    finally:
        turn(workbench, "light")


def test_dark_pages_are_dark_and_drawn_anew(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp")
    light = workbench.picture()
    turn(workbench, "dark")
    assert workbench.picture() != light
    ground = workbench.page.evaluate("getComputedStyle(document.body).backgroundColor")
    workbench.page.emulate_media(color_scheme="light")
    assert max(map(int, ground.strip("rgb()").split(","))) < 60


def test_a_server_that_has_gone_is_said(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=tp", noted="500 Internal|status of 500")
    workbench.page.route("**/api/**", lambda route: route.fulfill(status=500))
    workbench.page.select_option("#type", "dp")
    workbench.settle()
    workbench.page.unroute("**/api/**")
    assert "does not answer" in workbench.text("#alert b")
