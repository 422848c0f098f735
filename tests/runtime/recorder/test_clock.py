"""Marks of a GPU are told on the host's clock, however long a recording lasts."""

from __future__ import annotations

import time

import pytest
import torch

from serried.runtime.recorder.clock import DeviceClock, MonotonicClock, clock_here
from tests.runtime.rank_group import needs_gpu

SECONDS, SLACK_NS = 5, 100_000


def test_a_process_without_a_gpu_marks_by_the_host_s_clock() -> None:
    clock = clock_here() if not torch.cuda.is_available() else MonotonicClock()
    before, mark, after = time.monotonic_ns(), clock.mark(), time.monotonic_ns()
    assert clock.has_passed(mark)
    assert before <= clock.time_ns(mark) <= after


@pytest.fixture
def clock() -> DeviceClock:
    torch.zeros(1, device="cuda")
    return DeviceClock()


@needs_gpu
def test_a_device_s_clock_stays_with_the_host_s(clock: DeviceClock) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        low = time.monotonic_ns()
        mark = clock.mark()
        clock.wait(mark)
        high = time.monotonic_ns()
        assert low - SLACK_NS <= clock.time_ns(mark) <= high + SLACK_NS
        clock.compare()
        clock.move_zero(mark)
        time.sleep(0.05)


@needs_gpu
def test_marks_are_those_of_the_stream_that_is_current(clock: DeviceClock) -> None:
    busy: torch.cuda.Stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(busy):
        torch.cuda._sleep(200_000_000)  # type: ignore[no-untyped-call]
        late = clock.mark()
    early = clock.mark()
    clock.wait(early)
    assert not clock.has_passed(late)
    clock.wait(late)
    assert clock.time_ns(early) < clock.time_ns(late)
