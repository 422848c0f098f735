"""Event files: the JSON that Chrome, Kineto and other tools write, read with care.

Plain or gzipped, one object with ``traceEvents`` or a bare array. A file that ends in the
middle (its writer was killed) gives the events up to there. Nothing in it is trusted: numbers
that are none, nesting without end and objects of other shapes are refused or left out.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from serried.errors import InputError

Event = dict[str, Any]
SUFFIXES = (".json", ".json.gz", ".pt.trace.json", ".pt.trace.json.gz")
"""How the names of event files end."""

_LARGEST_BYTES = 4 * 2**30
_SURE_BYTES = 16 * 2**20
_MOST_GROWTH = 200
"""Traces shrink to a fifth, at best to a thirtieth."""

_WHOLE = re.compile(r"\s*-?[0-9]{1,10}\s*")


@dataclass(frozen=True, eq=False)
class TraceEventFile:
    """Holds the events of one file and what stands beside them."""

    path: Path
    events: list[Event]
    about: Event
    """The other keys of the object, none for an array."""
    cut_off: bool
    """Whether the file ends in the middle."""


def read_event_file(path: Path) -> TraceEventFile:
    """Reads ``path``; raises InputError when it is no JSON, hostile, or holds no events."""
    text = _text(path)
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
        cut_off = False
    except json.JSONDecodeError as error:
        document, cut_off = _rescued(path, text, error), True
    except (RecursionError, ValueError) as error:
        raise InputError(
            "{path} is not usable JSON: {reason}", path=path, reason=_reason(error)
        ) from error
    about: Event = {}
    events = document
    if isinstance(document, dict):
        about = {key: value for key, value in document.items() if key != "traceEvents"}
        events = document.get("traceEvents")
    if not isinstance(events, list):
        raise InputError(
            "{path} holds no events; a trace is an array of them, or an object with traceEvents",
            path=path,
        )
    return TraceEventFile(path, [each for each in events if isinstance(each, dict)], about, cut_off)


def whole(value: object) -> int | None:
    """Returns a count or an index that a file gives as a number or as text, None for neither."""
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
    if isinstance(microseconds, int):
        return 1000 * microseconds
    return round(microseconds * 1000)


class _NotANumberError(ValueError):
    pass


def _refuse_constant(name: str) -> NoReturn:
    raise _NotANumberError(name)


def _reason(error: Exception) -> str:
    if isinstance(error, _NotANumberError):
        return f"{error} is no number"
    # Python refuses whole numbers of thousands of digits, whose reading takes quadratic time.
    return "nested too deeply" if isinstance(error, RecursionError) else "a number is too long"


def _text(path: Path) -> str:
    try:
        size = path.stat().st_size
        if size > _LARGEST_BYTES:
            raise _too_large(path)
        if path.suffix != ".gz":
            return path.read_text(encoding="utf-8", errors="replace")
        return b"".join(_unpacked(path, size)).decode("utf-8", "replace")
    except (OSError, zlib.error) as error:
        raise InputError("{path} cannot be read: {reason}", path=path, reason=error) from error


def _unpacked(path: Path, size: int) -> Iterator[bytes]:
    """Yields what a gzipped file holds, piece by piece, up to where it was cut off.

    Raises InputError for one that grows beyond what any trace does: it would fill the memory.
    """
    whole = 0
    with gzip.open(path) as file:
        while piece := _piece(file):
            whole += len(piece)
            if whole > _LARGEST_BYTES:
                raise _too_large(path)
            if whole > _SURE_BYTES and whole > _MOST_GROWTH * size:
                raise InputError(
                    "{path} grows more than {times} times when it is unpacked, which no trace "
                    "does; it was not read",
                    path=path,
                    times=_MOST_GROWTH,
                )
            yield piece


def _piece(file: gzip.GzipFile) -> bytes:
    try:
        return file.read1(1 << 20)
    except EOFError:
        return b""  # its writer was stopped; the events up to there are kept


def _too_large(path: Path) -> InputError:
    return InputError(
        "{path} is larger than 4 GiB; give files of a rank each, or fewer steps", path=path
    )


def _rescued(path: Path, text: str, error: json.JSONDecodeError) -> Event:
    """Returns the events of a file that was cut off, one by one up to the cut, and its head."""
    start = text.find('"traceEvents"')
    at = text.find("[", max(start, 0))
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    events: list[Event] = []
    while at >= 0:
        at += 1
        while at < len(text) and text[at] in " \r\n\t,":
            at += 1
        try:
            event, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        events.append(event)
        at -= 1
    if not events:
        raise InputError(
            "{path} is not usable JSON: {reason}", path=path, reason=error.msg
        ) from error
    return {**_head(text[: max(start, 0)]), "traceEvents": events}


def _head(text: str) -> Event:
    """Returns the keys that stand before the events: Kineto's rank and the base of its times."""
    try:
        head = json.loads(text.rstrip().removesuffix(",") + "}", parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return {}
    return head if isinstance(head, dict) else {}
