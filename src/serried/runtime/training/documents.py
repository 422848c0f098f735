"""The documents that a data file holds: rows of a table, lines of JSON, or the text itself.

    notes.csv     one document a row, of the column that --text-key names
    notes.jsonl   one document a line, of the key that --text-key names
    notes.txt     one document a file

What kind a file is, its name's end says. A file is read as it comes and never kept whole.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from serried.errors import InputError, listed
from serried.limits import DOCUMENT
from serried.runtime.job.data_file import LINES, TABLES

PIECE = 1 << 20
"""Letters of a plain text that are handed on at once; the piece ends where a line does."""


def documents(file: Path, key: str) -> Iterator[tuple[str, bool]]:
    """Yields the text of ``file`` in order, and with each piece whether a document ends there.

    Raises InputError where the file has no such column or key, a row is broken, or it is no text
    in UTF-8.
    """
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            kind = file.suffix.lower()
            if kind in TABLES:
                yield from ((each, True) for each in _rows(opened, file, key, TABLES[kind]))
            elif kind in LINES:
                yield from ((each, True) for each in _lines(opened, file, key))
            else:
                yield from _pieces(opened)
    except UnicodeDecodeError as error:
        raise InputError(
            "{path} is not text in UTF-8: {reason}; save it as UTF-8",
            path=file,
            reason=error.reason,
        ) from error
    except OSError as error:
        raise InputError(
            "{path} cannot be read: {reason}", path=file, reason=error.strerror
        ) from error


def _pieces(opened: TextIO) -> Iterator[tuple[str, bool]]:
    """Yields a text in pieces that end with a line; one line that is longer is cut where it is."""
    while piece := opened.read(PIECE):
        piece += opened.readline(PIECE)
        yield piece, False
    yield "", True


def _rows(opened: TextIO, file: Path, key: str, delimiter: str) -> Iterator[str]:
    csv.field_size_limit(DOCUMENT.most)
    rows = csv.reader(opened, delimiter=delimiter)
    try:
        titles = next(rows, [])
        if not titles:
            return
        if key not in titles:
            raise InputError(
                "{path} has no column '{key}'; its columns: {found}; name one with --text-key",
                path=file,
                key=key,
                found=listed(titles),
            )
        column = titles.index(key)
        for row in rows:
            if len(row) > column:
                yield row[column]
            elif row:
                raise InputError(
                    "line {line} of {path} has {found} columns, and '{key}' is number {wanted}",
                    line=rows.line_num,
                    path=file,
                    found=len(row),
                    key=key,
                    wanted=column + 1,
                )
    except csv.Error as error:
        raise InputError(
            "line {line} of {path} is no row of a table: {reason}",
            line=rows.line_num,
            path=file,
            reason=error,
        ) from error


def _lines(opened: TextIO, file: Path, key: str) -> Iterator[str]:
    number = 0
    while line := opened.readline(DOCUMENT.most):
        number += 1
        if len(line) == DOCUMENT.most:
            raise InputError(
                "line {line} of {path} is longer than {limit:,} letters, the most that is read",
                line=number,
                path=file,
                limit=DOCUMENT.most,
            )
        if not line.strip():
            continue
        read = _parsed(line, file, number)
        text = read.get(key)
        if not isinstance(text, str):
            raise InputError(
                "line {line} of {path} has no text under '{key}'; its keys: {found}; name one "
                "with --text-key",
                line=number,
                path=file,
                key=key,
                found=listed(read),
            )
        yield text


def _parsed(line: str, file: Path, number: int) -> dict[str, Any]:
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        raise InputError(
            "line {line} of {path} is no JSON object; each line is to be one, with its text under "
            "a key",
            line=number,
            path=file,
        )
    return read
