"""Work that waits until the server has answered once: imports and reading, which would hold it up.

listens ──> first answer ──> the work        listens ──> HEAD_START_S ──> the work
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

HEAD_START_S = 0.25
"""Where nobody asks for this long after the server listens, the work begins without a question."""


@dataclass
class Afterwards:
    """Holds what is to be begun, each at once where an answer was given already."""

    work: list[Callable[[], None]] = field(default_factory=list)
    has_begun: bool = False

    def add(self, begin: Callable[[], None]) -> None:
        """Adds something that returns at once, as what starts a thread does."""
        if self.has_begun:
            begin()
        else:
            self.work.append(begin)

    def begin(self) -> None:
        """Begins all of it; what has begun does not begin again."""
        self.has_begun = True
        while self.work:
            self.work.pop(0)()


class AnswersFirst:
    """Begins the work behind the first answer that it passes on."""

    def __init__(self, app: ASGIApp, afterwards: Afterwards) -> None:
        self._app = app
        self._afterwards = afterwards

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on."""
        try:
            await self._app(scope, receive, send)
        finally:
            self._afterwards.begin()


class PromptServer(uvicorn.Server):
    """Begins the work soon after it listens, also where nobody asks."""

    def __init__(
        self, config: uvicorn.Config, afterwards: Afterwards, leave: Callable[[], None]
    ) -> None:
        """Takes what ends answers that would go on for ever, once the server ends."""
        super().__init__(config)
        self._afterwards = afterwards
        self._leave = leave

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends, as every server does."""
        self._leave()
        await super().shutdown(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listens, as every server does."""
        await super().startup(sockets)
        asyncio.get_running_loop().call_later(HEAD_START_S, self._afterwards.begin)
