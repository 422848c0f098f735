"""A wire that delays what passes: two TAP cards, and a process that copies frames between them.

    host's eth0 (TAP) ──> read, keep for the delay, write ──> port<n> (TAP) on the switch
                      <──                                 <──

It stands in for ``tc netem``, which not every kernel has. Run as ``slow_wire.py NAMESPACE CARD
NAMESPACE CARD SECONDS``: it makes both cards, says so on stdout, and copies until it is ended.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import select
import struct
import sys
import time
from pathlib import Path

SET_CARD, TAP, WITHOUT_HEADER = 0x400454CA, 0x0002, 0x1000
LONGEST_FRAME = 1 << 16


def make_card(namespace: str, name: str) -> int:
    """Makes a TAP card in a network namespace, and returns what its frames are read from."""
    with Path(f"/run/netns/{namespace}").open() as there:
        if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")
    card = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(card, SET_CARD, struct.pack("16sH22x", name.encode(), TAP | WITHOUT_HEADER))
    return card


def copy(one: int, other: int, delay_s: float) -> None:
    """Copies frames both ways for good, each ``delay_s`` after it came."""
    across = {one: other, other: one}
    kept: list[tuple[float, int, int, bytes]] = []  # when to go, in which order, where to, what
    count = 0
    while True:
        wait_s = max(0.0, kept[0][0] - time.monotonic()) if kept else None
        for card in select.select([one, other], [], [], wait_s)[0]:
            count += 1
            frame = os.read(card, LONGEST_FRAME)
            heapq.heappush(kept, (time.monotonic() + delay_s, count, across[card], frame))
        while kept and kept[0][0] <= time.monotonic():
            _, _, card, frame = heapq.heappop(kept)
            try:
                os.write(card, frame)
            except OSError:
                continue  # a full or unplugged card loses frames, as wires do


if __name__ == "__main__":
    host, card, switch, port, delay = sys.argv[1:]
    ends = make_card(host, card), make_card(switch, port)
    sys.stdout.write("made\n")
    sys.stdout.flush()
    copy(*ends, float(delay))
