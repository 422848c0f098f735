"""The page from elsewhere: below a proxy's path, behind a token, and never itself going out."""

from __future__ import annotations

import re

from serried.views.web.edition import STATIC
from tests.page import Open
from tests.views.web.served import served


def test_it_works_below_a_path(page_of: Open) -> None:
    with served(below="/user/ada/proxy/8765") as address:
        workbench = page_of(address, "dims=tp&rank=5")
        assert workbench.lit() == [4, 5]
        workbench.click("[data-dim=dp]")
        assert workbench.page.url.startswith(f"{address}/?dims=dp")


def test_a_token_opens_it_once_and_leaves_the_address(page_of: Open) -> None:
    with served(host="0.0.0.0", token="once") as address:
        workbench = page_of(address, "token=once&dims=tp")
        assert workbench.query() == "dims=tp"
        workbench.page.reload()
        workbench.settle()
        assert list(workbench.read("groups()")) == ["tp"]


def test_links_to_further_reading_open_apart_and_tell_nothing(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=dp,tp")
    links = workbench.page.locator("#explanation a").all()
    assert links
    for link in links:
        assert link.get_attribute("target") == "_blank"
        assert link.get_attribute("rel") == "noreferrer"
        assert re.match("https?://", link.get_attribute("href") or "")


def test_the_page_may_not_reach_another_site_even_if_it_tried(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, noted="Content Security Policy")
    reached = workbench.page.evaluate(
        "fetch('http://192.0.2.1/').then(() => 'reached', (error) => error.name)"
    )
    assert reached == "TypeError"


def test_no_module_evaluates_text_as_code() -> None:
    for module in STATIC.rglob("*.js"):
        text = module.read_text(encoding="utf-8")
        assert not re.search(r"\b(eval|Function|innerHTML|outerHTML|document\.write)\b", text)
