"""Sizes in bytes as people type them: 1GiB, 512MB, 4096."""

from __future__ import annotations

import re

from serried.errors import InputError
from serried.number import shortened

UNITS: dict[str, int] = {
    "": 1,
    "b": 1,
    **{f"{letter}ib": 1 << 10 * (power + 1) for power, letter in enumerate("kmgt")},
    **{f"{letter}b": 1000 ** (power + 1) for power, letter in enumerate("kmgt")},
}
"""KiB, MiB, GiB and TiB are powers of 1024, kB, MB, GB and TB of 1000; case does not count."""
MOST_BYTES = 1 << 50


def read_bytes(text: str, name: str) -> int:
    """Returns the bytes that a text says; raises InputError naming what would work.

    >>> [read_bytes(text, "bytes") for text in ("1GiB", "1.5 MB", "4096", "512k B")]
    Traceback (most recent call last):
        ...
    serried.errors.InputError: bytes=512k B is not a size in bytes; sizes are 4096, 512MB or 1GiB
    >>> [read_bytes(text, "bytes") for text in ("1GiB", "1.5 MB", "4096")]
    [1073741824, 1500000, 4096]
    """
    found = re.fullmatch(r"\s*([0-9]{1,15})(\.[0-9]{1,9})?\s*([a-zA-Z]*)\s*", text, re.ASCII)
    if not found or found[3].lower() not in UNITS:
        raise InputError(
            "{name}={value} is not a size in bytes; sizes are 4096, 512MB or 1GiB",
            name=name,
            value=shortened(text),
        )
    whole, part, unit = found.groups()
    scale = UNITS[unit.lower()]
    # The part behind the point is a whole number over a power of ten, so that nothing is rounded.
    digits = (part or ".0")[1:]
    size: int = int(whole) * scale + int(digits) * scale // 10 ** len(digits)
    if size > MOST_BYTES:
        raise InputError(
            "{name}={value} is too large; it is at most {most}",
            name=name,
            value=shortened(text),
            most="1024TiB",
        )
    return size
