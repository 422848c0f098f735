"""Where ranks meet: a store in a file or at an address, and who has not come in time.

    arrived            how many ranks are there (the last to come opens ``all``)
    all                what everybody waits for
    arrived/<rank>     one key per rank, by which those that never came are named

A rank writes them in this order: one that is stopped on its way is still named as missing.
The keys stand under the attempt's number, so that ranks which torchrun starts again do not
take the arrivals of the attempt before for their own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import struct
import time
from datetime import timedelta
from pathlib import Path

from torch.distributed import (  # type: ignore[attr-defined]
    FileStore,
    PrefixStore,
    Store,
    TCPStore,
)

from serried.errors import EnvironmentProblem, InputError, SerriedError, listed
from serried.finding import said
from serried.runtime.groups.store_limit import limited
from serried.runtime.job.report import Place

ADDRESS_OF_CARD = 0x8915
"""Linux's SIOCGIFADDR."""

LINGER_S = 5.0
"""How long the rank that hosts the store stays for others who have yet to learn who is missing."""


def meet(place: Place, file: Path | None, timeout_s: float) -> Store:
    """Returns the store in which every rank has arrived: in ``file``, or at MASTER_ADDR.

    Raises SerriedError naming the ranks that have not come within ``timeout_s``, and
    EnvironmentProblem where the port is another program's.
    """
    limit = timedelta(seconds=timeout_s)
    if file is not None:
        store: Store = FileStore(str(file), place.world_size)
    else:
        store = PrefixStore(f"serried/{_attempt()}", _at_address(place, limit))
    try:
        if store.add("arrived", 1) == place.world_size:
            store.set("all", "here")
        store.set(f"arrived/{place.rank}", socket.gethostname())
        store.wait(["all"], limit)
    except RuntimeError as error:  # torch's stores raise several kinds of it
        raise _missing(store, place, timeout_s) from error
    return store


def _missing(store: Store, place: Place, timeout_s: float) -> SerriedError:
    """Returns who has not come; the store's host stays until the others have asked as well."""
    try:
        absent = [r for r in range(place.world_size) if not store.check([f"arrived/{r}"])]
        store.add("asked", 1)
        waiting = place.world_size - len(absent)
        end = time.monotonic() + LINGER_S
        while place.rank == 0 and store.add("asked", 0) < waiting and time.monotonic() < end:
            time.sleep(0.05)
    except RuntimeError:
        absent = [0]  # the store went with the rank that hosts it
    return SerriedError(
        "{missing} of {world} ranks did not come within {timeout:g} s: rank {ranks}; see that "
        "every node started its ranks with the same address, port and number of ranks",
        missing=len(absent),
        world=place.world_size,
        timeout=timeout_s,
        ranks=listed(absent, limit=16),
    )


def _at_address(place: Place, limit: timedelta) -> Store:
    """Returns the store at MASTER_ADDR and MASTER_PORT, which rank 0 or torchrun's agent hosts."""
    host, port = address()
    is_host = place.rank == 0 and not agent_hosts()
    try:
        with limited(port, limit.total_seconds()):
            # Who waits for all here cannot say who is missing; the ranks are counted afterwards
            # instead.
            return TCPStore(
                *(host, port, place.world_size, is_host, limit),
                wait_for_workers=False,
                multi_tenant=True,
            )
    except RuntimeError as error:
        if is_host:
            raise EnvironmentProblem(
                "rank 0 cannot open port {port}: {reason}; set MASTER_PORT to a free one, "
                "such as {free}",
                port=port,
                reason=said("another program has it") if "EADDRINUSE" in str(error) else str(error),
                free=free_port(),
            ) from error
        raise SerriedError(
            "rank 0 did not open {host}:{port}, where the ranks meet, within {timeout:g} s; see "
            "that it runs, and that this host reaches it",
            host=host,
            port=port,
            timeout=limit.total_seconds(),
        ) from error


def address() -> tuple[str, int]:
    """Returns MASTER_ADDR and MASTER_PORT; raises InputError where they are missing or no port."""
    host, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    if not host or not port or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InputError(
            "MASTER_ADDR={host} and MASTER_PORT={port} say no address to meet at; set them to "
            "rank 0's host and a free port of it, such as 10.0.0.1 and 29500",
            host=host,
            port=port,
        )
    return host, int(port)


def card_towards(host: str) -> str | None:
    """Returns the network card by which this host reaches ``host``; None where it cannot tell.

    >>> card_towards("127.0.0.1")
    'lo'
    """
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((host, 9))  # sends nothing: it only asks for the way
            own = socket.inet_aton(probe.getsockname()[0])
            for _, name in socket.if_nameindex():
                with contextlib.suppress(OSError):  # a card without an address
                    asked = struct.pack("256s", name.encode()[:15])
                    if fcntl.ioctl(probe, ADDRESS_OF_CARD, asked)[20:24] == own:
                        return name
    except OSError:
        return None
    return None


def free_port() -> int:
    """Returns a port of this host that nobody has at the moment."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        port: int = probe.getsockname()[1]
        return port


def agent_hosts() -> bool:
    """Tells whether torchrun's agent hosts the store, and not rank 0."""
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def _attempt() -> str:
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
