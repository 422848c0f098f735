"""The ends of files that a running job writes: each look reads what was added, and no more.

rank-00003.spans   |######## read ########|new|0000 space that was reserved
rank-00003.guard   |header|                     its first page says how far the rank is
rank-3.log         |######## read ########|new lines|half a li
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from serried.diagnose.evidence.log_file import file_speaker
from serried.diagnose.evidence.records.guard_file import (
    FAILED,
    LEFT,
    guard_file,
)
from serried.diagnose.evidence.records.guard_file import (
    HEADER_BYTES as GUARD_HEADER_BYTES,
)
from serried.diagnose.evidence.records.process import DEAD, STOPPED, state_of
from serried.diagnose.watch.look import RankIs
from serried.trace.model.record import (
    HEADER_BYTES,
    LOST_PLACE,
    RECORD_BYTES,
    RecordHeader,
    Records,
    boot_id,
    closed_count,
    complete_records,
    read_header,
)
from serried.user_file import opened

KEPT_STEPS = 24
"""The latest steps whose spans are kept, to tell who is slow in them."""
KEPT_RECORDS = 16_384
FIRST_RECORDS = 16_384 + KEPT_RECORDS
"""Records at a file's end that are read first; a recorder reserves up to 16,384 ahead."""
AT_ONCE = 1_024
"""Records that are read at a time: most looks find fewer new ones."""
LOG_FIRST_BYTES = 1 << 18
LOG_BYTES = 1 << 20
"""The most that is read of one log at one look."""


@dataclass
class SpanTail:
    """Follows one rank's record; ``look`` reads the spans that came since the last call."""

    path: Path
    header: RecordHeader = field(init=False)
    count: int = 0
    """Records so far."""
    step: int = -1
    is_closed: bool = False
    table: Records = field(init=False)
    """The records of the latest steps."""

    _head: bytes = b""
    """What its header says of the run and the process; another's is another file."""

    def __post_init__(self) -> None:
        with opened(self.path) as file:
            self._begin(file.read(HEADER_BYTES), os.fstat(file.fileno()).st_size)

    def _begin(self, head: bytes, size: int) -> None:
        self.header, self._head = read_header(self.path, head), head[:LOST_PLACE]
        self.count = max(0, (size - HEADER_BYTES) // RECORD_BYTES - FIRST_RECORDS)
        self.step, self.table = -1, complete_records(self.path, b"")

    def look(self) -> None:
        """Reads on; raises InputError where the file is gone or damaged."""
        with opened(self.path) as file:
            head = file.read(HEADER_BYTES)
            if head[:LOST_PLACE] != self._head:  # written anew under the same name
                self._begin(head, os.fstat(file.fileno()).st_size)
            self.is_closed = closed_count(head) >= 0
            file.seek(HEADER_BYTES + self.count * RECORD_BYTES)
            new = self._read(file)
        if not len(new):
            return
        self.count += len(new)
        self.step = max(self.step, int(new["step"].max()))
        both: Records = np.concatenate([self.table, new])[-KEPT_RECORDS:]
        self.table = both[both["step"] > self.step - KEPT_STEPS]

    def _read(self, file: BinaryIO) -> Records:
        """Returns the new records, without reading far into the space that is reserved."""
        parts, count = [complete_records(self.path, b"")], 0
        while count < FIRST_RECORDS:
            raw = file.read(AT_ONCE * RECORD_BYTES)
            part = complete_records(self.path, raw, before=self.count + count)
            parts.append(part)
            count += len(part)
            if len(part) < AT_ONCE:
                break
        return np.concatenate(parts)

    @property
    def idle_s(self) -> float:
        """For how long no span has ended, where this machine wrote the file; else 0."""
        if not len(self.table) or self.header.boot != boot_id():
            return 0.0
        last = int(self.table["end_ns"].max())
        return max(0.0, (time.monotonic_ns() - last) / 1e9)


@dataclass
class GuardTail:
    """Follows one rank's guard by the first page of its file, which never grows."""

    path: Path
    record: RecordHeader = field(init=False)
    count: int = 0
    step: int = -1
    attempt: int = 0
    state: RankIs = RankIs.RUNNING
    idle_s: float = 0.0

    def look(self) -> None:
        """Reads it again; raises InputError where it is gone or damaged."""
        with opened(self.path) as file:
            guard = guard_file(self.path, file.read(GUARD_HEADER_BYTES))
        self.record = guard.header.record
        self.count, self.step = guard.num_begun, guard.step
        self.attempt = guard.header.attempt
        is_here = self.record.boot == boot_id()
        if is_here and guard.moved_ns:
            self.idle_s = max(0.0, (time.monotonic_ns() - guard.moved_ns) / 1e9)
        self.state = {LEFT: RankIs.DONE, FAILED: RankIs.FAILED}.get(guard.ended, RankIs.RUNNING)
        # A container of this machine counts processes on its own, under another name.
        if self.state is RankIs.RUNNING and is_here and self.record.host == socket.gethostname():
            letter = state_of(guard.header.pid, guard.header.process_start)
            if letter in DEAD:
                self.state = RankIs.GONE
            elif letter in STOPPED:
                self.state = RankIs.STOPPED


@dataclass
class LogTail:
    """Follows one log by whole lines, from shortly before its end on."""

    path: Path
    number: int = 1
    """That of the next line, counted from where it was begun to be read."""
    place: int = -1
    size: int = 0
    _rest: bytes = b""

    def __post_init__(self) -> None:
        self.speaker = file_speaker(str(self.path))

    def look(self) -> tuple[int, list[bytes]]:
        """Returns the number of the first new line and the lines.

        Raises InputError where it is gone.
        """
        with opened(self.path) as file:
            self.size = os.fstat(file.fileno()).st_size
            if self.place < 0 or self.size < self.place:  # it was emptied, or written anew
                self.place = max(0, self.size - LOG_FIRST_BYTES) if self.place < 0 else 0
                self._rest = b""
            file.seek(self.place)
            raw = file.read(LOG_BYTES)
        self.place += len(raw)
        lines = (self._rest + raw).split(b"\n")
        self._rest = lines.pop()[-LOG_BYTES:]
        first, self.number = self.number, self.number + len(lines)
        return first, lines
