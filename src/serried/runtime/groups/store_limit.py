"""Limits how long this process waits for the answer of a store over TCP.

    connect, add, check     torch waits for the answer for ever: limited here
    get, wait               torch limits them by the store's own time-out
    set                     has no answer

A host that is stopped, or lost with its power, still counts as connected. Its store answers
nothing, and a rank that asks it would never say so.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from torch.distributed import Store  # type: ignore[attr-defined]

RETRY_S = 0.05
"""How soon a connection is hung up on that torch makes after another one was."""


@contextmanager
def limited(port: int, limit_s: float) -> Iterator[None]:
    """Lets connections that torch makes here to a store at ``port`` wait so long for any answer.

    Calls that get none raise RuntimeError, now and later.
    """
    is_over = threading.Event()
    connecting = threading.Thread(target=_hang_up, args=(port, limit_s, is_over), daemon=True)
    connecting.start()
    try:
        yield
    finally:
        is_over.set()
        connecting.join()
    whole_s, part_s = divmod(limit_s, 1)
    for connection in _connections(port):
        connection.setsockopt(
            socket.SOL_SOCKET,
            socket.SO_RCVTIMEO,
            struct.pack("ll", int(whole_s), int(part_s * 1e6)),
        )


def limited_clone(store: Store) -> Store:
    """Returns another connection to ``store``, with its time-out as the limit of any answer."""
    whole: Any = store
    while hasattr(whole, "underlying_store"):
        whole = whole.underlying_store
    port = getattr(whole, "port", None)
    if port is None:  # a file
        return _clone(store)
    with limited(port, whole.timeout.total_seconds()):
        return _clone(store)


def _clone(store: Any) -> Store:
    made: Store = store.clone()
    return made


def _hang_up(port: int, limit_s: float, is_over: threading.Event) -> None:
    """Hangs up on the store at ``port`` after ``limit_s``, and on what torch connects anew then.

    Torch tries again while its own time-out, which begins a little later, has not passed; and that
    try would wait for ever.
    """
    wait_s = limit_s
    while not is_over.wait(wait_s):
        wait_s = RETRY_S
        for connection in _connections(port):
            with suppress(OSError):  # it is one that is still connecting
                connection.shutdown(socket.SHUT_RDWR)


def _connections(port: int) -> Iterator[socket.socket]:
    """Yields what this process has connected to ``port``; torch hands its sockets to nobody."""
    for file in Path("/dev/fd").iterdir():
        with suppress(OSError):  # it was closed meanwhile, or is not connected
            if not stat.S_ISSOCK(file.stat().st_mode):
                continue
            with socket.socket(fileno=os.dup(int(file.name))) as connection:
                is_internet = connection.family in (socket.AF_INET, socket.AF_INET6)
                if is_internet and connection.getpeername()[1] == port:
                    yield connection
