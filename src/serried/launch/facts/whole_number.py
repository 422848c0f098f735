"""Whole numbers of a text, as large as a computer's word: longer ones are no size of anything."""

from __future__ import annotations

import re

from serried.limits import DIGITS

NUMBER = re.compile(rf"-?\d{{1,{DIGITS.most}}}", re.ASCII)
"""Python itself reads longer ones in a time that grows with their square, up to 4,300 digits."""


def whole(text: str | None) -> int | None:
    """Returns a text as a whole number, or None where it is none, or one of too many digits.

    >>> whole(" 16 "), whole("16a"), whole("9" * 5000)
    (16, None, None)
    """
    bare = (text or "").strip()
    return int(bare) if NUMBER.fullmatch(bare) else None


def count(text: str | None) -> int | None:
    """Returns a text of digits alone as a number, or None where it is something else."""
    return int(text) if text and NUMBER.fullmatch(text) and text[0] != "-" else None
