"""Numbers as people type them, kept exact: 10, 0.601 and 1/3 are fractions, one or several."""

from __future__ import annotations

import re
from fractions import Fraction

from serried.errors import InputError
from serried.pipeline.costs import Number


def read_numbers(option: str, text: str) -> tuple[Number, ...]:
    """Reads numbers apart by commas; ``option`` is what the sentence calls them.

    >>> read_numbers("--forward", "10, 1/3")
    (10, Fraction(1, 3))

    Raises InputError when one is no number. One that is not finite is returned as it is; the
    costs refuse it by their own name.
    """
    return tuple(_number(option, word.strip()) for word in text.split(","))


_LONG_EXPONENT = re.compile(r"e[+-]?0*\d{3,}$", re.IGNORECASE)
"""An exponent so long that the exact number could fill the memory."""


def _number(option: str, word: str) -> Number:
    try:
        # Fraction('') raises ValueError, so too long an exponent is refused by the sentence below.
        exact = Fraction("" if _LONG_EXPONENT.search(word) else word)
    except (ValueError, ZeroDivisionError) as error:
        if word.lower().lstrip("+-") in {"nan", "inf", "infinity"}:
            return float(word)
        raise InputError(
            "{option} takes numbers, such as 10, 0.5 or 1/3; it got '{word}'",
            option=option,
            word=word,
        ) from error
    return int(exact) if exact.denominator == 1 else exact
