"""Texts that people write and no job logs: programs, pages, settings and tables.

They may speak of all that a log holds, such as the errors that a program looks for, and are no log.

>>> authored("import os\\n\\nraise RuntimeError('CUDA out of memory')\\n")
<Authored.PROGRAM: 1>
>>> authored("step 1 loss 2.5\\nRuntimeError: CUDA out of memory\\n") is None
True
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from itertools import islice

_SOURCE = re.compile(
    r"^(?:(?:import|export|from|package|using|namespace|template|typedef|struct) ?[\w.{*<]|"
    r"(?:async )?(?:def|function|class|fn|func) \w|(?:const|let|var|static|extern) \w|"
    r"#(?:include|pragma|ifndef|define) ?[\w<\"]|[})\]]+[;,)]*$|//|/\*| \*[ /]|@\w)",
    re.M,
)
_BEGINS_SOURCE = re.compile(
    r'(?://|/\*|import |from [\w.]+ import |export |package \w|#include|#pragma|#ifndef|"""|'
    r"'use strict'|\"use strict\")"
)
_SOURCE_LINES = 2
"""So many lines of a program make a text one."""
_FENCE = re.compile(r"^```", re.M)
_LINK = re.compile(r"\]\((?:https?://|#|[\w./-]+\.\w+\))")
_FENCES, _LINKS = 2, 3
"""So many marks of Markdown make a text a page of it."""
_LETTERS = 1 << 16
"""So much of a text is looked at."""
_DELIMITERS = ",\t;"
_TABLE_ROWS = 50
_SPACES = re.compile(r"[ \t]+")
_NAME = re.compile(r"\d{0,3}[^\W\d][\w./()%#-]*(?: [\w./()%#-]+){0,2}")
"""What stands over a column: a word, or three."""
_LOSS_HEADS = ("loss", "train_loss", "lm loss", "lm_loss", "train/loss", "eval_loss")


class Authored(Enum):
    """Says what a text is that somebody wrote."""

    PROGRAM = auto()
    PAGE = auto()
    """Markdown."""
    HTML = auto()
    SETTINGS = auto()
    """TOML, which may hold any words."""
    TABLE = auto()


def authored(text: str) -> Authored | None:
    """Returns what a text is that somebody wrote; None where a job may have logged it."""
    begin = text.lstrip()[:_LETTERS]
    if begin[:15].lower().startswith(("<!doctype html", "<html")):
        return Authored.HTML
    if begin.startswith("#!"):
        return None
    if _is_program(begin):
        return Authored.PROGRAM
    if len(_FENCE.findall(begin)) >= _FENCES or len(_LINK.findall(begin)) >= _LINKS:
        return Authored.PAGE
    if columns_of(begin):
        return Authored.TABLE
    return Authored.SETTINGS if _is_settings(text) else None


def columns_of(text: str) -> tuple[str, ...]:
    """Returns the names over the columns of a table of numbers or words; none where it is none.

    >>> columns_of("step,loss\\n1,2.5\\n2,2.4\\n"), columns_of("step loss\\n1 2.5\\n")
    (('step', 'loss'), ('step', 'loss'))
    """
    import csv  # the page is answered before it is wanted, as are the parsers below

    told = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    lines = list(islice(told, _TABLE_ROWS))
    if len(lines) < 2:
        return ()
    for delimiter in _DELIMITERS:
        rows = list(csv.reader(lines, delimiter=delimiter))
        if _is_even(rows) and any(_numbers_below(rows)):
            return _named(rows[0])
    # Commands such as kubectl print words between spaces, of which some tell of trouble.
    rows = [_SPACES.split(line.strip()) for line in lines]
    return _named(rows[0]) if _is_even(rows) and all(_numbers_below(rows)) else ()


def is_of_losses(columns: tuple[str, ...]) -> bool:
    """Tells whether a table says what the loss was, by the names over its columns."""
    return any(name.strip().lower() in _LOSS_HEADS for name in columns)


def _named(head: list[str]) -> tuple[str, ...]:
    """Returns the names of a first row, which must be names and each another."""
    names = tuple(cell.strip().lstrip("#").strip() for cell in head)
    is_named = all(_NAME.fullmatch(name[:80]) for name in names)
    return names if is_named and max(Counter(names).values()) == 1 else ()


def _is_even(rows: Sequence[Sequence[str]]) -> bool:
    """Tells whether rows have as many cells as the first; a sample may cut the last."""
    return {len(row) for row in rows[:-1]} == {len(rows[0])} and len(rows[0]) > 1


def _numbers_below(rows: Sequence[Sequence[str]]) -> Iterator[bool]:
    """Yields of each column whether numbers stand below its name."""
    return (_are_numbers(cells) for cells in zip(*rows[1:], strict=False))


def _are_numbers(cells: Iterable[str]) -> bool:
    """Tells whether the cells of a column are numbers, where they hold anything."""
    told = [cell for cell in cells if cell.strip()]
    try:
        return bool([float(cell) for cell in told])
    except ValueError:
        return False


def _is_program(begin: str) -> bool:
    if not _BEGINS_SOURCE.match(begin) and len(_SOURCE.findall(begin)) < _SOURCE_LINES:
        return False
    if _BEGINS_SOURCE.match(begin) and len(_SOURCE.findall(begin)) >= _SOURCE_LINES:
        return True
    return _is_python(begin)


def _is_python(text: str) -> bool:
    """Tells whether a text is Python that imports, defines or begins by saying what it holds."""
    import ast

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        return False
    told = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    is_told = any(isinstance(each, told) for each in tree.body)
    return is_told or ast.get_docstring(tree) is not None


def _is_settings(text: str) -> bool:
    import tomllib

    try:
        return bool(tomllib.loads(text))
    except (ValueError, RecursionError):
        return False
