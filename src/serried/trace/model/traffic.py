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
from collections.abc import Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from serried.action import ActionKind
from serried.errors import InputError

SUFFIX = ".traffic"
MAGIC = b"srdtraf\x01"
RECORD = struct.Struct("<IHHq")
LARGEST_GROUP = 65_535
"""How many groups a rank's file can name; collectives of those beyond are not kept."""


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
    raw = path.read_bytes()
    if len(raw) < len(MAGIC) and MAGIC.startswith(raw):
        return ()  # its writer found a full disk, or was killed, as it began
    if not raw.startswith(MAGIC):
        raise InputError("{path} does not say what collectives moved", path=path)
    found: list[CollectiveMove] = []
    groups: dict[int, tuple[int, ...]] = {}
    place = len(MAGIC)
    while place + RECORD.size <= len(raw):
        begin = place
        span, kind, group, size = RECORD.unpack_from(raw, place)
        place += RECORD.size
        try:
            if kind == 0:
                if size < 1:
                    raise ValueError(size)
                name = raw[place : place + size]
                place += len(name)
                if len(name) == size:
                    groups[group] = tuple(map(int, name.split(b",")))
            else:
                found.append(CollectiveMove(ActionKind(kind), groups[group], size, span - 1))
        except (ValueError, KeyError) as error:
            raise InputError(
                "{path} is damaged, or of a newer serried: at byte {place} is no collective",
                path=path,
                place=begin,
            ) from error
    return tuple(found)
