"""A whole number as a text says it, or the sentence that says why it is none."""

from __future__ import annotations

import re

from serried.errors import InputError

MOST = 2**63 - 1
"""The largest number that is taken anywhere; most have bounds of their own below it."""
LONGEST = 40
"""Letters of a wrong value that its sentence repeats."""


def shortened(text: str) -> str:
    """Returns a value as a sentence can hold it.

    >>> shortened("1" * 50)
    '1111111111111111111111111111111111111111…'
    """
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def whole_number(text: str, name: str, most: int = MOST) -> int:
    """Returns the number that a text says; raises InputError for what is none.

    >>> whole_number(" 16 ", "tp")
    16
    """
    found = re.fullmatch(r"\s*([+-]?)0*([0-9]+)\s*", text)
    if not found:
        raise InputError(
            "{name}={value} is not a whole number; one such as 16 is",
            name=name,
            value=shortened(text),
        )
    # The length comes first: Python does not read numbers of thousands of digits.
    if len(found[2]) > len(str(MOST)) or int(found[2]) > MOST:
        raise InputError(
            "{name}={value} is too large; it is at most {most}",
            name=name,
            value=shortened(text),
            most=most,
        )
    return int(found[1] + found[2])
