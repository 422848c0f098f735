"""The pen of a recording: what adds a span to its map, at the cost of little more than packing it.

    add(kind, start, end, …) ── pack ──> | span | span | seal missing …
                                          count ─────> place of the next

Its parts share variables and no object, whose attributes would be a quarter of a span's cost, and
packing finds by itself that the map has ended. A span's seal is packed last and counted after
that: one that an exception or a kill cut short is written over, or not read.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from typing import Protocol

from serried.action import ActionKind


class Add(Protocol):
    """Appends one span; times are CLOCK_MONOTONIC nanoseconds, names by ``Recorder.number_of``.

    Without a ``step`` it is one of the step that began last. Raises EnvironmentProblem when the
    disk is full, unless the Recorder's ``when_full`` says otherwise.
    """

    def __call__(
        self,
        kind: ActionKind,
        start_ns: int,
        end_ns: int,
        stage: int = -1,
        microbatch: int = -1,
        peer: int = -1,
        name: int = 0,
        step: int | None = None,
    ) -> None:
        """Appends the span."""


def pen(
    page: mmap.mmap,
    grow: Callable[[], mmap.mmap | None],
    misfit: Callable[[struct.error], None],
    record: struct.Struct,
    place: int,
) -> tuple[Add, Callable[[int], None], Callable[[], int]]:
    """Returns what adds ``record`` by record from ``place`` on, begins a step, and counts.

    ``page`` is the map; ``grow`` gives a longer one when that is full, or none where the span is
    lost. ``misfit`` is told of a span with a number that no record holds.
    """
    count, now = 0, -1
    pack, size = record.pack_into, record.size

    def add(
        kind: ActionKind,
        start_ns: int,
        end_ns: int,
        stage: int = -1,
        microbatch: int = -1,
        peer: int = -1,
        name: int = 0,
        step: int | None = None,
    ) -> None:
        nonlocal page, place, count
        if step is None:
            step = now
        seal = count + 1
        try:
            pack(page, place, start_ns, end_ns, step, microbatch, peer, stage, kind, name, seal)
        except struct.error as error:
            if place < len(page):
                misfit(error)
                return
            if longer := grow():
                page = longer
                add(kind, start_ns, end_ns, stage, microbatch, peer, name, step)
            return
        count, place = seal, place + size

    def begin_step(step: int) -> None:
        nonlocal now
        now = step

    return add, begin_step, lambda: count
