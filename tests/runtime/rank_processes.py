"""Watches rank processes by pidfd: exact waiting for an exit, without polling or sleeping."""

from __future__ import annotations

import os
import select
from collections.abc import Iterable

PATIENCE_S = 60
"""Far beyond what an exit takes; only a rank that never ends runs into it."""


def watch(pids: Iterable[int]) -> list[int]:
    """Returns a descriptor per living process; it stays with that process for good."""
    return [os.pidfd_open(pid) for pid in pids]


def all_ended(watched: list[int]) -> bool:
    """Waits until every watched process has ended; False when one does not."""
    poll = select.poll()
    left = set(watched)
    for descriptor in watched:
        poll.register(descriptor, select.POLLIN)
    while left:
        ready = poll.poll(PATIENCE_S * 1000)
        if not ready:
            return False
        for descriptor, _ in ready:
            poll.unregister(descriptor)
            left.discard(descriptor)
            os.close(descriptor)
    return True
