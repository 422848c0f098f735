"""Where a device's clock stands on its host's: a line that bends and never jumps.

    host │           ┬╱
         │        ╱╱  ┴      ┬ a comparison: the device's clock was read between these two
         │    ┬╱             ┴ times of the host's
         │  ╱ ┴
         └────────────────── device

Crystals differ by millionths: an H100's ran 14 millionths slow beside its host's, which made
0.77 ms in 54 s (22 November 2026). Times between two zeros lie on one line, and the next line
begins where that one ends, so that spans keep their order whatever a comparison says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

LEARNT_NS = 0.5e9
"""Time after one comparison from which the next tells more than its own width."""
CAUGHT_UP = 2.0
"""In how many times the time between comparisons an error is to be gone."""
FASTEST = 5e-4
"""The largest rate, either way: of a clock that is far off, and of catching up."""


@dataclass(frozen=True)
class _Rate:
    """Says how much faster the host's clock is, and for how long more so, to make up an error."""

    mean: float = 0.0
    extra: float = 0.0
    until_ns: float = 0.0

    def after(self, passed_ns: float) -> _Rate:
        """Returns what is left of it."""
        return replace(self, until_ns=max(0.0, self.until_ns - passed_ns))


class DeviceClockModel:
    """Turns a device's milliseconds since its zero into the host's nanoseconds.

    ``low_ns`` and ``high_ns`` are the host's times between which the first zero was.

    >>> model = DeviceClockModel(900, 1100)
    >>> model.time_ns(2.0)
    2001000
    """

    def __init__(self, low_ns: int, high_ns: int) -> None:
        self._zero_ns = self._first_ns = (low_ns + high_ns) / 2
        self._until_zero_ns = 0.0  # of the device's own time, since the first zero
        self._compared_ns = 0.0
        self._rate = self._next_rate = _Rate()

    def time_ns(self, since_zero_ms: float) -> int:
        """Returns the host's nanoseconds at a time of the device's clock."""
        return round(self._at_ns(since_zero_ms * 1e6))

    def move_zero(self, since_zero_ms: float) -> None:
        """Measures later times from this one on, at the rate that is known by now."""
        passed_ns = since_zero_ms * 1e6
        self._zero_ns = self._at_ns(passed_ns)
        self._until_zero_ns += passed_ns
        # A new rate begins at a new zero, so that no time told before changes; the one in use goes
        # on with what is left of its extra.
        is_new = self._next_rate is not self._rate
        self._rate = self._next_rate = self._next_rate if is_new else self._rate.after(passed_ns)

    def compare(self, since_zero_ms: float, low_ns: int, high_ns: int) -> None:
        """Learns that the device's clock stood there between two times of the host's.

        The rate is the mean one since the first comparison, and as much more as brings an error
        to nothing that is larger than the comparison's own.
        """
        passed_ns = self._until_zero_ns + since_zero_ms * 1e6
        if passed_ns - self._compared_ns < LEARNT_NS:
            return
        middle_ns = (low_ns + high_ns) / 2
        rate = (middle_ns - self._first_ns) / passed_ns - 1
        here_ns = self._at_ns(since_zero_ms * 1e6)
        until_ns = CAUGHT_UP * (passed_ns - self._compared_ns)
        is_off = not low_ns <= here_ns <= high_ns
        extra = (middle_ns - here_ns) / until_ns if is_off else 0.0
        self._next_rate = _Rate(_limited(rate), _limited(extra), until_ns)
        self._compared_ns = passed_ns

    def _at_ns(self, since_zero_ns: float) -> float:
        rate = self._rate
        extra_ns = rate.extra * min(since_zero_ns, rate.until_ns)
        return self._zero_ns + since_zero_ns * (1 + rate.mean) + extra_ns


def _limited(rate: float) -> float:
    return min(max(rate, -FASTEST), FASTEST)
