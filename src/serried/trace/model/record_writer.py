"""The writer of a record: spans appended to a rank's file, safe to lose the process at any instant.

    add(kind, start, end, …) ── pack ──> | span | span | seal missing …
                                          count ─────> place of the next

What adds a span shares variables and no object, whose attributes would be a quarter of a span's
cost, and packing finds by itself that the map has ended. A span's seal is packed last and counted
after that: one that an exception or a kill cut short is written over, or not read.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from io import FileIO
from pathlib import Path
from typing import NoReturn, Protocol

from serried.action import ActionKind
from serried.errors import EnvironmentProblem, InputError
from serried.trace.model.record import (
    COUNT,
    COUNT_PLACE,
    HEADER_BYTES,
    LARGEST_NAME,
    LOST_PLACE,
    MAGIC,
    NAMES_SUFFIX,
    RECORD,
    RECORD_BYTES,
    RecordHeader,
    file_name,
)
from serried.trace.model.traffic import CollectiveMove, TrafficWriter

_GROWTHS = (16_384, 4_096, 1_024, 256, 64)
"""Records that a file grows by: as many as there is space for."""


class Add(Protocol):
    """Appends one span; times are CLOCK_MONOTONIC nanoseconds, names by ``RecordWriter.number_of``.

    Without a ``step`` it is one of the step that began last. Raises EnvironmentProblem when the
    disk is full, unless the RecordWriter's ``when_full`` says otherwise.
    """

    def __call__(
        self,
        kind: ActionKind,
        start_ns: int,
        end_ns: int,
        stage: int = -1,
        microbatch: int = -1,
        peer: int = -1,
        name: int = 0,
        step: int | None = None,
    ) -> None:
        """Appends the span."""


class RecordWriter:
    """Appends spans of one rank to its file; safe to lose the process at any instant.

    One thread at a time may add. Space is reserved before it is written, so that a full disk
    is an error here and not the signal that a write to an unbacked map would be. A file whose
    header finds no space is removed again, so that it can be tried anew.
    """

    add: Add
    begin_step: Callable[[int], None]
    """Says which step spans belong to that are added without one."""

    def __init__(self, folder: Path, header: RecordHeader) -> None:
        """Creates the file of ``header.rank`` in ``folder``.

        Raises InputError where one stands, EnvironmentProblem where none can be written.
        """
        self.path = folder / file_name(header.rank)
        text = json.dumps(asdict(header)).encode()
        start = MAGIC + struct.pack("<I", len(text)) + text
        if len(start) > LOST_PLACE:
            raise InputError("the header of {path} is too long to record", path=self.path)
        self._map = self._begun(start.ljust(HEADER_BYTES, b"\0"))
        self._names: dict[str, int] = {}
        self._names_bytes = 0
        self._traffic = TrafficWriter(self.path)
        self._capacity = self._lost = 0
        self.when_full: Callable[[EnvironmentProblem], None] = _raised
        """What ``add`` does with a span that finds no space: it raises, unless told otherwise."""
        self.when_misfit: Callable[[struct.error], None] = _raised
        """What it does with one that has a number no record holds: it raises, too."""
        self.add, self.begin_step, self._count = _pen(
            self._map, self._grow, lambda error: self.when_misfit(error), RECORD, HEADER_BYTES
        )

    def _begun(self, header: bytes) -> mmap.mmap:
        """Creates the file with its header and returns its map; or leaves none."""
        try:
            # "x", so that no recording that stands there is ever written over.
            self._file = self.path.open("x+b", buffering=0)
        except FileExistsError as error:
            raise InputError(
                "{path} holds an earlier recording; choose another folder or remove it",
                path=self.path,
            ) from error
        except OSError as error:
            raise unwritable(self.path, error) from error
        try:
            _write_whole(self._file, header)
            return mmap.mmap(self._file.fileno(), 0)
        except OSError as error:
            with suppress(OSError), self._file:
                self.path.unlink()
            raise unwritable(self.path, error) from error

    @property
    def count(self) -> int:
        """How many spans it has kept."""
        return self._count()

    @property
    def is_removed(self) -> bool:
        """Whether its file stands in no folder any more, and so will be gone once it is closed."""
        return not self._file.closed and os.fstat(self._file.fileno()).st_nlink == 0

    def lose(self) -> None:
        """Counts a span that found no space, in the header, whose space is there."""
        if not self._file.closed:
            self._lost += 1
            COUNT.pack_into(self._map, LOST_PLACE, self._lost)

    def add_moves(self, moves: Sequence[CollectiveMove]) -> None:
        """Keeps what collectives moved as parts of the span that was added last.

        May raise OSError when the disk is full.
        """
        if count := self._count():
            self._traffic.add(count, moves)

    def number_of(self, name: str) -> int:
        """Returns the number of ``name``, which is kept before the first span that has it.

        Raises EnvironmentProblem when the disk is full.
        """
        number = self._names.get(name)
        if number is None:
            number = len(self._names) + 1
            if number > LARGEST_NAME:
                return 0
            self._keep_name((json.dumps(name) + "\n").encode())
            self._names[name] = number
        return number

    def _keep_name(self, line: bytes) -> None:
        """Appends a name's line, over what an earlier try may have left of another."""
        path = self.path.with_suffix(NAMES_SUFFIX)
        try:
            with path.open("r+b" if self._names else "wb", buffering=0) as file:
                file.truncate(self._names_bytes)
                file.seek(self._names_bytes)
                _write_whole(file, line)
        except OSError as error:
            raise unwritable(path, error) from error
        self._names_bytes += len(line)

    def close(self) -> None:
        """Cuts the file to what was recorded, writes the count and closes it; at once or twice.

        Raises EnvironmentProblem where the disk fails; the file is closed all the same.
        """
        if self._file.closed:
            return
        self._traffic.close()
        COUNT.pack_into(self._map, COUNT_PLACE, self._count() + 1)
        self._map.close()
        try:
            with self._file:
                self._file.truncate(HEADER_BYTES + self._count() * RECORD_BYTES)
        except OSError as error:
            raise unwritable(self.path, error) from error

    def _grow(self) -> mmap.mmap | None:
        """Returns the map of a longer file; none where ``when_full`` was told of a full disk."""
        problem = OSError()
        for records in _GROWTHS:
            try:
                longer = self._longer(self._capacity + records)
            except OSError as error:
                problem = error
                continue
            self._map.close()
            self._map = longer
            self._capacity += records
            return longer
        self.when_full(unwritable(self.path, problem))
        return None

    def _longer(self, capacity: int) -> mmap.mmap:
        """Returns the map of the file made longer, as it was where there is no space for that."""
        size = HEADER_BYTES + capacity * RECORD_BYTES
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._file.fileno(), 0, size)
            self._file.truncate(size)
            return mmap.mmap(self._file.fileno(), size)
        except OSError:
            with suppress(OSError):
                self._file.truncate(HEADER_BYTES + self._capacity * RECORD_BYTES)
            raise


def make_folder(folder: Path) -> None:
    """Makes a folder for recordings; raises EnvironmentProblem where that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error


def unwritable(path: Path, error: OSError) -> EnvironmentProblem:
    """Returns what is said where the disk does not take a recording."""
    return EnvironmentProblem(
        "{path} cannot be recorded: {reason}; choose a folder with space that can be written",
        path=path,
        reason=error.strerror or error,
    )


def _write_whole(file: FileIO, data: bytes) -> None:
    """Writes all of ``data``; raises OSError where the disk takes a part of it only."""
    if (file.write(data) or 0) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _raised(problem: Exception) -> NoReturn:
    raise problem


def _pen(
    page: mmap.mmap,
    grow: Callable[[], mmap.mmap | None],
    misfit: Callable[[struct.error], None],
    record: struct.Struct,
    place: int,
) -> tuple[Add, Callable[[int], None], Callable[[], int]]:
    """Returns what adds ``record`` by record from ``place`` on, begins a step, and counts.

    ``page`` is the map; ``grow`` gives a longer one when that is full, or none where the span is
    lost. ``misfit`` is told of a span with a number that no record holds.
    """
    count, now = 0, -1
    pack, size = record.pack_into, record.size

    def add(
        kind: ActionKind,
        start_ns: int,
        end_ns: int,
        stage: int = -1,
        microbatch: int = -1,
        peer: int = -1,
        name: int = 0,
        step: int | None = None,
    ) -> None:
        nonlocal page, place, count
        if step is None:
            step = now
        seal = count + 1
        try:
            pack(page, place, start_ns, end_ns, step, microbatch, peer, stage, kind, name, seal)
        except struct.error as error:
            # Packing fails at the end of the map, too. Before that, a number does not fit.
            if place < len(page):
                misfit(error)
                return
            if longer := grow():
                page = longer
                add(kind, start_ns, end_ns, stage, microbatch, peer, name, step)
            return
        count, place = seal, place + size

    def begin_step(step: int) -> None:
        nonlocal now
        now = step

    return add, begin_step, lambda: count
