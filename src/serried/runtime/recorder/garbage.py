"""Garbage collections of Python that a recorded step was held up by, as spans of a name.

    gc.callbacks    start ──> stop        kept if it took a millisecond or more, some
                                          hundred nanoseconds of cost for each collection

A collection may run anywhere, in the middle of a span's writing too, so what it took is only
noted, and written as the next step begins.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable
from typing import Any

from serried.runtime.recorder.tracer import Tracer
from serried.trace.measure.ranks.garbage import COLLECTION

LEAST_NS = 1_000_000
"""A collection that is shorter is not kept: hundreds of such come in every step."""
MOST_NOTED = 1_000
"""How many are kept of a step."""


class Collections:
    """Notes the garbage collections of this process while it is put in."""

    def __init__(self, tracer: Tracer, now_ns: Callable[[], int]) -> None:
        """Prepares it: ``now_ns`` is the host's clock, by which spans are stamped."""
        self._tracer, self._now_ns = tracer, now_ns
        self._began = 0
        self._noted: deque[tuple[int, int]] = deque(maxlen=MOST_NOTED)

    def put_in(self) -> None:
        """Notes collections from here on; at once or twice."""
        if self._heard not in gc.callbacks:
            gc.callbacks.append(self._heard)

    def take_out(self) -> None:
        """Notes none any more; at once or twice."""
        if self._heard in gc.callbacks:
            gc.callbacks.remove(self._heard)
        self._began = 0

    def keep(self) -> None:
        """Keeps what was noted as spans of the step that runs, or forgets it where it has none."""
        while self._noted:
            start, end = self._noted.popleft()
            if self._tracer.is_on:
                self._tracer.keep_named(COLLECTION, start, end)

    def _heard(self, phase: str, _: dict[str, Any]) -> None:
        if phase == "start":
            self._began = self._now_ns()
        elif self._began:
            end = self._now_ns()
            if end - self._began >= LEAST_NS:
                self._noted.append((self._began, end))
