"""Event files: the JSON that Chrome, Kineto and other tools write, read piece by piece.

    {"distributedInfo": {…},       kept: all that stands beside the events
     "traceEvents": [{…}, {…}, …]} kept: the events that some reader wants

Plain or gzipped, one object with ``traceEvents`` or a bare array. A profile of several GiB holds a
few thousand events of a pipeline, and takes the memory of those. A file that ends in the middle
(its writer was killed) gives the events up to there. Nothing in it is trusted: numbers that are
none, nesting without end and objects of other shapes are refused or left out.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from serried.errors import InputError
from serried.limits import EVENT_FILE_BYTES, EVENT_FILE_GROWTH, EVENT_LETTERS, EVENTS
from serried.trace.formats.json_stream import JsonStream, LongValueError, NotANumberError
from serried.user_file import opened

Event = dict[str, Any]
_PIECE_BYTES = 1 << 20
_LONGEST_NAME = 255
_SURE_BYTES = 16 << 20
"""So much may a gzipped file hold, however little it takes packed."""

# "12", " -3 ": no more digits than 32 bits have, for reading thousands takes long.
_WHOLE = re.compile(r"\s*-?[0-9]{1,10}\s*")


@dataclass(frozen=True, eq=False)
class TraceEventFile:
    """Holds the events of one file that were asked for, and what stands beside them."""

    path: Path
    events: list[Event]
    about: Event
    """The other keys of the object, none for an array."""
    cut_off: bool
    """Whether the file ends in the middle."""
    num_events: int = 0
    """How many events it has, with those that were not asked for."""
    digest: bytes = b""
    """What files that hold the same have alike."""


def read_event_file(path: Path, wanted: Callable[[Event], bool] | None = None) -> TraceEventFile:
    """Reads ``path``, of whose events those that are ``wanted`` are kept; all by default.

    Raises InputError when it is no JSON, hostile, or holds no events.
    """
    reading = _Reading(path, wanted)
    digest = hashlib.blake2b(digest_size=16)
    with opened(path) as file:
        try:
            reading.read(JsonStream(_hashed(_pieces(path, file), digest), EVENT_LETTERS.most))
        except (OSError, zlib.error) as error:
            raise InputError("{path} cannot be read: {reason}", path=path, reason=error) from error
    return TraceEventFile(
        path, reading.events, reading.about, reading.cut_off, reading.num_events, digest.digest()
    )


class _Reading:
    """Takes what a document holds, event by event."""

    def __init__(self, path: Path, wanted: Callable[[Event], bool] | None) -> None:
        self.events: list[Event] = []
        self.about: Event = {}
        self.cut_off = False
        self.num_events = 0
        self._path = path
        self._wanted = wanted
        self._has_events = False

    def read(self, document: JsonStream) -> None:
        """Reads all of ``document``, or up to where it is none any more."""
        try:
            self._read(document)
        except (json.JSONDecodeError, LongValueError) as error:
            # What was read until then is as good as it was.
            if not self.num_events:
                raise self._unusable(error) from error
            self.cut_off = True
        except (RecursionError, ValueError) as error:
            raise self._unusable(error) from error
        if not self._has_events:
            raise InputError(
                "{path} holds no events; a trace is an array of them, or an object with "
                "traceEvents",
                path=self._path,
            )

    def _read(self, document: JsonStream) -> None:
        first = document.next()
        if first == "[":
            self._take_events(document)
        elif first == "{":
            for key in document.members():
                if key == "traceEvents":
                    self._take_events(document)
                else:
                    self.about[key] = document.value()
        else:
            document.value()
        # As json.loads does: nothing may follow the document.
        if document.next():
            raise json.JSONDecodeError("Extra data", "", 0)

    def _take_events(self, document: JsonStream) -> None:
        # "traceEvents": null, or another value that is no array, holds no events.
        if document.next() != "[":
            document.value()
            return
        self._has_events = True
        for event in document.entries():
            self.num_events += 1
            if isinstance(event, dict) and (self._wanted is None or self._wanted(event)):
                self.events.append(event)
                if len(self.events) > EVENTS.most:
                    raise self._too_many()

    def _unusable(self, error: Exception) -> InputError:
        reason = _reason(error)
        return InputError("{path} is not usable JSON: {reason}", path=self._path, reason=reason)

    def _too_many(self) -> InputError:
        return InputError(
            "{path} holds more than {limit} events of a pipeline, the most that serried reads of "
            "a file; give files of a rank each, or fewer steps",
            path=self._path,
            limit=EVENTS.most,
        )


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return error.msg
    if isinstance(error, NotANumberError):
        return f"{error} is no number"
    if isinstance(error, LongValueError):
        return f"a value in it is longer than {EVENT_LETTERS.most >> 20} MB"
    # Python refuses whole numbers of thousands of digits, whose reading takes quadratic time.
    return "nested too deeply" if isinstance(error, RecursionError) else "a number is too long"


# ----------------------------------------------------------------------- values


def whole(value: object) -> int | None:
    """Returns a count or an index that a file gives as a number or as text, None for neither."""
    # To Python true is the number 1; to a file it is no count. Columns of counts have 32 bits.
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if abs(value) < 2**31 else None
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**31 else None
    return whole(int(value)) if isinstance(value, str) and _WHOLE.fullmatch(value) else None


def natural(name: str) -> list[tuple[int, str]]:
    """Returns a key that sorts numbers in a name by value.

    >>> sorted(["machine10", "machine2", "machine"], key=natural)
    ['machine', 'machine2', 'machine10']
    """
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)
    ]


def nanoseconds(microseconds: object) -> int | None:
    """Returns a time that a file gives in microseconds, None where it is no time."""
    if isinstance(microseconds, bool) or not isinstance(microseconds, int | float):
        return None
    if abs(microseconds) > 9e15:
        return None
    # Exact: as a float, 1.7e15 us (a wall time) has steps of 0.25 us.
    if isinstance(microseconds, int):
        return 1000 * microseconds
    return round(microseconds * 1000)


def printable(name: object) -> str:
    """Returns a host's or a GPU's name as a file gives it, of what can be printed, "" without one.

    >>> printable("node\\x1b-1"), printable(None)
    ('node?-1', '')
    """
    letters = str(name or "")[:_LONGEST_NAME]
    return "".join(letter if letter.isprintable() else "?" for letter in letters)


# ----------------------------------------------------------------------- bytes


def _hashed(pieces: Iterator[bytes], digest: Any) -> Iterator[bytes]:
    for piece in pieces:
        digest.update(piece)
        yield piece


def _pieces(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """Yields what a file holds, unpacked, piece by piece, up to where it was cut off.

    Raises InputError for one that is larger than stated, or that grows, when it is unpacked,
    beyond what any trace does.
    """
    size = os.fstat(file.fileno()).st_size
    is_packed = path.suffix == ".gz"
    source = gzip.GzipFile(fileobj=file) if is_packed else file
    whole_bytes = 0
    while piece := _piece(source):
        whole_bytes += len(piece)
        if whole_bytes > EVENT_FILE_BYTES.most:
            raise InputError(
                "{path} is larger than {limit} GiB; give files of a rank each, or fewer steps",
                path=path,
                limit=EVENT_FILE_BYTES.most >> 30,
            )
        # Looked at piece by piece, so that a file of zeros, which packs a thousandfold, is refused
        # long before it has filled the memory.
        most_bytes = max(_SURE_BYTES, EVENT_FILE_GROWTH.most * size)
        if is_packed and whole_bytes > most_bytes:
            raise InputError(
                "{path} grows more than {times} times when it is unpacked, which no trace "
                "does; it was not read",
                path=path,
                times=EVENT_FILE_GROWTH.most,
            )
        yield piece


def _piece(source: Any) -> bytes:
    try:
        piece: bytes = source.read1(_PIECE_BYTES)
    except EOFError:
        return b""  # its writer was stopped; the events up to there are kept
    return piece
