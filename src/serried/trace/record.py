"""The record format: one crash-safe file per rank, 40 bytes per span, appended through mmap.

    rank-00003.spans
    ├── 4096 bytes   magic, length, JSON header: run, rank, host, clock, job
    └── 40 bytes x n start_ns end_ns step microbatch peer stage kind 0 seal

The kernel keeps what was written to the map when the process is killed. ``seal`` is the
record's number from 1, written last: a record without it was never completed, and reading
stops there. Times are CLOCK_MONOTONIC nanoseconds, one clock for all processes of a host;
the header holds a (monotonic, wall) pair to place them beside other hosts.
"""

from __future__ import annotations

import json
import mmap
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from serried.errors import InputError
from serried.span import ActionKind, Spans

MAGIC = b"serried\x01"
HEADER_BYTES = 4096
_RECORD = struct.Struct("<qqiiiiHHI")
_FIELDS = "start_ns:i8 end_ns:i8 step:i4 microbatch:i4 peer:i4 stage:i4 kind:u2 zero:u2 seal:u4"
_DTYPE = np.dtype([(name, f"<{kind}") for name, kind in (f.split(":") for f in _FIELDS.split())])
_GROWTH_RECORDS = 16_384


@dataclass(frozen=True)
class Job:
    """Describes the job that a trace belongs to, enough to make its Layout again."""

    framework: str
    world_size: int
    sizes: Mapping[str, int]
    order: str
    schedule: str
    num_microbatches: int
    compute: str = "real"
    """``real``, or ``emulated`` where fixed times stand for the computation."""
    backend: str = "gloo"
    gpus_per_node: int = 8
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RecordHeader:
    """Says which run, rank and host a file belongs to, and relates its clock to the wall's."""

    run: str
    rank: int
    job: Job
    host: str = field(default_factory=socket.gethostname)
    monotonic_ns: int = field(default_factory=time.monotonic_ns)
    wall_ns: int = field(default_factory=time.time_ns)


@dataclass(frozen=True, eq=False)
class Recording:
    """Holds what one file gave: its header, its complete spans, and whether its end was torn."""

    header: RecordHeader
    spans: Spans
    torn: bool


def file_name(rank: int) -> str:
    """Returns the name of the file of ``rank``.

    >>> file_name(3)
    'rank-00003.spans'
    """
    return f"rank-{rank:05d}.spans"


class Recorder:
    """Appends spans of one rank to its file; safe to lose the process at any instant."""

    def __init__(self, folder: Path, header: RecordHeader) -> None:
        """Creates the file of ``header.rank`` in ``folder``; raises InputError where one stands."""
        self.path = folder / file_name(header.rank)
        text = json.dumps(asdict(header)).encode()
        if len(text) > HEADER_BYTES - len(MAGIC) - 4:
            raise InputError("the header of {path} is too long to record", path=self.path)
        try:
            self._file = self.path.open("x+b")
        except FileExistsError as error:
            raise InputError(
                "{path} holds an earlier recording; choose another folder or remove it",
                path=self.path,
            ) from error
        self._file.write(MAGIC + struct.pack("<I", len(text)) + text)
        self._count = 0
        self._capacity = 0
        self._map: mmap.mmap
        self._grow()

    def add(
        self,
        kind: ActionKind,
        start_ns: int,
        end_ns: int,
        *,
        step: int,
        stage: int = -1,
        microbatch: int = -1,
        peer: int = -1,
    ) -> None:
        """Appends one span; times are CLOCK_MONOTONIC nanoseconds."""
        if self._count == self._capacity:
            self._grow()
        place = HEADER_BYTES + self._count * _RECORD.size
        self._count += 1
        _RECORD.pack_into(
            self._map, place, start_ns, end_ns, step, microbatch, peer, stage, kind, 0, self._count
        )

    def close(self) -> None:
        """Cuts the file to what was recorded and closes it."""
        self._map.close()
        self._file.truncate(HEADER_BYTES + self._count * _RECORD.size)
        self._file.close()

    def _grow(self) -> None:
        if self._capacity:
            self._map.close()
        self._capacity += _GROWTH_RECORDS
        self._file.truncate(HEADER_BYTES + self._capacity * _RECORD.size)
        self._map = mmap.mmap(self._file.fileno(), 0)


def read_recording(path: Path) -> Recording:
    """Reads one rank's file up to its last complete span.

    Raises InputError when ``path`` is not such a file.
    """
    raw = path.read_bytes()
    header = _read_header(path, raw)
    body = raw[HEADER_BYTES:]
    table = np.frombuffer(body, dtype=_DTYPE, count=len(body) // _RECORD.size)
    sealed = table["seal"] == np.arange(1, len(table) + 1)
    complete = len(table) if sealed.all() else int(np.argmin(sealed))
    torn = any(body[complete * _RECORD.size :])
    return Recording(header, _spans(header.rank, table[:complete]), torn)


def _spans(rank: int, table: np.ndarray[Any, np.dtype[np.void]]) -> Spans:
    int32 = {name: table[name].astype(np.int32) for name in ("stage", "kind", "microbatch")}
    return Spans(
        rank=np.full(len(table), rank, dtype=np.int32),
        step=table["step"].astype(np.int32),
        peer=table["peer"].astype(np.int32),
        start_ns=table["start_ns"].astype(np.int64),
        end_ns=table["end_ns"].astype(np.int64),
        **int32,
    )


def _read_header(path: Path, raw: bytes) -> RecordHeader:
    start = len(MAGIC) + 4
    if len(raw) < start or not raw.startswith(MAGIC):
        raise InputError("{path} is not a recording of serried", path=path)
    (length,) = struct.unpack_from("<I", raw, len(MAGIC))
    try:
        fields = json.loads(raw[start : start + length])
        return RecordHeader(**{**fields, "job": Job(**fields["job"])})
    except (ValueError, TypeError, KeyError) as error:
        raise InputError("the header of {path} cannot be read", path=path) from error
