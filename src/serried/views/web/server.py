"""The local server of the workbench: the page, its questions, and nothing from elsewhere.

    GET  ./             the page             GET  ./api/layout?…   payload of a layout
    GET  ./static/…     modules, styles      GET  ./api/rank?…     one rank, as JSON
    GET  ./api/traces   traces on offer      GET  ./api/trace?trace=N   payload of one trace
    GET  ./api/trace/…  windows of a trace, its rows, its spans and figures (trace_routes)
    GET  ./api/page     frameworks, words  GET  ./api/schedule?…  payload of a schedule
    GET  ./api/schedules   names on offer  POST ./api/launch?…    launch files, read

Every address in the page is relative, so it works under a sub-path and through ``ssh -L``.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path

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
from serried.views.mishap import mishap_of
from serried.views.sentences import say
from serried.views.web.check.heat import NamedCheck, read_check
from serried.views.web.diagnose.cases import NamedCase, read_case
from serried.views.web.gate import Gate, GateMiddleware, is_loopback, new_token
from serried.views.web.layout.launch import launch_answer
from serried.views.web.page import STATIC, page_routes
from serried.views.web.plan.query import field_of as plan_field_of
from serried.views.web.questions import Answer, Answering, questions
from serried.views.web.schedule.query import field_of
from serried.views.web.squeeze import squeezed
from serried.views.web.trace.payload import NamedTrace
from serried.views.web.trace.shelf import Shelf
from serried.views.web.wire.dropped import read_body, read_files
from serried.views.web.wire.query import Words

PORT = 8765
_PORTS_TRIED = 100
_BINARY = "application/octet-stream"


def application(
    traces: Sequence[NamedTrace] | Shelf,
    gate: Gate,
    checks: Sequence[NamedCheck] = (),
    cases: Sequence[NamedCase] = (),
) -> Starlette:
    """Returns the application that serves the page and answers its questions."""
    shelf = traces if isinstance(traces, Shelf) else Shelf(traces)
    answers = questions(shelf, checks, cases)
    return Starlette(
        routes=[
            *page_routes(),
            *(Route(f"/api/{name}", _answering(answer)) for name, answer in answers.items()),
            Route("/api/launch", _launch, methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[
            Middleware(GateMiddleware, gate=gate),
            Middleware(GZipMiddleware, minimum_size=512),
        ],
    )


def _response(found: Answer) -> Response:
    if isinstance(found, bytes):
        return Response(found, media_type=_BINARY)
    return JSONResponse(found)


def serve(
    traces: Sequence[Path],
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    open_browser: bool = True,
    query: str = "",
    token: str | None = None,
    checks: Sequence[Path] = (),
    evidence: Sequence[Path] = (),
) -> None:
    """Serves the workbench until it is interrupted; ``query`` is the state that it opens with.

    Raises InputError for a folder that holds no trace or a file that is no report of a check, and
    EnvironmentProblem where the port or the host cannot be had.
    """
    shelf = Shelf.of_places(traces)
    # Where reading a trace took pyarrow, Arrow keeps the freed memory for its next file; a server
    # that may run for days gives it back.
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    reports = [read_check(path) for path in checks]
    cases = [read_case(path) for path in evidence]
    listening = listen(host, port)
    gate = Gate(host, listening.getsockname()[1], token or _token_for(host))
    address = _address(gate, query)
    _announce(gate, address)
    shelf.start(lambda problem: click.echo(f"serried: {problem}", err=True))
    if open_browser and _has_screen():
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    config = uvicorn.Config(
        application(shelf, gate, reports, cases), log_level="warning", ws="none", lifespan="off"
    )
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        click.echo("stopped", err=True)


def listen(host: str, port: int) -> socket.socket:
    """Returns a listening socket; raises EnvironmentProblem naming what would work instead."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = _socket(family)
    try:
        listening.bind((host, port))
        listening.listen(128)
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


def _answering(answer: Answering) -> Callable[[Request], Response]:
    """Wraps a question: a user's mistake becomes its sentence, in the page's language."""

    def endpoint(request: Request) -> Response:
        words = _words(request)
        try:
            return squeezed(_response(answer(words)), request)
        except SerriedError as error:
            return _refusal(error, words)
        except Exception as error:
            return _mishap(error, request, words)

    return endpoint


async def _launch(request: Request) -> Response:
    """Reads the launch files of a request: text in, a description out, nothing kept or run."""
    words = _words(request)
    if request.headers.get("content-type") != _BINARY:
        # A page of another site may send forms and plain text here, but no other type.
        return PlainTextResponse(f"Files come as {_BINARY}.\n", 415)
    try:
        files = read_files(await read_body(request.stream()))
        return JSONResponse(await run_in_threadpool(launch_answer, files, words))
    except SerriedError as error:
        return _refusal(error, words)
    except Exception as error:
        return _mishap(error, request, words)


def _words(request: Request) -> Words:
    params = request.query_params
    return {name: params.getlist(name) for name in params}


def _refusal(error: SerriedError, words: Words) -> Response:
    """Returns a user's mistake as its sentence, with the word of the question it is about."""
    lang = "zh" if "zh" in words.get("lang", ()) else "en"
    found = field_of(error) or plan_field_of(error)
    field = error.values.get("axis") or found or error.values.get("name")
    return JSONResponse({"error": say(error, lang), "field": field}, 400)


def _mishap(error: Exception, request: Request, words: Words) -> Response:
    """Returns what nobody foresaw as its sentence; the page and its other answers go on."""
    # What was asked goes into a file for a report, where the token must not stand.
    asked = [f"{name}={value}" for name in words if name != "token" for value in words[name]]
    lang = "zh" if "zh" in words.get("lang", ()) else "en"
    told = mishap_of(error, [request.url.path, *asked])
    return JSONResponse({"error": say(told, lang), "field": None}, 500)


def _token_for(host: str) -> str | None:
    return None if is_loopback(host) else new_token()


def _address(gate: Gate, query: str) -> str:
    """Returns the address to open: this machine's name where the server binds to all."""
    name = socket.gethostname() if gate.host in ("0.0.0.0", "::") else gate.host
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
