"""The page as it is sent: its document, one module, one style sheet, each compressed once.

    GET ./                      the document, which names the other two by what they hold
    GET ./static/app.js?v=…     app.js with every module that it imports
    GET ./static/app.css?v=…    app.css with every style that it imports

A browser keeps the two for a year: another edition has another address.
"""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from serried.views.web.joined import joined_modules, joined_styles

STATIC = Path(__file__).parent / "static"
SCRIPT, STYLE = "app.js", "app.css"
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
    return joined_modules(_texts(".js"), SCRIPT)


@cache
def page_style() -> str:
    """Returns every style of the page in one."""
    return joined_styles(_texts(".css"), STYLE)


@cache
def page_document() -> str:
    """Returns the document, whose addresses of module and styles change with what they hold."""
    text = (STATIC / "index.html").read_text(encoding="utf-8")
    for name, content in ((SCRIPT, page_script()), (STYLE, page_style())):
        mark = hashlib.sha256(content.encode()).hexdigest()[:12]
        text = text.replace(f"static/{name}", f"static/{name}?v={mark}")
    return text


def _texts(ending: str) -> dict[str, str]:
    """Returns the files of one kind by their path below the folder of the page."""
    return {
        path.relative_to(STATIC).as_posix(): path.read_text(encoding="utf-8")
        for path in STATIC.rglob(f"*{ending}")
    }


def _document(request: Request) -> Response:
    return _sent(request, page_document(), "text/html", "no-cache")


def _script(request: Request) -> Response:
    return _sent(request, page_script(), "text/javascript", _KEPT)


def _style(request: Request) -> Response:
    return _sent(request, page_style(), "text/css", _KEPT)


def _sent(request: Request, content: str, media_type: str, keeping: str) -> Response:
    """Returns a text of the page, compressed where the browser reads that."""
    headers = {"cache-control": keeping, "vary": "Accept-Encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(content, media_type=media_type, headers=headers)
    body = _compressed(content)
    return Response(body, media_type=media_type, headers=headers | {"content-encoding": "gzip"})


@cache
def _compressed(content: str) -> bytes:
    return gzip.compress(content.encode(), mtime=0)
