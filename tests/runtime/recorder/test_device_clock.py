"""A device's clock that runs at another rate is kept beside the host's, and never goes back."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from serried.runtime.recorder.device_clock import DeviceClockModel

SLOW = -14e-6
"""The rate of an H100's clock beside its host's."""


def told(rate: float, *, steps_s: list[float], wide_ns: int, seed: int = 0) -> list[float]:
    """Returns how far off times are at each step's end, in nanoseconds, compared as steps begin."""
    draw = random.Random(seed)
    model = DeviceClockModel(*around(0, wide_ns, draw))
    host_ns, zero_ns, errors, times = 0.0, 0.0, [], []
    for step_s in steps_s:
        before_ns, host_ns = host_ns, host_ns + step_s * 1e9
        for part in (0.25, 0.5, 1.0):
            at_ns = before_ns + part * (host_ns - before_ns)
            times.append(model.time_ns((at_ns * (1 + rate) - zero_ns) / 1e6))
        errors.append(times[-1] - host_ns)
        since_ms = (host_ns * (1 + rate) - zero_ns) / 1e6
        model.compare(since_ms, *around(host_ns, wide_ns, draw))
        model.move_zero(since_ms)
        zero_ns = host_ns * (1 + rate)
    assert all(one <= after for one, after in pairwise(times))
    return errors


def around(at_ns: float, wide_ns: int, draw: random.Random) -> tuple[int, int]:
    low_ns = int(at_ns - draw.random() * wide_ns)
    return low_ns, low_ns + wide_ns


def test_a_slow_clock_is_caught_within_a_few_seconds_and_kept() -> None:
    errors = told(SLOW, steps_s=[1.0] * 120, wide_ns=20_000)
    alone = DeviceClockModel(0, 0)
    assert alone.time_ns(120e3 * (1 + SLOW)) - 120e9 < -1_600_000  # left to itself
    assert max(abs(error) for error in errors) < 45_000
    assert max(abs(error) for error in errors[10:]) < 20_000


@given(
    rate=st.floats(-1e-4, 1e-4),
    step_s=st.floats(0.05, 5.0),
    wide_ns=st.integers(1_000, 60_000),
    seed=st.integers(0, 1000),
)
def test_any_crystal_is_known_as_well_as_a_comparison_tells(
    rate: float, step_s: float, wide_ns: int, seed: int
) -> None:
    comparisons = int(max(1.0, 0.5 / step_s) * 30)
    errors = told(rate, steps_s=[step_s] * comparisons, wide_ns=wide_ns, seed=seed)
    settled = errors[comparisons // 2 :]
    assert all(abs(error) < 1.5 * wide_ns + 1_000 for error in settled)


def test_a_clock_that_stood_still_is_caught_up_with_without_a_jump() -> None:
    model = DeviceClockModel(0, 1_000)
    for second in range(1, 60):
        lost_ns = 1_000_000 if second > 10 else 0
        at_ns = second * 1_000_000_000 + lost_ns
        model.compare(1e3, at_ns, at_ns + 1_000)
        model.move_zero(1e3)
    assert abs(model.time_ns(0.0) - at_ns) < 100_000


def test_what_makes_up_for_an_error_ends_though_no_comparison_follows() -> None:
    draw, errors = random.Random(0), []
    for _ in range(50):
        steps_s = [1.0] * 20 + [60.0]  # a pause to validate, to save
        errors.append(told(SLOW, steps_s=steps_s, wide_ns=8_000, seed=draw.randrange(10_000))[-1])
    assert max(abs(error) for error in errors) < 100_000
