"""The page behind a real proxy that takes the path's prefix off and keeps the browser's host."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from urllib.parse import urljoin

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from serried.views.web.refusal import BINARY
from serried.views.web.server import listen
from tests.views.web.served import served

PREFIX = "/user/ada/proxy/8765"
HUB = {"host": "hub.example.org"}
METHODS = ["GET", "POST"]


@contextmanager
def proxied(upstream: str) -> Iterator[str]:
    """Yields the address of a proxy that serves ``upstream`` below PREFIX, as a JupyterHub does."""

    async def forward(request: Request) -> Response:
        # The host goes on as it came: so does jupyter-server-proxy.
        headers = {**request.headers, "x-forwarded-prefix": PREFIX}
        path = f"{upstream}/{request.path_params['rest']}"
        async with httpx.AsyncClient(timeout=None) as client:
            asked = f"{path}?{request.url.query}" if request.url.query else path
            found = await client.request(
                request.method, asked, headers=headers, content=await request.body()
            )
        passed = {"content-type", "location", "set-cookie", "content-security-policy"}
        kept = {name: value for name, value in found.headers.items() if name in passed}
        return Response(found.content, found.status_code, kept)

    app = Starlette(routes=[Route(PREFIX + "/{rest:path}", forward, methods=METHODS)])
    with listen("127.0.0.1", 0) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}{PREFIX}/"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    with served(behind=("Hub.example.org",)) as upstream, proxied(upstream) as address:
        yield address


def test_the_page_and_all_that_it_loads_come_through(page: str) -> None:
    document = httpx.get(page, headers=HUB, timeout=None)
    assert document.status_code == 200
    loaded = re.findall(r'(?:src|href)="(?!data:)([^"#][^"]*)"', document.text)
    assert any(each.startswith("static/app.js") for each in loaded)
    for each in loaded:
        where = urljoin(page, unescape(each))
        assert where.startswith(page), f"{each} leaves the prefix"
        assert httpx.get(where, headers=HUB, timeout=None).status_code == 200


def test_questions_and_files_come_through(page: str) -> None:
    rank = httpx.get(
        urljoin(page, "api/rank?world_size=16&tp=2&pp=4&rank=5"), headers=HUB, timeout=None
    )
    assert rank.json()["rank"] == 5
    refused = httpx.post(urljoin(page, "api/launch"), headers=HUB, timeout=None, content=b"")
    assert refused.status_code == 415
    sent = httpx.post(
        urljoin(page, "api/launch"),
        timeout=None,
        headers={**HUB, "content-type": BINARY},
        content=b"?",
    )
    assert (sent.status_code, "error" in sent.json()) == (400, True)


def test_the_token_of_an_address_becomes_a_cookie_below_the_prefix() -> None:
    with (
        served(behind=("hub.example.org",), token="secret") as upstream,
        proxied(upstream) as address,
    ):
        assert httpx.get(address, headers=HUB, timeout=None).status_code == 403
        welcome = httpx.get(
            address, headers=HUB, timeout=None, params={"token": "secret", "tp": "2"}
        )
        assert (welcome.status_code, welcome.headers["location"]) == (303, "?tp=2")
        cookie = welcome.headers["set-cookie"].partition(";")[0]
        entered = httpx.get(
            urljoin(address, "?tp=2"), headers={**HUB, "cookie": cookie}, timeout=None
        )
        assert entered.status_code == 200


def test_a_name_that_was_not_told_is_refused() -> None:
    with served() as upstream, proxied(upstream) as address:
        assert httpx.get(address, headers=HUB, timeout=None).status_code == 403
        assert httpx.get(address, timeout=None).status_code == 200
