"""What searches the site: loaded from disk as from a server, and in the language of its pages."""

from __future__ import annotations

import shutil
from pathlib import Path

SHIM = "https://unpkg.com/iframe-worker/shim"
"""What pages that are opened from disk load to search, as a browser gives those no workers."""
OWN_SHIM = Path(__file__).parent.parent / "node_modules" / "iframe-worker" / "shim" / "index.js"
CHINESE = {
    '?"result":"results"': '?"个结果":"个结果"',
    '"No results"': '"没有结果"',
    '"Search results"': '"搜索结果"',
    '"Search"': '"搜索"',
    '"Close search"': '"关闭搜索"',
    '"Filters"': '"筛选"',
    '"Tags"': '"标签"',
    '"Loading search\\u2026"': '"正在载入搜索…"',
    '"Search is unavailable. Reload the page to try again."': '"搜索不可用，请重新载入页面。"',
}
"""What the generator's own script says in English alone, whatever its pages' language."""


def search_from_disk(site: Path) -> None:
    """Puts what searches in pages opened from disk beside them, and lets them load it there."""
    shutil.copyfile(OWN_SHIM, site / "assets" / "javascripts" / "shim.js")
    for page in site.rglob("*.html"):
        up = "../" * (len(page.relative_to(site).parts) - 1)
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(SHIM, f"{up}assets/javascripts/shim.js"), encoding="utf-8")


def search_in_chinese(pages: Path) -> list[str]:
    """Lets the script of Chinese pages speak Chinese; returns what it no longer says as known."""
    (script,) = (pages / "assets" / "javascripts").glob("bundle.*.js")
    text = script.read_text(encoding="utf-8")
    unknown = [f"{script.name} says no {word}" for word in CHINESE if word not in text]
    for english, chinese in CHINESE.items():
        text = text.replace(english, chinese)
    script.write_text(text, encoding="utf-8")
    return unknown
