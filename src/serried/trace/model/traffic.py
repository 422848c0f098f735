"""What collectives moved: a file beside a rank's spans, with bytes and group of each, in order.

    rank-00003.traffic
    ├── 8 bytes           magic and version
    ├── 16 bytes, text    0 0 group length     a group that is met first: its ranks, as 0,1,2,3
    └── 16 bytes x n      span kind group size_bytes

``span`` is the number, from 1, of the span in the rank's record that the collective is a part of:
the gather of a layer that a backward waits for, or the one span in which all gradients are reduced.
Sizes are those of nccl-tests: what all ranks have in the end, or put in. A recording without this
file, as serried made until 2026-11, has spans alone; a reader without it reads spans as before.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from serried.action import ActionKind
from serried.errors import InputError
from serried.limits import TRACE_RANKS

SUFFIX = ".traffic"
MAGIC = b"srdtraf\x01"
RECORD = struct.Struct("<IHHq")
LARGEST_GROUP = 65_535
"""How many groups a rank's file can name; collectives of those beyond are not kept."""

_DTYPE = np.dtype([("span", "<u4"), ("kind", "<u2"), ("group", "<u2"), ("size", "<i8")])
MoveTable = np.ndarray[Any, np.dtype[np.void]]
"""Moves as rows of the file; a span's number counts from 1."""
_KINDS = np.array(list(ActionKind))
_PIECE_BYTES = 1 << 20
_LONGEST_GROUP = 8 * TRACE_RANKS.most
_MOST_BYTES = 1 << 50


@dataclass(frozen=True)
class CollectiveMove:
    """Describes one collective that a rank took part in."""

    kind: ActionKind
    """ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE, BROADCAST or ALL_TO_ALL."""
    ranks: tuple[int, ...]
    """The global ranks of its group."""
    size_bytes: int
    span: int = -1
    """The place of its span in the rank's record, from 0; -1 where it is in none."""


class TrafficWriter:
    """Appends what collectives moved; a file is made when there is something to say."""

    def __init__(self, record: Path) -> None:
        """Stands beside ``record``, the file of a rank's spans."""
        self._path = record.with_suffix(SUFFIX)
        self._file: FileIO | None = None
        self._groups: dict[tuple[int, ...], int] = {}

    def add(self, span: int, moves: Sequence[CollectiveMove]) -> None:
        """Appends the moves of the span whose number, from 1, is ``span``: all of them, or none.

        Raises OSError where the disk has no space for them.
        """
        if self._file is None:
            self._file = self._path.open("wb", buffering=0)
        groups = self._groups.copy()
        start = b"" if self._file.tell() else MAGIC
        _append(self._file, start + b"".join(_packed(groups, span, move) for move in moves))
        self._groups = groups

    def close(self) -> None:
        """Closes the file, at once or twice."""
        if self._file is not None:
            self._file.close()


def _packed(groups: dict[tuple[int, ...], int], span: int, move: CollectiveMove) -> bytes:
    """Returns the bytes of a move, after those of its group where ``groups`` has no number yet."""
    before = b""
    if move.ranks not in groups:
        if len(groups) == LARGEST_GROUP:
            return b""
        groups[move.ranks] = len(groups) + 1
        name = ",".join(map(str, move.ranks)).encode()
        before = RECORD.pack(0, 0, groups[move.ranks], len(name)) + name
    return before + RECORD.pack(span, move.kind, groups[move.ranks], move.size_bytes)


def _append(file: FileIO, data: bytes) -> None:
    """Writes all of ``data``, or takes back what the disk took of it and raises OSError."""
    end = file.tell()
    if (file.write(data) or 0) < len(data):
        file.truncate(end)
        file.seek(end)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def read_traffic(record: Path) -> tuple[CollectiveMove, ...]:
    """Returns what is told beside ``record``, in order; nothing where nothing is.

    What a killed rank left half written at the end is left out. Raises InputError for a file that
    no recorder wrote.
    """
    path = record.with_suffix(SUFFIX)
    if not path.is_file():
        return ()
    groups: list[tuple[int, ...]] = []
    with path.open("rb") as file:
        return tuple(
            CollectiveMove(ActionKind(kind), groups[group - 1], size, span - 1)
            for table in moves_in(path, file, groups)
            for span, kind, group, size in table.tolist()
        )


def moves_in(path: object, file: BinaryIO, groups: list[tuple[int, ...]]) -> Iterator[MoveTable]:
    """Yields the moves in ``file``, piece by piece, and appends their groups to ``groups``.

    Group ``g`` of a row is ``groups[g - 1]``. Raises InputError as ``read_traffic`` does.
    """
    start = file.read(len(MAGIC))
    if len(start) < len(MAGIC) and MAGIC.startswith(start):
        return  # its writer found a full disk, or was killed, as it began
    if start != MAGIC:
        raise InputError("{path} does not say what collectives moved", path=path)
    raw, place = b"", len(MAGIC)
    while more := file.read(_PIECE_BYTES):
        raw += more
        used = 0
        while True:
            count = (len(raw) - used) // RECORD.size
            table: MoveTable = np.frombuffer(raw, dtype=_DTYPE, count=count, offset=used)
            # A group stands before its first move, so that few rows are of groups.
            named = np.flatnonzero(table["kind"] == 0)
            moves = table[: named[0]] if len(named) else table
            _require_known(path, moves, len(groups), place + used)
            yield moves
            used += moves.nbytes
            end = _group_end(path, table[len(moves)], groups, place + used) if len(named) else 0
            if not end or used + end > len(raw):
                break
            groups.append(_ranks(path, raw[used + RECORD.size : used + end], place + used))
            used += end
        raw, place = raw[used:], place + used


def no_moves() -> MoveTable:
    """Returns a table of no moves."""
    return np.zeros(0, dtype=_DTYPE)


def _group_end(path: object, row: np.void, groups: Sequence[object], place: int) -> int:
    """Returns how many bytes a group takes; raises InputError where it is none."""
    if int(row["group"]) != len(groups) + 1 or not 0 < int(row["size"]) <= _LONGEST_GROUP:
        raise _damaged(path, place)
    return RECORD.size + int(row["size"])


def _ranks(path: object, name: bytes, place: int) -> tuple[int, ...]:
    try:
        ranks = tuple(map(int, name.split(b",")))
    except ValueError as error:
        raise _damaged(path, place) from error
    if not 0 <= min(ranks) <= max(ranks) < 2**31:
        raise _damaged(path, place)
    return ranks


def _require_known(path: object, moves: MoveTable, num_groups: int, place: int) -> None:
    """Raises InputError for a move of no kind, of a group that was not named, or of no size."""
    group = moves["group"]
    is_known = np.isin(moves["kind"], _KINDS) & (group > 0) & (group <= num_groups)
    is_known &= (moves["size"] >= 0) & (moves["size"] <= _MOST_BYTES)
    if not is_known.all():
        raise _damaged(path, place + RECORD.size * int(np.argmin(is_known)))


def _damaged(path: object, place: int) -> InputError:
    return InputError(
        "{path} is damaged, or of a newer serried: at byte {place} is no collective",
        path=path,
        place=place,
    )
