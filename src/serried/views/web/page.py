"""The page as it is sent: its document, its modules, one style sheet, each compressed once.

    GET ./                             the document, which names the others by what they hold
    GET ./static/app.js?v=…            app.js with every module that it imports
    GET ./static/plan/later.js?v=…     what the tab of the plan needs, once it is opened
    GET ./static/app.css?v=…           app.css with every style that it imports

A browser keeps them for a year: another edition has another address. The document is asked for
anew each time, and is answered without a body where the browser has it. It names what the page asks
first, in the visitor's language, and the module of the tab that its address opens, so that a
browser asks for both while app.js is on its way.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from serried.views.sentences import LANGUAGES
from serried.views.web.joined import joined_modules, joined_styles
from serried.views.web.tightened import tightened

STATIC = Path(__file__).parent / "static"
SCRIPT, STYLE = "app.js", "app.css"
FIRST = ("words%3Flang%3D{lang}", "page%3Flang%3D{lang}", "cases", "traces", "checks", "openings")
"""Questions that every page asks as it opens, as ``static/app.js`` asks them."""
LATER = {"schedule": "schedule/later.js", "plan": "plan/later.js"}
"""The module that a tab needs beside app.js, by the tab, as ``static/desk`` fetches it."""
_KEPT = "public, max-age=31536000, immutable"


def page_routes() -> list[Route]:
    """Returns the routes of the page itself."""
    return [
        Route("/", _document),
        *(Route(f"/static/{path}", _sending(path)) for path in page_modules()),
        Route(f"/static/{STYLE}", _style),
    ]


@cache
def page_modules() -> dict[str, str]:
    """Returns every module of the page by its path: the one that comes first, then the later ones.

    The first names the others by what they hold.
    """
    joined = joined_modules(_texts(".js"), SCRIPT)
    modules = {path: tightened(text) for path, text in joined.items()}
    for path in modules.keys() - {SCRIPT}:
        named = f'"./{path}?v={_mark(modules[path])}"'
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
    text = (STATIC / "index.html").read_text(encoding="utf-8")
    text = re.sub(r"\n\s+", "\n", text).replace("static/icon.svg", _icon())
    first = f'<link rel="preload" as="fetch" crossorigin href="{first_questions(lang)}">'
    if tab in LATER:
        module = f"static/{LATER[tab]}?v={_mark(page_modules()[LATER[tab]])}"
        first += f'\n<link rel="modulepreload" href="{module}">'
    text = text.replace("</title>", f"</title>\n{first}", 1)
    for name, content in ((SCRIPT, page_modules()[SCRIPT]), (STYLE, page_style())):
        text = text.replace(f"static/{name}", f"static/{name}?v={_mark(content)}")
    return text


def first_questions(lang: str) -> str:
    """Returns the address of what a page asks for before all else, as its module asks for it."""
    return "api/several?" + "&".join(f"ask={each}" for each in FIRST).replace("{lang}", lang)


def chosen_language(asked: str, accepted: str) -> str:
    """Returns the language that a page will speak: that of its address, else of its browser.

    >>> chosen_language("", "fr,zh-CN;q=0.9,en;q=0.8"), chosen_language("en", "zh")
    ('zh', 'en')
    """
    wanted = [asked, *accepted.split(",")]
    codes = (re.split(r"[-;]", each.strip().lower())[0] for each in wanted)
    return next((code for code in codes if code in LANGUAGES), "en")


def _icon() -> str:
    """Returns the icon as an address that holds it, so that nobody asks for it."""
    return "data:image/svg+xml," + quote((STATIC / "icon.svg").read_text(encoding="utf-8"))


def _texts(ending: str) -> dict[str, str]:
    """Returns the files of one kind by their path below the folder of the page."""
    return {
        path.relative_to(STATIC).as_posix(): path.read_text(encoding="utf-8")
        for path in STATIC.rglob(f"*{ending}")
    }


def _document(request: Request) -> Response:
    asked = request.query_params.get("lang", "")
    lang = chosen_language(asked, request.headers.get("accept-language", ""))
    tab = request.query_params.get("view", "")
    document = page_document(lang, tab if tab in LATER else "")
    return _sent(request, document, "text/html", "no-cache")


def _sending(path: str) -> Callable[[Request], Response]:
    """Answers with a module of the page."""
    return lambda request: _sent(request, page_modules()[path], "text/javascript", _KEPT)


def _style(request: Request) -> Response:
    return _sent(request, page_style(), "text/css", _KEPT)


def _sent(request: Request, content: str, media_type: str, keeping: str) -> Response:
    """Returns a text of the page, compressed where the browser reads that."""
    mark = f'W/"{_mark(content)}"'
    headers = {"cache-control": keeping, "vary": "Accept-Encoding, Accept-Language", "etag": mark}
    if mark in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(content, media_type=media_type, headers=headers)
    body = _compressed(content)
    return Response(body, media_type=media_type, headers=headers | {"content-encoding": "gzip"})


@cache
def _mark(content: str) -> str:
    """Returns what tells one edition of a text from another."""
    return hashlib.sha256(content.encode()).hexdigest()[:12]


@cache
def _compressed(content: str) -> bytes:
    return gzip.compress(content.encode(), mtime=0)
