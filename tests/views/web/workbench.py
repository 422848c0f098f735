"""The page in a real browser, driven and read back: what a test does is what a user does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

RESTED = """Promise.race([serried.settled(), new Promise((_, fail) =>
  setTimeout(() => fail(new Error("the page did not come to rest within a minute")), 60_000))])"""


class Workbench:
    """A page of the workbench, read through ``window.serried`` (static/desk/readback.js)."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address

    def open(self, query: str = "") -> None:
        """Opens the page in the state that ``query`` holds."""
        self.page.goto(f"{self.address}/{'?' if query else ''}{query}")
        self.settle()

    def settle(self) -> None:
        """Returns once nothing is asked and nothing is left to draw; fails after a minute."""
        self.page.evaluate(RESTED)

    def read(self, call: str) -> Any:
        """Returns what ``serried.<call>`` gives."""
        return self.page.evaluate(f"serried.{call}")

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def value(self, field: str) -> str:
        return self.page.locator(f"#{field}").input_value()

    def query(self) -> str:
        """Returns what the address bar holds after the question mark."""
        return str(self.page.evaluate("location.search.slice(1)"))

    def choose(self, field: str, value: str) -> None:
        self.page.select_option(f"#{field}", value)
        self.settle()

    def fill(self, **values: str) -> None:
        for field, value in values.items():
            self.page.fill(f"#{field}", value)
        self.settle()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
        self.settle()

    def click(self, selector: str) -> None:
        self.page.click(selector)
        self.settle()

    def hover_rank(self, rank: int) -> None:
        self._point(f"where({rank})")

    def click_rank(self, rank: int) -> None:
        self._point(f"where({rank})", click=True)

    def hover_slice(self, number: int) -> None:
        self._point(f"whereSlice({number})")

    def click_slice(self, number: int) -> None:
        self._point(f"whereSlice({number})", click=True)

    def lit(self) -> list[int]:
        """Returns the ranks that are lit."""
        ranks: list[int] = self.read("lit()")
        return ranks

    def picture(self, canvas: str = "map-base") -> str:
        """Returns what a canvas shows, to be compared with what it showed before."""
        return str(self.page.evaluate(f"document.getElementById('{canvas}').toDataURL()"))

    def copied(self) -> str:
        """Returns what was copied last."""
        return str(self.page.evaluate("navigator.clipboard.readText()"))

    def _point(self, call: str, *, click: bool = False) -> None:
        place = self.read(call)
        assert place is not None, f"{call} is not in view"
        self.page.mouse.move(place["x"], place["y"])
        if click:
            self.page.mouse.click(place["x"], place["y"])
        self.settle()
