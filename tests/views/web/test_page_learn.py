"""Learn on the page: twelve lessons that each open a state, and a card beside every acronym."""

from __future__ import annotations

import pytest

from tests.page import Open
from tests.views.web.workbench import Workbench


@pytest.fixture(scope="module")
def lessons(plain: str) -> list[str]:
    import json
    from urllib.request import urlopen

    with urlopen(f"{plain}/api/learn?lang=en") as answer:
        told = json.load(answer)
    return [each["key"] for each in told["lessons"]]


def test_every_lesson_opens_a_state_with_a_picture_and_its_card(
    page_of: Open, plain: str, lessons: list[str]
) -> None:
    workbench = page_of(plain, "view=learn")
    assert len(workbench.page.locator("#learn-cards button").all()) == len(lessons) == 12
    for place, key in enumerate(lessons):
        workbench.page.evaluate(
            f"document.querySelectorAll('#learn-cards button')[{place}].click()"
        )
        workbench.settle()
        assert workbench.read("card()") == key
        assert workbench.text("#lesson-card h3")
        assert workbench.page.locator("#lesson-card .look").is_visible()
        drawn = "schedule" if key == "bubble" else "map-base"
        assert workbench.page.locator(f"#{drawn}").is_visible(), key
        assert workbench.read("state()")["world_size"] == "16"


def test_a_lesson_is_an_address_that_opens_the_same_again(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "view=learn")
    workbench.page.locator("#learn-cards button", has_text="Tensor parallelism").click()
    workbench.settle()
    lit, address = workbench.lit(), workbench.query()
    assert lit == [0, 1, 2, 3]
    again = page_of(plain, address)
    assert again.lit() == lit
    assert again.read("card()") == "tp"


def test_a_link_to_a_card_that_is_none_says_so_above_those_there_are(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain, "view=learn&card=warp", noted="400")
    assert workbench.text("#learn-fault").startswith("there is no card on 'warp'; those there are:")
    workbench.page.locator("#learn-cards button").first.click()
    workbench.settle()
    assert workbench.text("#lesson-card h3")
    assert not workbench.page.locator("#learn-fault").is_visible()


@pytest.mark.parametrize(
    ("lang", "asked", "title"),
    [
        ("en", "expert tensor parallel", "Expert tensor parallelism (ETP)"),
        ("zh", "专家张量", "专家张量并行（ETP）"),
    ],
)
def test_a_word_is_found_and_its_card_opened(
    page_of: Open, plain: str, lang: str, asked: str, title: str
) -> None:
    workbench = page_of(plain, f"view=learn&lang={lang}")
    workbench.fill(**{"learn-find": asked})
    workbench.page.locator("#learn-list button").first.click()
    workbench.settle()
    assert workbench.text("#lesson-card h3") == title


def card_of(workbench: Workbench) -> str:
    workbench.page.wait_for_selector("#card:not([hidden])")
    return workbench.text("#card")


def test_an_acronym_shows_its_card_with_the_numbers_of_the_job(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "rank=5&side=selected")
    workbench.page.locator("#legend .term[data-term=dp]").hover()
    told = card_of(workbench)
    assert "dp is 2 here: 8 groups (dp), each inside one node" in told
    assert "Rank 5 is in group 3: 5, 7" in told
    assert "Estimated: reduce_scatter of" in told
    workbench.page.keyboard.press("Escape")
    assert workbench.page.locator("#card").is_hidden()


def test_a_card_opens_and_closes_by_keyboard_and_gives_the_focus_back(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain)
    word = workbench.page.locator("#legend .term[data-term=tp][tabindex='0']")
    word.wait_for()
    workbench.page.evaluate("document.querySelector('#map-fit').focus()")
    word.focus()
    workbench.page.keyboard.press("Enter")
    assert "Tensor parallelism (TP)" in card_of(workbench)
    workbench.page.wait_for_selector("#card:focus")
    workbench.page.keyboard.press("Tab")
    assert workbench.page.evaluate("document.activeElement.closest('#card') !== null")
    workbench.page.keyboard.press("Escape")
    assert workbench.page.locator("#card").is_hidden()
    assert workbench.page.evaluate("document.activeElement.dataset.term") == "tp"


def test_the_card_beside_a_word_opens_at_the_right_in_whichever_tab(
    page_of: Open, plain: str
) -> None:
    workbench = page_of(plain, "view=plan")
    workbench.page.locator("#plan-told .term[data-term=mfu]").first.hover()
    assert "Estimated for this job: MFU" in card_of(workbench)
    workbench.page.locator("#card > button").click()
    workbench.settle()
    assert workbench.text("#lesson-card h3") == "MFU: model FLOPs utilization"
    assert "card=mfu" in workbench.query()


EACH_CARD = """async () => {
  const { terms } = await (await fetch("api/learn?lang=en")).json();
  const box = document.getElementById("card");
  const word = Object.assign(document.createElement("span"), { className: "term" });
  word.style.cssText = "position: fixed; left: 300px; top: 300px";
  document.body.append(word);
  const seen = {};
  for (const { key } of terms) {
    word.dataset.term = key;
    word.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
    await new Promise((done) => {
      const watch = new MutationObserver(() => {
        watch.disconnect();
        done();
      });
      watch.observe(box, { attributes: true, attributeFilter: ["aria-label"] });
    });
    const { bottom, right } = box.getBoundingClientRect();
    const isWhole = box.scrollHeight <= box.clientHeight && box.scrollWidth <= box.clientWidth;
    seen[key] = isWhole && bottom <= innerHeight && right <= innerWidth;
  }
  word.remove();
  return seen;
}"""


def test_every_card_is_seen_whole_at_once(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "world_size=1024&tp=8&pp=8&cp=2&ep=8&dims=dp,tp,pp,cp,ep")
    seen = workbench.page.evaluate(EACH_CARD)
    assert len(seen) > 20
    assert [key for key, is_whole in seen.items() if not is_whole] == []
