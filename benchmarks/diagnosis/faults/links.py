"""Hosts of one rank each, made of network namespaces on a bridge, one of whose links is throttled.

namespace NAME-0   10.78.0.1 ── veth ──┐
namespace NAME-1   10.78.0.2 ── veth ──┼── bridge in a namespace of its own
…                                      ┘   tc: the culprit's link passes RATE
"""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RATE = "40mbit"
CARD = "eth0"


def can_be() -> bool:
    """Tells whether this machine lets hosts be made: root, with ip and tc."""
    return os.geteuid() == 0 and all(shutil.which(tool) for tool in ("ip", "tc"))


@contextmanager
def hosts(count: int, slow: int) -> Iterator[list[str]]:
    """Makes ``count`` hosts, ``slow`` behind a throttled link; gives their names, removes them."""
    run = secrets.token_hex(3)
    switch, names = f"fault-{run}", [f"fault-{run}-{host}" for host in range(count)]
    try:
        for name in (switch, *names):
            _run("ip", "netns", "add", name)
        _in(switch, "link add bridge type bridge")
        _in(switch, "link set bridge up")
        for host, name in enumerate(names):
            _in(switch, f"link add port{host} type veth peer name {CARD} netns {name}")
            _in(switch, f"link set port{host} master bridge up")
            _in(name, f"addr add 10.78.0.{host + 1}/24 dev {CARD}")
            for device in (CARD, "lo"):
                _in(name, f"link set {device} up")
        for name, device in ((names[slow], CARD), (switch, f"port{slow}")):
            words = f"qdisc replace dev {device} root tbf rate {RATE} burst 64kb latency 500ms"
            _run("tc", "-n", name, *words.split())
        yield names
    finally:
        for name in (switch, *names):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def move_to(name: str) -> None:
    """Moves this process to a host."""
    with Path(f"/run/netns/{name}").open() as card:
        if ctypes.CDLL(None, use_errno=True).setns(card.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")
    os.environ["GLOO_SOCKET_IFNAME"] = CARD


def _in(name: str, words: str) -> None:
    _run("ip", "-n", name, *words.split())


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
