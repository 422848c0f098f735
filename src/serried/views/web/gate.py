"""Who may talk to the server: known host names only, a token where others can reach the port.

    loopback       http://127.0.0.1:8765/                no token unless one was asked for
    other hosts    http://node7:8765/?token=…            once; then a cookie carries it
    behind a proxy https://hub.example.org/user/ada/proxy/8765/    the proxy's name, as it was told

A page of another site can make a browser send requests to 127.0.0.1 under a name of its own
(DNS rebinding), so a request must name this server by a name that is really ours. An address
in digits cannot be rebound and is always ours.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serried.errors import InputError

LOOPBACK_NAMES = ("localhost",)
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'; object-src 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
"""Sent with every answer: nothing is loaded from, and nothing tells, any other place."""


def is_loopback(host: str) -> bool:
    """Tells whether only this machine can reach a server bound to ``host``.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return host in LOOPBACK_NAMES or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def new_token() -> str:
    """Returns a token that cannot be guessed."""
    return secrets.token_urlsafe(24)


_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.\-]*[A-Za-z0-9])?")
"""A host's name; addresses are known without being told."""


@dataclass(frozen=True)
class Gate:
    """Holds the host names that are ours and the token, if one is needed.

    Raises InputError for a proxy that is not given by a host name.
    """

    host: str
    port: int
    token: str | None = None
    behind: tuple[str, ...] = ()
    """Names of proxies through which browsers come, who send these names on."""
    names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        for name in self.behind:
            if not _NAME.fullmatch(name):
                raise InputError(
                    "--behind {name} is no host name; give the name alone that browsers come by, "
                    "such as hub.example.org",
                    name=name[:60] or "''",
                )
        names = {*LOOPBACK_NAMES, self.host.lower(), *(each.lower() for each in self.behind)}
        if not is_loopback(self.host):
            names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        object.__setattr__(self, "names", frozenset(names))

    @property
    def cookie(self) -> str:
        """The cookie's name; ports of one host share cookies, so it holds the port."""
        return f"serried-token-{self.port}"

    def knows_host(self, header: str) -> bool:
        """Tells whether a Host header names this server."""
        name = _host_name(header)
        try:
            return bool(ipaddress.ip_address(name))
        except ValueError:
            return name in self.names or name.endswith(".localhost")

    def knows_token(self, word: str | None) -> bool:
        """Tells whether ``word`` is the token, in a time that does not depend on it."""
        return word is not None and hmac.compare_digest(word.encode(), (self.token or "").encode())


class GateMiddleware:
    """Refuses strangers before any page is made, and marks every answer with ``HEADERS``."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self.app = app
        self.gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers the request itself when the gate is shut, else passes it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = self._refusal(Request(scope))
        await (answer or self.app)(scope, receive, _with_headers(send))

    def _refusal(self, request: Request) -> Response | None:
        if not self.gate.knows_host(Headers(scope=request.scope).get("host", "")):
            return PlainTextResponse("This server does not go by that name.\n", 403)
        # The token comes in one of three ways: once in the address, then in a cookie; programs send
        # it in a header, such as 'Authorization: token TOKEN'.
        if self.gate.token is None:
            return None
        if self.gate.knows_token(request.query_params.get("token")):
            return self._welcome(request)
        header = request.headers.get("authorization", "").partition(" ")[2]
        if self.gate.knows_token(request.cookies.get(self.gate.cookie) or header):
            return None
        return PlainTextResponse(
            "This server needs its token: open the address that 'serried serve' printed.\n", 403
        )

    def _welcome(self, request: Request) -> Response:
        """Returns a redirect to the same page, the token moved from its address to a cookie."""
        rest = [(k, v) for k, v in request.query_params.multi_items() if k != "token"]
        answer = RedirectResponse(f"?{urlencode(rest)}", 303)
        # Lax, for a link followed from a chat or a mail must carry it past the redirect.
        answer.set_cookie(self.gate.cookie, str(self.gate.token), httponly=True, samesite="lax")
        return answer


def _host_name(header: str) -> str:
    """Returns the host of a Host header, in lower case and without port or brackets."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower().rstrip(".")


def _with_headers(send: Send) -> Callable[[Message], Awaitable[None]]:
    async def send_marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_marked
