"""What is wrong with a built site: pages that ask another machine, links that lead nowhere."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

LOADS = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}
"""Elements that a browser loads without being asked, by the attribute that says what."""
OUTSIDE = re.compile(r"(?:https?:)?//")
STYLE_LOADS = re.compile(r"(?:url\(|@import\s+)[\"']?((?:https?:)?//[^\"')\s]+)")


class PageReader(HTMLParser):
    """Collects what a page loads, where it links to, and which places it has."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes an element's address and its place."""
        told = {name: value or "" for name, value in attrs}
        if tag == "link" and told.get("rel") in ("canonical", "alternate", "next", "prev"):
            return
        if address := told.get(LOADS.get(tag, "")):
            self.loads.append(address)
        if tag == "a" and "href" in told:
            self.links.append(told["href"])
        self.places |= {told[name] for name in ("id", "name") if name in told}


def faults(site: Path) -> list[str]:
    """Returns what is wrong with a site, a sentence each; nothing where it is sound."""
    pages = {str(path.relative_to(site)): _read(path) for path in sorted(site.rglob("*.html"))}
    found = [each for name, page in pages.items() for each in _page_faults(site, name, page, pages)]
    for style in site.rglob("*.css"):
        loads = STYLE_LOADS.findall(style.read_text(encoding="utf-8"))
        found += [f"{style.relative_to(site)} loads {each}" for each in loads]
    return found


def _read(path: Path) -> PageReader:
    page = PageReader()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _page_faults(
    site: Path, name: str, page: PageReader, pages: dict[str, PageReader]
) -> Iterator[str]:
    for address in page.loads:
        if OUTSIDE.match(address):
            yield f"{name} loads {address}"
        elif not address.startswith("data:") and not (site / _target(name, address)).is_file():
            yield f"{name} loads {address}, which is not there"
    for address in page.links:
        if re.match(r"[a-z]+:|//", address):
            continue
        target, place = _target(name, address), unquote(address.partition("#")[2])
        if not (site / target).is_file():
            yield f"{name} links to {address}, which is not there"
        elif place and target in pages and place not in pages[target].places | {"__top"}:
            yield f"{name} links to {address}, a place that {target} has not"


def _target(name: str, address: str) -> str:
    path = unquote(address.partition("#")[0].partition("?")[0])
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
