"""The page as it is sent: its document, one module, one style sheet, each compressed once.

    GET ./                      the document, which names the others by what they hold
    GET ./static/app.js?v=…     app.js with every module that it imports
    GET ./static/app.css?v=…    app.css with every style that it imports

A browser keeps the two for a year: another edition has another address. The document is asked for
anew each time, and is answered without a body where the browser has it. It names what the page asks
first, in the visitor's language, so that a browser asks for that while the module is on its way.
"""

from __future__ import annotations

import gzip
import hashlib
import re
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
_KEPT = "public, max-age=31536000, immutable"


def page_routes() -> list[Route]:
    """Returns the routes of the page itself."""
    return [
        Route("/", _document),
        Route(f"/static/{SCRIPT}", _script),
        Route(f"/static/{STYLE}", _style),
    ]


@cache
def page_script() -> str:
    """Returns every module of the page in one."""
    return tightened(joined_modules(_texts(".js"), SCRIPT))


@cache
def page_style() -> str:
    """Returns every style of the page in one."""
    return joined_styles(_texts(".css"), STYLE)


@cache
def page_document(lang: str = "en") -> str:
    """Returns the document, whose addresses of module and styles change with what they hold."""
    text = (STATIC / "index.html").read_text(encoding="utf-8")
    text = re.sub(r"\n\s+", "\n", text).replace("static/icon.svg", _icon())
    first = f'<link rel="preload" as="fetch" crossorigin href="{first_questions(lang)}">'
    text = text.replace("</title>", f"</title>\n{first}", 1)
    for name, content in ((SCRIPT, page_script()), (STYLE, page_style())):
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
    return _sent(request, page_document(lang), "text/html", "no-cache")


def _script(request: Request) -> Response:
    return _sent(request, page_script(), "text/javascript", _KEPT)


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
