"""The page's edition as texts: its document, its modules and its styles, and what marks each.

What a browser asks for is made of ``static/`` (``joined``, ``tightened``); ``page`` sends it, and a
report holds it whole.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from urllib.parse import quote

from serried.views.web.joined import (
    joined_document,
    joined_modules,
    joined_styles,
    one_module,
)
from serried.views.web.tightened import tightened

STATIC = Path(__file__).parent / "static"
SCRIPT, STYLE, DOCUMENT = "app.js", "app.css", "index.html"
FIRST = ("words%3Flang%3D{lang}", "page%3Flang%3D{lang}", "cases", "traces", "checks", "openings")
"""Questions that every page asks as it opens, as ``static/app.js`` asks them."""
LATER = {"schedule": "schedule/later.js", "plan": "plan/later.js"}
"""The module that a tab needs beside app.js, by the tab, as ``static/desk`` fetches it."""


@cache
def page_modules() -> dict[str, str]:
    """Returns every module of the page by its path: the one that comes first, then the later ones.

    The first names the others by what they hold.
    """
    joined = joined_modules(_texts(".js"), SCRIPT)
    modules = {path: tightened(text) for path, text in joined.items()}
    for path in modules.keys() - {SCRIPT}:
        named = f'"./{path}?v={mark_of(modules[path])}"'
        modules[SCRIPT] = modules[SCRIPT].replace(f'"./{path}"', named)
    return modules


@cache
def page_style() -> str:
    """Returns every style of the page in one."""
    return joined_styles(_texts(".css"), STYLE)


@cache
def page_document(lang: str = "en", tab: str = "") -> str:
    """Returns the document, whose addresses of module and styles change with what they hold.

    ``tab`` is the one that the page opens with, ``""`` where that is not known.
    """
    text = re.sub(r"\n\s+", "\n", whole_document())
    first = f'<link rel="preload" as="fetch" crossorigin href="{first_questions(lang)}">'
    if tab in LATER:
        module = f"static/{LATER[tab]}?v={mark_of(page_modules()[LATER[tab]])}"
        first += f'\n<link rel="modulepreload" href="{module}">'
    text = text.replace("</title>", f"</title>\n{first}", 1)
    for name, content in ((SCRIPT, page_modules()[SCRIPT]), (STYLE, page_style())):
        text = text.replace(f"static/{name}", f"static/{name}?v={mark_of(content)}")
    return text


@cache
def whole_document() -> str:
    """Returns the document with all its parts and its icon, as it is written."""
    text = joined_document(_texts(".html"), DOCUMENT)
    return text.replace("static/icon.svg", icon_address())


def first_questions(lang: str) -> str:
    """Returns the address of what a page asks for before all else, as its module asks for it."""
    return "api/several?" + "&".join(f"ask={each}" for each in FIRST).replace("{lang}", lang)


@cache
def whole_script() -> str:
    """Returns every module of the page in one that fetches none."""
    return tightened(one_module(_texts(".js"), SCRIPT))


@cache
def mark_of(content: str) -> str:
    """Returns what tells one edition of a text from another."""
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def icon_address() -> str:
    """Returns the icon as an address that holds it, so that nobody asks for it."""
    return "data:image/svg+xml," + quote((STATIC / "icon.svg").read_text(encoding="utf-8"))


def _texts(ending: str) -> dict[str, str]:
    """Returns the files of one kind by their path below the folder of the page."""
    return {
        path.relative_to(STATIC).as_posix(): path.read_text(encoding="utf-8")
        for path in STATIC.rglob(f"*{ending}")
    }
