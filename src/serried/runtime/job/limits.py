"""Sentences for numbers of a run that are too small or too big, whatever they stand for."""

from __future__ import annotations

import math

from serried.errors import InputError


def require_positive(name: str, value: float) -> None:
    """Raises InputError for a count below one."""
    if value < 1:
        raise InputError("{name}={value}; it is at least 1", name=name, value=value)


def require_above_zero(name: str, value: float) -> None:
    """Raises InputError for a number that is not finite and above zero."""
    if not 0 < value < math.inf:
        raise InputError("{name}={value}; it is above zero", name=name, value=value)


def require_at_least_zero(name: str, value: float) -> None:
    """Raises InputError for a number that is not finite or below zero."""
    if not 0 <= value < math.inf:
        raise InputError("{name}={value}; it is zero or more", name=name, value=value)


def require_share(name: str, value: float) -> None:
    """Raises InputError for a number outside 0 to 1; 1 itself is outside."""
    if not 0 <= value < 1:
        raise InputError("{name}={value}; it is from 0 up to, but not, 1", name=name, value=value)
