"""A request's head and its time: a connection whose next head does not come whole is closed.

connection ──> head … ──> HEAD_SECONDS ──> closed       head whole ──> answered ──> the next head …
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from serried.limits import HEAD_SECONDS


class HeadTimedProtocol(H11Protocol):
    """Answers over HTTP as uvicorn does, and waits for no head longer than a head may take.

    The time runs from a connection's beginning, and then from the first byte of each further head;
    bytes that come meanwhile do not begin it anew. Between an answer and that byte uvicorn's own
    ``timeout_keep_alive`` counts.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins to wait for the first head."""
        super().connection_made(transport)
        self._count()

    def data_received(self, data: bytes) -> None:
        """Takes bytes in, after which a head is whole or is waited for."""
        super().data_received(data)
        self._count()

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits no longer."""
        self._stop()
        super().connection_lost(exc)

    def _count(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._end is None:
            self._end = self.loop.call_later(HEAD_SECONDS.most, self.transport.close)

    def _stop(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None
