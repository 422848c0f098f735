"""The TOML files beside this module: read on first use, their lines joined into prose."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TypeAlias

from serried.views.sentences import is_wide, read_catalogue, require_language

Entry: TypeAlias = "str | list[Entry] | dict[str, Entry]"
"""What a file holds: text, and lists and tables of it."""


@cache
def part(name: str) -> Mapping[str, Entry]:
    """Returns the contents of ``name``.toml."""
    import tomllib  # no short answer needs it: what a table of groups says is in ``pairs``

    text = (Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def pairs(name: str) -> Mapping[str, str]:
    """Returns the contents of ``name``.toml, whose lines are all ``"text" = "another"``."""
    return read_catalogue(Path(__file__).with_name(f"{name}.toml"))


def localized(name: str, lang: str) -> Mapping[str, Entry]:
    """Returns a part in ``lang``; raises InputError for a language there is no text in."""
    return part(f"{name}.{require_language(lang)}")


def table(entry: Entry) -> Mapping[str, Entry]:
    """Returns an entry that the file must write as a table."""
    assert isinstance(entry, dict), f"not a table: {entry!r}"
    return entry


def items(entry: Entry) -> list[Entry]:
    """Returns an entry that the file must write as a list."""
    assert isinstance(entry, list), f"not a list: {entry!r}"
    return entry


def line(entry: Entry) -> str:
    """Returns an entry that the file must write as one paragraph of text."""
    (only,) = paragraphs(entry)
    return only


def paragraphs(entry: Entry) -> tuple[str, ...]:
    r"""Returns the paragraphs of a text: parted by blank lines, their own lines joined.

    >>> paragraphs("one\ntwo\n\nthree\n")
    ('one two', 'three')
    """
    assert isinstance(entry, str) and entry.strip(), f"not a text: {entry!r}"
    return tuple(_joined(block.splitlines()) for block in re.split(r"\n{2,}", entry.strip()))


def _joined(lines: list[str]) -> str:
    """Joins lines by a space, but not where Chinese runs on or a full-width mark stands.

    >>> _joined(["每个", "rank", "一份，", "all-reduce", "之后"])
    '每个 rank 一份，all-reduce 之后'
    """
    text = lines[0]
    for following in lines[1:]:
        text += ("" if _runs_on(text[-1], following[0]) else " ") + following
    return text


def _runs_on(left: str, right: str) -> bool:
    marks = [is_wide(each) and not each.isalnum() for each in (left, right)]
    return any(marks) or (is_wide(left) and is_wide(right))
