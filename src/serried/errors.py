"""The tree of serried's own errors: what was asked, what was found, what would work.

    SerriedError            exit code 1: a check or a diagnosis found something
    ├── InputError          exit code 2: an option, a file or a request that cannot be
    └── EnvironmentProblem  exit code 3: a missing extra, port or device

A sentence is a template and its values, kept apart so that the workbench can say the
same sentence in another language (``views/sentences``).

>>> str(InputError("tp={tp} does not divide {world} ranks", tp=3, world=64))
'tp=3 does not divide 64 ranks'
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Self, TypeAlias

Last: TypeAlias = Literal["", "and", "or"]
"""What joins the last word of a list: a comma alone, or one of these."""


class SerriedError(Exception):
    """Tells a failure so that the user can read it: one sentence and an exit code."""

    exit_code = 1

    def __init__(self, template: str, /, **values: object) -> None:
        super().__init__(template)
        self.template = template
        self.values = values

    def __str__(self) -> str:
        return self.template.format(**self.values)


class InputError(SerriedError):
    """Says that what was asked cannot be, and what could."""

    exit_code = 2


class EnvironmentProblem(SerriedError):
    """Says that this machine lacks something, and how to get it."""

    exit_code = 3


class Listed(str):
    """Writes a list as English does, and keeps its items, so that ``views/sentences`` joins anew.

    >>> Listed(("tp", "pp", "dp"), last="and")
    'tp, pp and dp'
    """

    items: tuple[object, ...]
    last: Last

    def __new__(cls, items: tuple[object, ...], last: Last = "") -> Self:
        """Joins ``items`` by commas, the last by the word ``last`` where one is given."""
        words = [str(item) for item in items]
        if last and len(words) > 1:
            made = super().__new__(cls, f"{', '.join(words[:-1])} {last} {words[-1]}")
        else:
            made = super().__new__(cls, ", ".join(words))
        made.items, made.last = items, last
        return made

    def __getnewargs__(self) -> tuple[tuple[object, ...], Last]:  # type: ignore[override]
        """Returns what makes the same list again, as pickle asks for it."""
        return self.items, self.last


def listed(items: Iterable[object], *, limit: int = 12, last: Last = "") -> Listed:
    """Joins ``items`` by commas, the first ``limit`` of them; ``last`` is "and" or "or".

    >>> listed([1, 2, 4])
    '1, 2, 4'
    >>> listed(["torch", "rich"], last="and")
    'torch and rich'
    >>> listed(range(100), limit=3)
    '0, 1, 2, …'
    """
    words = tuple(items)
    return Listed(words[:limit] + (("…",) if len(words) > limit else ()), last)


def nearest(name: str, known: Iterable[str]) -> Listed:
    """Returns the names that a mistyped one may mean, the likeliest first; "" where none may be.

    >>> nearest("megatrn", ["megatron", "internlm"]), nearest("1fb1", ["gpipe", "1f1b"])
    ('megatron', '1f1b')
    >>> nearest("zigzag", ["gpipe", "1f1b"])
    ''
    """
    from difflib import get_close_matches

    asked = name.strip().lower().replace("_", "-")
    return listed(get_close_matches(asked, list(known), n=3, cutoff=0.7), last="or")
