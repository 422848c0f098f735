"""Serves the workbench from this process, for tests that ask it as a browser would."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp

from serried.views.web.check.heat import NamedCheck
from serried.views.web.diagnose.cases import NamedCase
from serried.views.web.gate import Gate
from serried.views.web.opening.desk import OpeningDesk
from serried.views.web.server import SETTINGS, application, listen
from serried.views.web.trace.payload import NamedTrace


@contextmanager
def served(
    traces: Sequence[NamedTrace] | OpeningDesk = (),
    *,
    host: str = "127.0.0.1",
    token: str | None = None,
    behind: tuple[str, ...] = (),
    below: str = "",
    checks: Sequence[NamedCheck] = (),
    cases: Sequence[NamedCase] = (),
) -> Iterator[str]:
    """Yields the address of a server on a free port of this machine; it ends with the block.

    ``below`` is the path that a proxy would put before all others.
    """
    with listen("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        given = traces
        desk = given if isinstance(given, OpeningDesk) else OpeningDesk(given, checks, cases)
        app: ASGIApp = application(desk, Gate(host, port, token, behind))
        if below:
            app = Starlette(routes=[Mount(below, app)])
        # A page that is open still may listen to what changes.
        config = uvicorn.Config(app, timeout_graceful_shutdown=1, **SETTINGS)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}{below}"
        finally:
            desk.leave()
            server.should_exit = True
            thread.join()
            desk.close()
