"""Links from elsewhere: of a newer version, of another framework, in a language there is not."""

from __future__ import annotations

import pytest

from tests.page import Open
from tests.views.web.workbench import Workbench


def notices(workbench: Workbench) -> dict[str, str]:
    """Returns the notices in view, by their names."""
    found: dict[str, str] = workbench.page.evaluate(
        """Object.fromEntries([...document.querySelectorAll("#notices p")]
          .map((each) => [each.dataset.notice, each.innerText]))"""
    )
    return found


@pytest.mark.parametrize("lang", ["en", pytest.param("zh", marks=pytest.mark.soak)])
def test_words_of_a_newer_version_are_said_and_stay_in_the_address(
    page_of: Open, plain: str, lang: str
) -> None:
    workbench = page_of(plain, f"tp=4&bands=3&mood=%3Cb%3Ecalm&lang={lang}")
    assert "bands=3" in notices(workbench)["unknown"]
    assert "mood=<b>calm" in notices(workbench)["unknown"], "as text"
    workbench.fill(tp="2", pp="2")
    assert workbench.query().endswith("&bands=3&mood=%3Cb%3Ecalm")
    workbench.click("#view-schedule")
    assert workbench.page.is_visible("#notices [data-notice=unknown]")
    workbench.click("#notices .close")
    assert notices(workbench) == {}
    workbench.click("#view-layout")
    workbench.click("#reset")
    assert "bands" not in workbench.query()


def test_a_tab_and_a_language_that_there_are_not_are_said(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "view=hologram&lang=tlh")
    told = notices(workbench)["unknown"]
    assert "view=hologram" in told and "“tlh”" in told and "shows English" in told
    assert workbench.read("state()")["view"] == "layout"
    assert workbench.page.get_attribute("html", "lang") == "en"
    assert notices(page_of(plain, "view=job&lang=zh-TW")) == {}, "known of old, and near enough"


def test_a_link_with_axes_of_another_framework_sets_them_to_1_and_takes_it_back(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain, "framework=fsdp&tp=2&pp=4&dims=dp,tp")
    assert notices(workbench)["fitted"].startswith("Set to 1, as FSDP2 / HSDP has no such axis")
    assert workbench.text("#alert") == "" and len(workbench.read("groups()")["dp"]) == 2
    assert not workbench.page.is_visible("#pp"), "FSDP offers no PP"
    assert workbench.query() == "framework=fsdp&pp=1&dims=dp,tp"
    workbench.click("#notices [data-notice=fitted] button:not(.close)")
    assert "fsdp has no pp" in workbench.text("#alert")
    assert notices(workbench) == {} and workbench.value("pp") == "4"
    workbench.fill(pp="1")
    assert workbench.text("#alert") == "" and not workbench.page.is_visible("#pp")


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("en", "Set to 1, as FSDP2"),
        pytest.param("zh", "已改为 1", marks=pytest.mark.soak),
    ],
)
def test_another_framework_drops_what_it_lacks_and_undo_brings_the_first_back(
    page_of: Open, plain: str, lang: str, words: str
) -> None:
    job = "cp=2&ep=2&zero=1&dims=dp,tp,pp,cp&kind=embd"
    workbench = page_of(plain, f"{job}&lang={lang}")
    workbench.choose("framework", "fsdp")
    told = notices(workbench)["fitted"]
    assert words in told and "zero=1" in told
    assert workbench.text("#alert") == "" and list(workbench.read("groups()")) == ["dp", "tp"]
    workbench.click("#language")
    assert notices(workbench)["fitted"] != told, "said in the other language"
    workbench.click("#notices [data-notice=fitted] button:not(.close)")
    state = workbench.read("state()")
    assert (state["framework"], state["cp"], state["kind"]) == ("megatron", "2", "embd")
    assert workbench.text("#alert") == ""


def test_a_framework_chosen_while_sizes_do_not_fit_keeps_the_picture_and_the_sentence(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain, "dims=dp,tp")
    groups = workbench.read("groups()")
    workbench.fill(tp="3")
    workbench.choose("framework", "fsdp")
    assert "pp=4" in notices(workbench)["fitted"]
    assert "tp=3 does not divide 16 ranks" in workbench.text("#alert")
    assert workbench.read("groups()") == groups
    workbench.fill(tp="4")
    assert workbench.text("#alert") == "" and len(workbench.read("groups()")["tp"]) == 4
