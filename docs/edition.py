"""Takes a picture of every tab of the page: at both sizes, in both themes and both languages.

    python -m docs.edition screenshots/edition                      56 pictures
    python -m docs.edition screenshots/edition --before v0.5.0      each beside that edition's own

The earlier edition is any commit: it is checked out into a folder of its own and served from there.
Chromium (on PATH) and Playwright for Python must be there.
"""

from __future__ import annotations

import argparse
import base64
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from docs.screenshots import LARGE, PLAN, SCHEDULES, SERRIED, chromium, serving

ROOT = Path(__file__).parents[1]
HANG = ROOT / "benchmarks" / "diagnosis" / "hangs" / "wrong_peer_33"
SIZES = ((1400, 900), (2560, 1440))
SCHEMES = ("light", "dark")
LANGUAGES = {"en": "en-US", "zh": "zh-CN"}
QUIET_MS = 30_000


@dataclass(frozen=True)
class Tab:
    """Is one state to look at: its name, its address, and which server holds it."""

    name: str
    query: str
    served: str = "nothing"


TABS = (
    Tab("layout", "dims=dp,tp,pp&rank=5"),
    Tab("layout-16384", LARGE),
    Tab("schedule", SCHEDULES),
    Tab("plan", f"view=plan&{PLAN}"),
    Tab("run", "", "run"),
    Tab("diagnose", "", "hang"),
    Tab("learn", "view=learn&dims=dp,tp,pp"),
)
"""Addresses that an edition without tabs opens as well."""


def main() -> None:
    """Takes the pictures, and lays each beside the one of an earlier edition where one is named."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--before", metavar="COMMIT")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        run = Path(scratch) / "demo" / "emulated"
        subprocess.run([*SERRIED, "demo", "--no-serve", "--folder", str(run.parent)], check=True)
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        take_edition(browser, asked.folder, run, ROOT / "src")
        if asked.before:
            with checked_out(asked.before, Path(scratch) / "before") as before:
                earlier = Path(scratch) / "pictures"
                earlier.mkdir()
                take_edition(browser, earlier, run, before / "src")
            lay_beside(browser, earlier, asked.folder)
        browser.close()


@contextmanager
def checked_out(commit: str, folder: Path) -> Iterator[Path]:
    """Yields a folder with the files of a commit, and takes it away again."""
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--detach", "--quiet", str(folder), commit], check=True)
    try:
        yield folder
    finally:
        subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def take_edition(browser: Browser, folder: Path, run: Path, source: Path) -> None:
    """Takes every picture of the edition whose package lies in ``source``."""
    with ExitStack() as servers:
        addresses = {
            "nothing": servers.enter_context(serving([], source)),
            "run": servers.enter_context(serving(["--trace", str(run)], source)),
            "hang": servers.enter_context(serving(["--evidence", str(HANG)], source)),
        }
        for size, scheme, (short, lang) in product(SIZES, SCHEMES, LANGUAGES.items()):
            width, height = size
            context = browser.new_context(
                viewport=ViewportSize(width=width, height=height),
                locale=lang,
                color_scheme="dark" if scheme == "dark" else "light",
            )
            page = context.new_page()
            for tab in TABS:
                show(page, f"{addresses[tab.served]}?{tab.query}")
                page.screenshot(path=folder / f"{tab.name}-{width}-{scheme}-{short}.png")
            context.close()


def show(page: Page, address: str) -> None:
    """Opens the page, and waits until it has come to rest."""
    page.goto(address)
    page.wait_for_function("window.serried", timeout=QUIET_MS)
    page.evaluate("serried.settled()")


def image(path: Path) -> str:
    """Returns a picture as an element of a page."""
    text = base64.b64encode(path.read_bytes()).decode()
    return f'<img style="flex:none" src="data:image/png;base64,{text}">'


def lay_beside(browser: Browser, earlier: Path, folder: Path) -> None:
    """Writes beside-NAME.png for each picture: the earlier edition at the left, this one right."""
    page = browser.new_page()
    for path in sorted(earlier.glob("*.png")):
        images = "".join(map(image, (path, folder / path.name)))
        page.set_content(f'<body style="margin:0;display:flex">{images}</body>')
        width, height = page.evaluate("[document.body.scrollWidth, document.body.scrollHeight]")
        page.set_viewport_size(ViewportSize(width=width, height=height))
        page.screenshot(path=folder / f"beside-{path.name}")
    page.close()


if __name__ == "__main__":
    main()
