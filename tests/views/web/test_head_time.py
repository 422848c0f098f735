"""How long the server waits for a request's head."""

from __future__ import annotations

import asyncio
import socket
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlsplit

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from uvicorn.server import ServerState

from serried.limits import HEAD_SECONDS, Limit
from serried.views.web import head_time
from serried.views.web.head_time import HeadTimedProtocol
from tests.apart import run_apart

from .served import served

BEGUN = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


class Clock:
    """Passes everything on to the running loop, and keeps what is to come later."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.later: list[asyncio.TimerHandle] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def call_later(self, delay: float, call: Any) -> asyncio.TimerHandle:
        self.later.append(self._loop.call_later(delay, call))
        return self.later[-1]


def connected(clock: Clock) -> HeadTimedProtocol:
    config = uvicorn.Config(PlainTextResponse("here"), lifespan="off", log_level="error")
    made = HeadTimedProtocol(config, ServerState(), {}, _loop=clock)
    transport = Mock(asyncio.Transport)
    transport.get_extra_info.return_value, transport.is_closing.return_value = None, False
    made.connection_made(transport)
    return made


@pytest.mark.parametrize("sent", [b"", BEGUN], ids=["nothing", "half a head"])
def test_a_client_that_never_ends_its_head_is_let_go(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head_time, "HEAD_SECONDS", Limit(0, "s", "a test"))
    with served() as address:
        asked = urlsplit(address)
        with socket.create_connection((asked.hostname, asked.port)) as client:
            client.sendall(sent)
            assert client.recv(1) == b""


def test_bytes_that_trickle_in_do_not_begin_the_time_anew() -> None:
    async def trickle() -> list[asyncio.TimerHandle]:
        clock = Clock()
        protocol = connected(clock)
        for byte in BEGUN:
            protocol.data_received(bytes([byte]))
        return clock.later

    (only,) = run_apart(trickle())
    assert not only.cancelled()


def test_a_whole_head_is_answered_in_its_own_time_and_the_next_one_has_time_of_its_own() -> None:
    async def ask_twice() -> None:
        clock = Clock()
        protocol = connected(clock)
        protocol.data_received(BEGUN + b"\r\n")
        assert [each.cancelled() for each in clock.later] == [True]
        await asyncio.gather(*protocol.tasks)
        del clock.later[:-1]  # what uvicorn waits for between two requests
        kept_alive = clock.later.pop()
        protocol.data_received(BEGUN)
        assert kept_alive.cancelled()
        (waits,) = clock.later
        assert not waits.cancelled()
        assert 0 < waits.when() - clock.time() <= HEAD_SECONDS.most
        protocol.connection_lost(None)
        assert waits.cancelled()

    run_apart(ask_twice())
