"""Clocks of the recorder: marks are taken on the hot path and become nanoseconds off it.

    host     a mark is the time itself                        F |----|        add at once
    device   a mark is an event on the stream that is current F |--------|    add when it is done
                       launch ^  the host runs on             drained at a later step's begin

A device is waited for once, when its clock is made; every step then begins with an event that
later ones are measured from, since a device tells times between events as 32-bit floats.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import torch

from serried.runtime.host_time import HostTime

Mark = object
"""A moment, as one clock keeps it: nanoseconds, or an event of a device."""


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

    def wait(self, mark: Mark) -> None:
        """Waits until a mark has passed."""


class HostClock:
    """Is the host's clock, whose marks are times and always passed."""

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

    def wait(self, mark: Mark) -> None:
        """Does nothing, as marks have passed."""


class DeviceClock:
    """Is a CUDA device's clock, tied to the host's when it is made; never run yet on a device."""

    def __init__(self, host: HostTime | None = None) -> None:
        self._zero = _event()
        self._zero.record()
        self._zero.synchronize()
        self._zero_ns = (host or HostTime()).now_ns()

    @property
    def mark(self) -> Callable[[], Mark]:
        """What records an event on the current stream."""
        return _recorded

    def has_passed(self, mark: Mark) -> bool:
        """Asks the device, without waiting."""
        assert isinstance(mark, torch.cuda.Event)
        passed: bool = mark.query()  # type: ignore[no-untyped-call]
        return passed

    def time_ns(self, mark: Mark) -> int:
        """Returns the time between the zero event and the mark, on the host's clock."""
        assert isinstance(mark, torch.cuda.Event)
        since_ms: float = self._zero.elapsed_time(mark)
        return self._zero_ns + round(since_ms * 1e6)

    def move_zero(self, mark: Mark) -> None:
        """Measures from ``mark`` on, so that differences stay short and exact."""
        assert isinstance(mark, torch.cuda.Event)
        self._zero_ns, self._zero = self.time_ns(mark), mark

    def wait(self, mark: Mark) -> None:
        """Waits for the device, at the end of a recording only."""
        assert isinstance(mark, torch.cuda.Event)
        mark.synchronize()


def clock_here(host: HostTime | None = None) -> Clock:
    """Returns the device's clock where CUDA is in use by this process, else the host's."""
    in_use = torch.cuda.is_available() and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return DeviceClock(host) if in_use else HostClock(host)


def _recorded() -> Mark:
    event = _event()
    event.record()
    return event


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
