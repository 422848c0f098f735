"""What each setting of a run says of itself: its option, its bounds, its help in both languages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from serried.errors import InputError
from serried.mesh.sizes import SIZES

Bound = Callable[[str, float], None]
"""Raises InputError for a number that a setting cannot be; one of those below."""
KEY = "option"


@dataclass(frozen=True)
class RunOption:
    """Says how the command line asks for one field of a run's settings."""

    field: str
    word: str
    """The option's name, and the setting's in sentences about it."""
    default: Any
    help: dict[str, str]
    section: str = ""
    """The heading that it stands under; "" for the one of its class."""
    bound: Bound | None = None
    metavar: str | None = None

    @property
    def flag(self) -> str:
        """The option as it is written."""
        return f"--{self.word.replace('_', '-')}"


def setting(
    default: Any,
    *,
    en: str,
    zh: str,
    word: str = "",
    section: str = "",
    bound: Bound | None = None,
    metavar: str | None = None,
) -> Any:
    """Returns a field of settings that the command line asks for; ``word`` where called otherwise.

    ``default`` may be a class, of which each settings get a value of their own.
    """
    told = {
        "word": word,
        "help": {"en": en, "zh": zh},
        "section": section,
        "bound": bound,
        "metavar": metavar,
    }
    if isinstance(default, type):
        return field(default_factory=default, metadata={KEY: told})
    return field(default=default, metadata={KEY: told})


def size_setting(name: str, section: str) -> Any:
    """Returns the field of a size of the table, with the default and the help that it has there."""
    size = SIZES[name]
    return setting(size.default, en=size.help["en"], zh=size.help["zh"], section=section)


def options_of(settings: Any) -> Iterator[RunOption]:
    """Yields the options of a settings class, or of a value of it, in the order of its fields."""
    for each in fields(settings):
        if KEY in each.metadata:
            told = dict(each.metadata[KEY])
            told["word"] = told["word"] or each.name
            yield RunOption(each.name, default=each.default, **told)


def check_bounds(settings: Any) -> None:
    """Raises InputError for the first setting that is out of its bounds; None is within all."""
    for each in options_of(settings):
        value = getattr(settings, each.field)
        if each.bound and value is not None:
            each.bound(each.word, value)


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
