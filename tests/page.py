"""A page of the workbench in a real Chromium, one browser for all tests of a process."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tests.views.web.workbench import Workbench

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

NAMES = (
    "chromium-headless-shell",
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
)
"""The first draws the same without a window of its own, for two thirds of the work."""
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
Open = Callable[..., Workbench]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    assert path, f"no Chromium on PATH; one of {', '.join(NAMES)} is needed"
    from playwright.sync_api import sync_playwright  # here, for tests without a page

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield chromium
        chromium.close()


@dataclass
class Watched:
    """A page, and what it did that no page should do."""

    page: Page
    ours: set[str] = field(default_factory=set)
    """Addresses of the servers it was opened on: an icon may still come late from one before."""
    noted: str = ""
    wrongs: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("request", self._asked)
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.wrongs.append(str(error)))

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((*self.ours, "data:", "blob:")):
            self.wrongs.append(f"request to {request.url}")

    def _said(self, message: ConsoleMessage) -> None:
        # The browser itself notes each refusal: a wrong size, which the page shows.
        if message.type == "error" and not re.search(self.noted, message.text):
            self.wrongs.append(message.text)


@pytest.fixture(scope="session")
def pages(browser: Browser) -> Callable[..., Watched]:
    """Returns a page of a language, scheme and size, the same one each time: opening is costly."""
    made: dict[tuple[str, str, int, int], Watched] = {}

    def page(lang: str, scheme: str, width: int, height: int) -> Watched:
        key = (lang, scheme, width, height)
        if key not in made:
            context = browser.new_context(
                viewport={"width": width, "height": height},
                locale=lang,
                color_scheme="dark" if scheme == "dark" else "light",
                permissions=["clipboard-read", "clipboard-write"],
            )
            made[key] = Watched(context.new_page())
        return made[key]

    return page


@pytest.fixture
def page_of(pages: Callable[..., Watched]) -> Iterator[Open]:
    """Opens workbenches, and afterwards checks what all of them did.

    A request to anywhere but the server, an error in the console and an exception each fail
    the test, whatever else it looks at.
    """
    used: list[Watched] = []

    def open_page(
        address: str,
        query: str = "",
        *,
        lang: str = "en-US",
        scheme: str = "light",
        noted: str = "status of 400",
        width: int = 1400,
        height: int = 900,
    ) -> Workbench:
        watched = pages(lang, scheme, width, height)
        watched.ours.add(f"{address}/")
        watched.noted = noted
        used.append(watched)
        watched.page.mouse.move(0, 0)
        # A test before may have made the window of this page higher or narrower.
        if watched.page.viewport_size != {"width": width, "height": height}:
            watched.page.set_viewport_size({"width": width, "height": height})
        workbench = Workbench(watched.page, address)
        workbench.open(query)
        return workbench

    yield open_page
    wrongs = [wrong for watched in used for wrong in watched.wrongs]
    for watched in used:
        # What it still fetches when idle must not fail in the next test, its server gone by then.
        watched.page.goto("about:blank")
        watched.wrongs.clear()
    assert wrongs == [], wrongs
