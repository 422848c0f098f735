"""Columns of a report's answers written as differences, which pack into far fewer bytes.

    rank of each track   0 0 1 1 2 2 …    ->  0 0 1 0 1 0 …      each less the one before it
    peer of each span    4096 -1 4097 …   ->  4096 -1 4096 …     each less its rank; -1 is nobody
    source of an entry   -1 816 817 818   ->  -1 815 815 815     each less its place; -1 is none

A column is written so only where that packs smaller, and ``static/base/kept.js`` brings it
back to the bit.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serried.views.web.wire.payload import SCHEMA

RANKS_MOST = 2**30 - 1
"""Ranks are whole numbers up to this one; what lies below 0 stands for none."""
WORTH = 64
"""Bytes that a column must save, for its place takes some as well."""
BEFORE, PLACES = -1, -2
"""What each number is less where it is not a rank: the one before it, or its own place."""
_TYPES = {"u16": "<u2", "i32": "<i4", "f64": "<f8"}

_Numbers = NDArray[Any]


class ColumnPlace(NamedTuple):
    """Holds where a column stands that is written as differences."""

    type: str
    """u16, i32 or f64."""
    at: int
    """The byte of the answer where it begins."""
    length: int
    ranks_at: int
    """Where the ranks begin that each is less; BEFORE or PLACES where it is less something else."""


def as_differences(body: bytes) -> tuple[bytes, list[ColumnPlace]]:
    """Returns an answer with its columns as differences where that is shorter, and their places.

    An answer that is no payload of columns comes back as it is.

    >>> from serried.views.web.wire.payload import pack
    >>> rising = 7 * np.arange(1000, dtype=np.int32)
    >>> body, places = as_differences(pack({}, {"rank": rising}))
    >>> [(each.type, each.length, each.ranks_at) for each in places]
    [('i32', 1000, -1)]
    >>> np.frombuffer(body, "<i4", 3, places[0].at).tolist()
    [0, 7, 7]
    """
    written, places = bytearray(body), []
    ranks: dict[int, tuple[int, _Numbers]] = {}
    for name, kind, at, column in _columns(body):
        least, chosen = len(zlib.compress(column.tobytes(), 1)) - WORTH, None
        for ranks_at, coded in _codings(kind, column, ranks):
            size = len(zlib.compress(coded.tobytes(), 1))
            if size < least:
                least, chosen = size, (ranks_at, coded)
        if chosen:
            places.append(ColumnPlace(kind, at, len(column), chosen[0]))
            written[at : at + column.nbytes] = chosen[1].tobytes()
        if name == "rank" and kind == "i32":
            ranks[len(column)] = (at, column)
    return bytes(written), places


def _columns(body: bytes) -> Iterator[tuple[str, str, int, _Numbers]]:
    """Yields name, type, first byte and numbers of each column that may be written so."""
    length = int.from_bytes(body[:4], "little")
    if not body[4:].startswith(f'{{"schema":"{SCHEMA}"'.encode()):
        return
    for each in json.loads(body[4 : 4 + length])["columns"]:
        if each["type"] in _TYPES and each["length"]:
            at = 4 + length + each["offset"]
            column = np.frombuffer(body, _TYPES[each["type"]], each["length"], at)
            yield each["name"], each["type"], at, column


def _codings(
    kind: str, column: _Numbers, ranks: dict[int, tuple[int, _Numbers]]
) -> Iterator[tuple[int, _Numbers]]:
    """Yields the ways to write a column that lead back to it, each with where its ranks begin."""
    steps = column.copy()
    with np.errstate(invalid="ignore"):
        steps[1:] -= column[:-1]
        back = np.cumsum(steps, dtype=column.dtype)
    # Sums of doubles may round; one that does not lead back stays as it is.
    if back.tobytes() == column.tobytes():
        yield BEFORE, steps
    bases = [(PLACES, np.arange(len(column), dtype="<i4")), *filter(None, [ranks.get(len(column))])]
    for at, base in bases if kind == "i32" else ():
        if max(column.max(), base.max()) <= RANKS_MOST and base.min() >= 0:
            yield at, np.where(column < 0, column, (column - base) & RANKS_MOST).astype("<i4")
