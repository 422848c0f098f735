"""A wire that delays what passes: two TAP cards, and a process that copies frames between them.

    host's eth0 (TAP) ──> read, keep for the delay out,  write ──> port<n> (TAP) on the switch
                      <── read, keep for the delay back, write <──

It stands in for ``tc netem``, which not every kernel has. Run as ``slow_wire.py NAMESPACE CARD
NAMESPACE CARD OUT BACK JITTER``, all in seconds: it makes both cards, says so on stdout, and
copies until it is ended. Jitter is the mean of exponential delays on top, drawn for each frame;
frames stay in order. A line ``OUT BACK JITTER`` on stdin changes the delays, and is answered.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time
from pathlib import Path

SET_CARD, TAP, WITHOUT_HEADER = 0x400454CA, 0x0002, 0x1000
LONGEST_FRAME = 1 << 16
TOLD = 0
"""Stdin's number."""


def make_card(namespace: str, name: str) -> int:
    """Makes a TAP card in a network namespace, and returns what its frames are read from."""
    with Path(f"/run/netns/{namespace}").open() as there:
        if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")
    card = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(card, SET_CARD, struct.pack("16sH22x", name.encode(), TAP | WITHOUT_HEADER))
    return card


def copy(host: int, switch: int, delays: list[float]) -> None:
    """Copies frames both ways until stdin ends, each after its way's delay and jitter."""
    across = {host: switch, switch: host}
    kept: list[tuple[float, int, int, bytes]] = []  # when to go, in which order, where to, what
    last = {host: 0.0, switch: 0.0}
    count = 0
    while True:
        wait_s = max(0.0, kept[0][0] - time.monotonic()) if kept else None
        ready = select.select([host, switch, TOLD], [], [], wait_s)[0]
        if TOLD in ready:
            if not (line := sys.stdin.readline()):
                return
            delays = [float(word) for word in line.split()]
            tell("set")
        for card in {host, switch} & {*ready}:
            count += 1
            frame = os.read(card, LONGEST_FRAME)
            out, back, jitter = delays
            delay_s = (out if card == host else back) + random.expovariate(1) * jitter
            last[card] = max(last[card], time.monotonic() + delay_s)
            heapq.heappush(kept, (last[card], count, across[card], frame))
        while kept and kept[0][0] <= time.monotonic():
            _, _, card, frame = heapq.heappop(kept)
            try:
                os.write(card, frame)
            except OSError:
                continue  # a full or unplugged card loses frames, as wires do


def tell(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    host, card, switch, port, *words = sys.argv[1:]
    ends = make_card(host, card), make_card(switch, port)
    tell("made")
    copy(*ends, [float(word) for word in words])
