"""Durations and sizes as people read them."""

from __future__ import annotations

QUANTITY = r"[-+~<>(]*\d[\d.,]* (?:[num]?s|min|h|%|[kMGT]?B|[KMGT]iB|TFLOP)(?:/\w+)*(?!\w)"
"""A number and its unit, between which no line is broken."""


def duration_text(duration_ns: float) -> str:
    """Prints nanoseconds with three figures, in the unit that keeps them short.

    >>> [duration_text(t) for t in (0, 850, 12_345, 45_600_000, 7.5e9, 754e9)]
    ['0 ns', '850 ns', '12.3 us', '45.6 ms', '7.50 s', '754 s']
    """
    for unit, scale in (("ns", 1.0), ("us", 1e3), ("ms", 1e6)):
        if abs(duration_ns) < 999.5 * scale:
            return _three_figures(duration_ns / scale, unit)
    return _three_figures(duration_ns / 1e9, "s")


def bytes_text(size_bytes: int) -> str:
    """Prints bytes with three figures, in powers of 1000.

    >>> [bytes_text(n) for n in (40, 655_360, 122_100_000, 3_000_000_000)]
    ['40 B', '655 kB', '122 MB', '3.00 GB']
    """
    for unit, scale in (("B", 1.0), ("kB", 1e3), ("MB", 1e6)):
        if size_bytes < 999.5 * scale:
            return _three_figures(size_bytes / scale, unit)
    return _three_figures(size_bytes / 1e9, "GB")


def memory_text(size_bytes: int) -> str:
    """Prints bytes of memory with three figures, in powers of 1024, as memory is made and sold.

    >>> [memory_text(n) for n in (40, 655_360, 122_100_000, 12_000_000_000)]
    ['40 B', '640 KiB', '116 MiB', '11.2 GiB']
    """
    for unit, scale in (("B", 1.0), ("KiB", 2.0**10), ("MiB", 2.0**20)):
        if size_bytes < 999.5 * scale:
            return _three_figures(size_bytes / scale, unit)
    return _three_figures(size_bytes / 2.0**30, "GiB")


def difference_text(difference_ns: float) -> str:
    """Prints a difference of times with its sign.

    >>> difference_text(1_200_000), difference_text(-2e9)
    ('+1.20 ms', '-2.00 s')
    """
    return f"{'-' if difference_ns < 0 else '+'}{duration_text(abs(difference_ns))}"


def speed_text(bytes_per_s: float) -> str:
    """Prints bytes per second with three figures.

    >>> speed_text(1.27e9)
    '1.27 GB/s'
    """
    return f"{bytes_text(round(bytes_per_s))}/s"


def _three_figures(value: float, unit: str) -> str:
    # Rounding may add a figure, so the next form takes over just below: 9.996 is 10.0 and 99.96 is
    # 100.
    if unit in ("ns", "B") or abs(value) >= 99.95:
        return f"{value:.0f} {unit}"
    return f"{value:.1f} {unit}" if abs(value) >= 9.995 else f"{value:.2f} {unit}"
