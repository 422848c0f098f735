"""Clocks of the recorder: marks are taken on the hot path and become nanoseconds off it.

    host     a mark is the time itself                        F |----|        add at once
    device   a mark is an event on the stream that is current F |--------|    add when it is done
                       launch ^  the host runs on             drained at a later step's begin

Every step begins with an event that later ones are measured from, since a device tells times
between events as 32-bit floats. Its clock is compared with the host's when it is made and once a
second, by an event on a stream of its own that has nothing to wait for (``device_clock``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import cache
from typing import Protocol

import torch

from serried.runtime.recorder.device_clock import DeviceClockModel
from serried.runtime.recorder.host_time import HostTime
from serried.runtime.recorder.torch_private import current_stream_number
from serried.runtime.recorder.tracer import Mark

FIRST_COMPARISONS = 8
"""Comparisons of two clocks when the second is made, of which the closest counts."""
EVERY_NS = 1_000_000_000
"""Time between comparisons."""
PATIENCE_NS = 100_000
"""Time after which one is given up, until the next step."""


class Clock(Protocol):
    """Takes marks, and later says which have passed and when that was."""

    @property
    def mark(self) -> Callable[[], Mark]:
        """What marks this moment."""

    def has_passed(self, mark: Mark) -> bool:
        """Tells whether a mark's time is known by now."""

    def time_ns(self, mark: Mark) -> int:
        """Returns a passed mark's CLOCK_MONOTONIC nanoseconds."""

    def move_zero(self, mark: Mark) -> None:
        """Measures later marks from this passed one."""

    def compare(self) -> None:
        """Compares itself with the host's clock, where it is another and that is due."""

    def wait(self, mark: Mark) -> None:
        """Waits until a mark has passed."""


class MonotonicClock:
    """Marks by the host's clock: its marks are times, and always passed."""

    def __init__(self, host: HostTime | None = None) -> None:
        self._now_ns = host.now_ns if host else time.monotonic_ns

    @property
    def mark(self) -> Callable[[], Mark]:
        """Returns what returns the clock's nanoseconds: one call, for it is on the hot path."""
        return self._now_ns

    def has_passed(self, mark: Mark) -> bool:
        """Says yes: a time of the past is known."""
        return True

    def time_ns(self, mark: Mark) -> int:
        """Returns the mark, which is a time."""
        assert isinstance(mark, int)
        return mark

    def move_zero(self, mark: Mark) -> None:
        """Does nothing, as times are absolute."""

    def compare(self) -> None:
        """Does nothing, as it is the host's clock."""

    def wait(self, mark: Mark) -> None:
        """Does nothing, as marks have passed."""


class DeviceClock:
    """Marks by a CUDA device's clock, kept beside the host's."""

    def __init__(self, host: HostTime | None = None) -> None:
        self._now_ns = (host or HostTime()).now_ns
        self._beside = _stream_beside(torch.cuda.current_device())
        comparisons = [self._compared(math.inf) for _ in range(FIRST_COMPARISONS)]
        self._zero, low_ns, high_ns = min(comparisons, key=lambda each: each[2] - each[1])
        self._model = DeviceClockModel(low_ns, high_ns)
        self._due_ns = high_ns + EVERY_NS
        self._mark = _marker()

    @property
    def mark(self) -> Callable[[], Mark]:
        """What records an event on the current stream."""
        return self._mark

    def has_passed(self, mark: Mark) -> bool:
        """Asks the device, without waiting."""
        if isinstance(mark, int):
            return True
        assert isinstance(mark, torch.cuda.Event)
        passed: bool = mark.query()  # type: ignore[no-untyped-call]
        return passed

    def time_ns(self, mark: Mark) -> int:
        """Returns when the mark was on the host's clock; one of before CUDA's start is a time."""
        if isinstance(mark, int):
            return mark
        return self._model.time_ns(self._since_zero_ms(mark))

    def move_zero(self, mark: Mark) -> None:
        """Measures from ``mark`` on, so that differences stay short and exact."""
        assert isinstance(mark, torch.cuda.Event)
        self._model.move_zero(self._since_zero_ms(mark))
        self._zero = mark

    def compare(self) -> None:
        """Reads both clocks at one moment, if that is due and the device answers at once."""
        if self._now_ns() < self._due_ns:
            return
        event, low_ns, high_ns = self._compared(PATIENCE_NS)
        if high_ns - low_ns <= PATIENCE_NS:
            self._model.compare(self._since_zero_ms(event), low_ns, high_ns)
            self._due_ns = high_ns + EVERY_NS

    def wait(self, mark: Mark) -> None:
        """Waits for the device, at the end of a recording only."""
        if isinstance(mark, torch.cuda.Event):
            mark.synchronize()

    def _compared(self, patience_ns: float) -> tuple[torch.cuda.Event, int, int]:
        """Returns an event, and between which of the host's times it was if it has passed."""
        event, low_ns = _event(), self._now_ns()
        event.record(self._beside)
        while True:
            has_passed, high_ns = self.has_passed(event), self._now_ns()
            if has_passed or high_ns - low_ns > patience_ns:
                return event, low_ns, high_ns

    def _since_zero_ms(self, mark: Mark) -> float:
        assert isinstance(mark, torch.cuda.Event)
        since_ms: float = self._zero.elapsed_time(mark)
        return since_ms


def clock_here(host: HostTime | None = None) -> Clock:
    """Returns the device's clock where CUDA is in use by this process, else the host's."""
    in_use = torch.cuda.is_available() and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return DeviceClock(host) if in_use else MonotonicClock(host)


@cache
def _stream_beside(device: int) -> torch.cuda.Stream:
    """Returns a stream for comparisons: one for good, as torch has few and gives them in turn."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def _marker() -> Callable[[], Mark]:
    """Returns what records an event on the current stream of the device that is current now.

    Of the microseconds that takes, most are torch's to find the stream: it is looked up by number.
    """
    number_of, device = current_stream_number, torch.cuda.current_device()
    streams: dict[int, torch.cuda.Stream] = {}

    def current() -> torch.cuda.Stream:
        if number_of is None:
            return torch.cuda.current_stream(device)
        number = number_of(device)
        found = streams.get(number)
        if found is None:
            found = streams[number] = torch.cuda.current_stream(device)
        return found

    def recorded() -> Mark:
        event = _event()
        event.record(current())
        return event

    return recorded


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
