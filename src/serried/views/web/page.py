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
import re
from collections.abc import Callable
from functools import cache

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from serried.views.sentences import LANGUAGES
from serried.views.web.edition import (
    LATER,
    STYLE,
    mark_of,
    page_document,
    page_modules,
    page_style,
)

_KEPT = "public, max-age=31536000, immutable"


def page_routes() -> list[Route]:
    """Returns the routes of the page itself."""
    return [
        Route("/", _document),
        *(Route(f"/static/{path}", _sending(path)) for path in page_modules()),
        Route(f"/static/{STYLE}", _style),
    ]


def chosen_language(asked: str, accepted: str) -> str:
    """Returns the language that a page will speak: that of its address, else of its browser.

    >>> chosen_language("", "fr,zh-CN;q=0.9,en;q=0.8"), chosen_language("en", "zh")
    ('zh', 'en')
    """
    wanted = [asked, *accepted.split(",")]
    codes = (re.split(r"[-;]", each.strip().lower())[0] for each in wanted)
    return next((code for code in codes if code in LANGUAGES), "en")


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
    mark = f'W/"{mark_of(content)}"'
    headers = {"cache-control": keeping, "vary": "Accept-Encoding, Accept-Language", "etag": mark}
    if mark in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(content, media_type=media_type, headers=headers)
    body = _compressed(content)
    return Response(body, media_type=media_type, headers=headers | {"content-encoding": "gzip"})


@cache
def _compressed(content: str) -> bytes:
    return gzip.compress(content.encode(), mtime=0)
