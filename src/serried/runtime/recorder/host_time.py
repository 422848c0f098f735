"""Host time: which host this process is on, and the two clocks that its ranks share."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from serried.trace.model.record import boot_id


@dataclass(frozen=True)
class HostTime:
    """Says which host this process is on, and reads its clocks.

    Another host, or other clocks, may be put in its place: a machine whose containers share a
    kernel but not a name, a hardware clock, or a skew that a test draws.
    """

    now_ns: Callable[[], int] = time.monotonic_ns
    """What spans and pings are stamped with, in nanoseconds; it never goes back."""
    wall_ns: Callable[[], int] = time.time_ns
    """Nanoseconds since 1970, to place the recordings of several hosts roughly."""
    name: str = field(default_factory=socket.gethostname)
    boot: str = field(default_factory=boot_id)
