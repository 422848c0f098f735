"""The local server of the workbench: the page, its questions, and nothing from elsewhere.

    GET  ./             the page             GET  ./api/layout?…   payload of a layout
    GET  ./static/…     modules, styles      GET  ./api/rank?…     one rank, as JSON
    GET  ./api/traces   traces on offer      GET  ./api/trace?trace=N   payload of one trace
    GET  ./api/trace/…  windows of a trace, its rows, its spans and figures (trace_routes)
    GET  ./api/several?ask=…   several documents at once, as a page that opens asks for them
    GET  ./openapi.json        all of these, for programs
    POST ./api/launch?…        launch files as text, read
    POST ./api/open            files to be opened (opening.routes)

The server answers before it imports what answers questions, and before it reads what it
was given: both take longer than a page takes to open. Every address in the page is relative, so
it works under a sub-path and through ``ssh -L``.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from serried.errors import EnvironmentProblem, InputError, SerriedError
from serried.finding import Sentence
from serried.views.web.afterwards import Afterwards, AnswersFirst, PromptServer
from serried.views.web.bounds import AnswerBounds
from serried.views.web.edition import STATIC, page_document
from serried.views.web.gate import Gate, GateMiddleware, is_loopback, new_token
from serried.views.web.head_time import HeadTimedProtocol
from serried.views.web.opening.desk import OpeningDesk
from serried.views.web.opening.folder import recognised_as
from serried.views.web.opening.kinds import Kind
from serried.views.web.opening.routes import opening_routes
from serried.views.web.page import page_routes
from serried.views.web.refusal import BINARY, mishap, refusal, words_of_request
from serried.views.web.squeeze import squeezed
from serried.views.web.wire.arriving import read_body
from serried.views.web.wire.dropped import read_files

if TYPE_CHECKING:
    from serried.views.web.questions import Answer, Answering

PORT = 8765
_PORTS_TRIED = 100
_KEPT_S = 75
"""Seconds that a connection without a request stays: a page on a busy machine comes back to it."""
_WAITING = 1024
"""Connections that may wait to be taken: two hundred browsers open six each."""
_CLOSING_S = 1
"""Seconds that an answer under way has, once the server is told to stop."""
SETTINGS: Mapping[str, Any] = {
    "http": HeadTimedProtocol,  # of h11, which bounds what a request's head may hold, to 64 KiB
    "lifespan": "off",
    "log_level": "warning",
    "ws": "none",
}
"""How uvicorn serves the page."""
_UPLOADS = AnswerBounds()
"""Watches the threads that read files which were sent."""


def application(desk: OpeningDesk, gate: Gate, afterwards: Afterwards | None = None) -> Starlette:
    """Returns the application that serves the page and answers its questions.

    What takes long waits ``afterwards``, behind the first answer.
    """
    answers, afterwards = _Answers(desk), afterwards or Afterwards()
    page_document()  # before imports hold the interpreter, so that the first visitor has it at once
    afterwards.add(threading.Thread(target=lambda: answers.by_name, daemon=True).start)
    afterwards.add(desk.begin)
    asked = [
        *page_routes(),
        *opening_routes(desk),
        Route("/api/launch", _launch, methods=["POST"]),
        Route("/api/{name:path}", _answering(answers)),
    ]
    return Starlette(
        routes=[
            *asked,
            Route("/openapi.json", _telling(asked, answers)),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[
            Middleware(AnswersFirst, afterwards=afterwards),
            Middleware(GateMiddleware, gate=gate),
            Middleware(GZipMiddleware, minimum_size=512),
        ],
    )


class _Answers:
    """Holds what answers questions, which is imported while the page is on its way."""

    def __init__(self, desk: OpeningDesk) -> None:
        self._desk = desk
        self._lock = threading.Lock()

    @property
    def by_name(self) -> Mapping[str, Answering]:
        """What answers each question, by its address below ``api/``."""
        with self._lock:
            return self._loaded

    @cached_property
    def _loaded(self) -> Mapping[str, Answering]:
        from serried.views.web.questions import questions

        return questions(self._desk)


def _response(found: Answer) -> Response:
    if isinstance(found, bytes):
        return Response(found, media_type=BINARY)
    return JSONResponse(found)


def serve(
    places: Mapping[Path, Kind | None],
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    open_browser: bool = True,
    query: str = "",
    token: str | None = None,
    behind: tuple[str, ...] = (),
    tell: Callable[[Sentence | SerriedError], None] = lambda _: None,
) -> None:
    """Serves the workbench until it is interrupted; ``query`` is the state that it opens with.

    ``behind`` are names of proxies that browsers come through. ``places`` are opened behind the
    page, each as what it is said to be, or recognised; ``tell`` hears of their reading. Raises
    InputError for a place that serried does not open, and EnvironmentProblem where the port or
    the host cannot be had.
    """
    found = {place: recognised_as(place, kind) for place, kind in places.items()}
    listening = listen(host, port)
    gate = Gate(host, listening.getsockname()[1], token or _token_for(host), behind)
    address = _address(gate, query)
    _announce(gate, address)
    desk, afterwards = OpeningDesk(tell=tell, held=True, waits=True), Afterwards()
    for place, what in found.items():
        desk.open(place, found=what)
    if open_browser and _has_screen():
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    config = uvicorn.Config(
        application(desk, gate, afterwards),
        timeout_keep_alive=_KEPT_S,
        timeout_graceful_shutdown=_CLOSING_S,
        **SETTINGS,
    )
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    try:
        PromptServer(config, afterwards, desk.leave).run(sockets=[listening])
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
    finally:
        desk.close()


def _leave(number: int, _: FrameType | None) -> None:
    """Ends by an exception, so that copies are removed where a signal would end at once."""
    raise SystemExit(128 + number)


def listen(host: str, port: int) -> socket.socket:
    """Returns a listening socket; raises EnvironmentProblem naming what would work instead."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = _socket(family)
    try:
        listening.bind((host, port))
        listening.listen(_WAITING)
    except (OSError, OverflowError) as error:
        listening.close()
        raise _refused(error, family, host, port) from error
    return listening


def _refused(error: Exception, family: socket.AddressFamily, host: str, port: int) -> SerriedError:
    """Returns the sentence for a port or a host that cannot be had."""
    if isinstance(error, OverflowError):
        return InputError("port {port} cannot be; ports run from 0 to 65535", port=port)
    if isinstance(error, PermissionError):
        return EnvironmentProblem(
            "port {port} is reserved for the system; take one above 1023, such as {free}",
            port=port,
            free=PORT,
        )
    # Port 0 is any free port: where that binds, the host is ours and only the port is taken.
    if _can_bind(family, host, 0):
        return _taken(family, host, port)
    return EnvironmentProblem(
        "{host} is not an address of this machine; 127.0.0.1 is, for this machine alone", host=host
    )


def _taken(family: socket.AddressFamily, host: str, port: int) -> EnvironmentProblem:
    tried = range(port + 1, min(port + 1 + _PORTS_TRIED, 65536))
    free = next((each for each in tried if _can_bind(family, host, each)), 0)
    return EnvironmentProblem(
        "port {port} is in use; {free} is free: add --port {free}", port=port, free=free
    )


def _can_bind(family: socket.AddressFamily, host: str, port: int) -> bool:
    with _socket(family) as trial:
        try:
            trial.bind((host, port))
        except OSError:
            return False
    return True


def _socket(family: socket.AddressFamily) -> socket.socket:
    """Returns a socket that may take over a port whose last connections are still closing."""
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return made


def _telling(routes: list[Route], answers: _Answers) -> Callable[[Request], Response]:
    """Tells what the server answers, as OpenAPI."""

    def endpoint(_: Request) -> Response:
        from serried.views.web.openapi import openapi_document  # programs alone ask for it

        return JSONResponse(openapi_document(routes, answers.by_name))

    return endpoint


def _answering(answers: _Answers) -> Callable[[Request], Response]:
    """Answers any question: a user's mistake becomes its sentence, in the page's language."""
    bounds = AnswerBounds()

    def endpoint(request: Request) -> Response:
        words = words_of_request(request)
        answer = answers.by_name.get(request.path_params["name"])
        if answer is None:
            return PlainTextResponse("Not Found", 404)
        try:
            return bounds.answer(
                request.path_params["name"],
                lambda: squeezed(_response(answer(words)), request),
            )
        except SerriedError as error:
            return refusal(error, words)
        except Exception as error:
            return mishap(error, request, words)

    return endpoint


async def _launch(request: Request) -> Response:
    """Reads the launch files of a request: text in, a description out, nothing kept or run."""
    from serried.views.web.layout.launch import launch_answer

    words = words_of_request(request)
    if request.headers.get("content-type") != BINARY:
        # A page of another site may send forms and plain text here, but no other type.
        return PlainTextResponse(f"Files come as {BINARY}.\n", 415)
    try:
        files = read_files(await read_body(request.stream(), "launch"))
        return await run_in_threadpool(
            _UPLOADS.answer,
            "launch",
            lambda: JSONResponse(launch_answer(files, words)),
        )
    except SerriedError as error:
        return refusal(error, words)
    except Exception as error:
        return mishap(error, request, words)


def _token_for(host: str) -> str | None:
    return None if is_loopback(host) else new_token()


def _address(gate: Gate, query: str) -> str:
    """Returns the address to open: this machine's name where the server binds to all."""
    # Compared here; it is bound only where a user asks for it.
    binds_to_all = gate.host in ("0.0.0.0", "::")  # nosec B104
    name = socket.gethostname() if binds_to_all else gate.host
    words = [word for word in (f"token={gate.token}" if gate.token else "", query) if word]
    # An IPv6 address stands in brackets, or its colons would be taken for that of the port.
    shown = f"[{name}]" if ":" in name else name
    return f"http://{shown}:{gate.port}/{'?' if words else ''}{'&'.join(words)}"


def _announce(gate: Gate, address: str) -> None:
    click.echo(f"serried workbench: {address}")
    click.echo("nothing leaves this machine; press Ctrl+C to stop", err=True)
    if is_loopback(gate.host) and "SSH_CONNECTION" in os.environ:
        click.echo(
            f"from your own machine: ssh -L {gate.port}:localhost:{gate.port} "
            f"{socket.gethostname()}, then the same address",
            err=True,
        )


def _has_screen() -> bool:
    """Tells whether a browser can be shown; a text browser would take over the terminal."""
    if sys.platform != "linux":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
