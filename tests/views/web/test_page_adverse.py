"""A slow server, two pages, an old browser: the page says so and goes on."""

from __future__ import annotations

from playwright.sync_api import Browser, Route

from tests.page import Open
from tests.views.web.workbench import Workbench


def test_an_answer_that_takes_long_is_said_and_locks_nothing(page_of: Open, plain: str) -> None:
    workbench = page_of(plain, "dims=dp,tp&lang=en")
    held: list[Route] = []
    workbench.page.route("**/api/layout?*tp=4*", lambda route: held.append(route))
    try:
        workbench.page.fill("#tp", "4")
        workbench.page.wait_for_selector("#slow:not([hidden])")
        assert "Still waiting for the server" in workbench.text("#slow")
        assert len(workbench.read("groups()")["tp"]) == 8, "the last good picture stays"
        workbench.page.click("#view-learn")
        workbench.page.wait_for_selector("#learn-cards button")
        workbench.page.click("#view-layout")
        held[0].continue_()
        workbench.page.wait_for_selector("#slow", state="hidden")
        workbench.settle()
        assert len(workbench.read("groups()")["tp"]) == 4
    finally:
        workbench.page.unroute("**/api/layout?*tp=4*")


def test_two_pages_of_one_server_each_keep_their_own_job(page_of: Open, traced: str) -> None:
    workbench = page_of(traced, "view=layout&world_size=16&tp=4&pp=1&dims=tp")
    page = workbench.page.context.new_page()
    try:
        other = Workbench(page, traced)
        other.open("view=run&trace=1")
        other.click("#view-layout")
        other.fill(world_size="32", pp="1", tp="2")
        workbench.fill(tp="8")
        assert (workbench.value("world_size"), workbench.value("tp")) == ("16", "8")
        assert (other.value("world_size"), other.value("tp")) == ("32", "2")
        assert other.read("state()")["trace"] == "1" and other.text("#alert") == ""
        assert len(workbench.read("groups()")["tp"]) == 2
    finally:
        page.close()


def test_a_browser_that_unpacks_nothing_shows_every_tab(browser: Browser, traced: str) -> None:
    context = browser.new_context(locale="en-US")
    try:
        context.add_init_script(
            "delete window.DecompressionStream; delete window.CompressionStream"
        )
        page = context.new_page()
        wrongs: list[str] = []
        page.on("pageerror", lambda error: wrongs.append(str(error)))
        workbench = Workbench(page, traced)
        workbench.open("view=run")
        assert workbench.page.evaluate("typeof DecompressionStream") == "undefined"
        assert workbench.read("slices()") > 0
        for tab in ("layout", "schedule", "plan", "learn"):
            workbench.click(f"#view-{tab}")
            assert workbench.text("#alert") == ""
        assert wrongs == []
    finally:
        context.close()
