"""The one door for a file that a user names: it is a file with an end, and not larger than stated.

A device has no end (``/dev/zero``), a named pipe may have no writer, and a file of another kind
may be larger than the memory. None of them is read; one sentence says which it is. A pipe that
is open in this process already, as ``<(command)`` and ``/dev/stdin`` are, has its writer and is
read like a file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EINVAL
from pathlib import Path
from typing import BinaryIO

from serried.errors import InputError
from serried.finding import Sentence

_OPEN_HERE = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")
"""Where a process finds what it has open itself."""


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Opens a file for reading bytes, as ``with opened(path) as file``.

    Raises InputError for what is no file with an end, and where it, or a part of it, cannot be
    read.
    """
    try:
        with os.fdopen(_descriptor(path), "rb") as file:
            yield file
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError("{path} cannot be read: {reason}", path=path, reason=reason) from error


def read_bytes(path: Path, limit_bytes: int, what: Sentence) -> bytes:
    """Returns what a file holds; ``what`` says in a word what is expected of it.

    Raises InputError as ``opened`` does, and for a file of more than ``limit_bytes``, of which
    no more than that is read.
    """
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > limit_bytes else file.read(limit_bytes + 1)
    require_size(max(size, len(data)), limit_bytes, path, what)
    return data


def read_text(path: Path, limit_bytes: int, what: Sentence) -> str:
    """Returns a file of UTF-8, with or without its mark; other bytes become U+FFFD.

    Raises InputError as ``read_bytes`` does.
    """
    return read_bytes(path, limit_bytes, what).decode("utf-8-sig", "replace")


def require_size(size_bytes: int, limit_bytes: int, path: object, what: Sentence) -> None:
    """Raises InputError where a file is larger than what is read of its kind."""
    if size_bytes > limit_bytes:
        raise InputError(
            "{path} holds more than {limit} MB, the most that serried reads of {what}",
            path=path,
            limit=limit_bytes >> 20,
            what=what,
        )


def _descriptor(path: Path) -> int:
    """Opens ``path`` without waiting for a writer, and looks again at what it has opened."""
    try:
        _require_file(path, path.stat().st_mode)
    except ValueError as error:
        raise OSError(EINVAL, "a byte of zero in a name") from error
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _require_file(path, os.fstat(descriptor).st_mode)
        os.set_blocking(descriptor, True)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _require_file(path: Path, mode: int) -> None:
    """Raises InputError unless ``mode`` is that of a file, or of a pipe that is open here."""
    if stat.S_ISREG(mode):
        return
    if stat.S_ISFIFO(mode):
        # A shell's <(zcat file) opens such a pipe for this process, and its writer ends it.
        if str(path).startswith(_OPEN_HERE):
            return
        raise InputError(
            "{path} is a named pipe, which may never end; write what it brings to a file and "
            "give that",
            path=path,
        )
    if stat.S_ISDIR(mode):
        raise InputError("{path} is a folder, where a file is asked for", path=path)
    raise InputError(
        "{path} is a device or a socket, which has no end as a file has; give a file", path=path
    )
