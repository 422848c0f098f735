"""The record format: one crash-safe file per rank, 40 bytes per span, appended through mmap.

    rank-00003.spans
    ├── 4096 bytes   magic, length, JSON header: run, rank, host, clock, job; last, the number
    │                of spans that found no space, and the count
    └── 40 bytes x n start_ns end_ns step microbatch peer stage kind name seal
    rank-00003.names  a JSON string a line; a span's name is its line from 1, and 0 is none
    rank-00003.traffic  what collectives moved as parts of these spans (``traffic``)

The kernel keeps what was written to the map when the process is killed (not when the
machine loses power). ``seal`` is the record's number from 1, written last: a record without
it was never completed, and reading stops there. The count, one more than the records, is
written by ``close``; a file without it belongs to a rank that was killed or still runs.
Times are CLOCK_MONOTONIC nanoseconds, one clock for all processes of a host; the header
holds a (monotonic, wall) pair to place them beside other hosts.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from serried.action import ActionKind, Spans
from serried.errors import InputError
from serried.trace.model.traffic import CollectiveMove, read_traffic

MAGIC = b"serried\x01"
HEADER_BYTES = 4096
COUNT = struct.Struct("<Q")
COUNT_PLACE = HEADER_BYTES - COUNT.size
LOST_PLACE = COUNT_PLACE - COUNT.size
RECORD = struct.Struct("<qqiiiiHHI")
RECORD_BYTES = RECORD.size
_FIELDS = "start_ns:i8 end_ns:i8 step:i4 microbatch:i4 peer:i4 stage:i4 kind:u2 name:u2 seal:u4"
_DTYPE = np.dtype([(name, f"<{kind}") for name, kind in (f.split(":") for f in _FIELDS.split())])
Records = np.ndarray[Any, np.dtype[np.void]]
NAMES_SUFFIX = ".names"
LARGEST_NAME = 65_535
"""How many names a rank's spans can have; those beyond are recorded without one."""


UNKNOWN_SCHEDULE = "unknown"
"""Stands for the schedule of a run whose writer does not say it."""
REAL, EMULATED, PLANNED = "real", "emulated", "planned"
"""What a job computed: for real, by fixed times that stood for it, or nothing, being a plan."""


@dataclass(frozen=True)
class TracedJob:
    """Describes the job that a trace belongs to, enough to make its Layout again."""

    framework: str
    world_size: int
    sizes: Mapping[str, int]
    order: str
    schedule: str
    num_microbatches: int
    compute: str = REAL
    """``real``, ``emulated`` where fixed times stand for the computation, or ``planned``."""
    backend: str = "gloo"
    gpus_per_node: int = 8
    options: Mapping[str, str] = field(default_factory=dict)
    work: Mapping[str, int] = field(default_factory=dict)
    """What one microbatch is, where the writer says it: ``layers`` of the model, ``sequences`` of
    the microbatch on one rank, and ``tokens`` of a sequence."""
    model: Mapping[str, int] = field(default_factory=dict)
    """The model's sizes, where the writer says them: ``hidden``, ``heads``, ``kv_heads``,
    ``head_dim``, ``ffn``, ``vocab``, ``experts``, ``top_k``, and 1 for ``gated`` and ``tied``."""
    training: Mapping[str, str] = field(default_factory=dict)
    """How it trains, where the writer says it: ``zero``, its stage, and ``dtype``, what it computes
    in, as torch calls it."""
    device: str = field(default="", compare=False)
    """What its ranks compute on: ``cpu``, or the GPU by its name; "" where nobody says. This and
    what follows may differ from host to host, and is that of the first rank."""
    cores: int = field(default=0, compare=False)
    """CPU cores that the ranks of one host may run on; 0 where nobody says."""
    threads: int = field(default=1, compare=False)
    """Threads that one rank computes with on them."""


def boot_id() -> str:
    """Returns what tells two machines of one name apart: the kernel's boot id, or nothing."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:  # another system, or no file can be opened any more
        return ""


@dataclass(frozen=True)
class RecordHeader:
    """Says which run, rank and host a file belongs to, and relates its clock to the wall's."""

    run: str
    rank: int
    job: TracedJob
    host: str = field(default_factory=socket.gethostname)
    boot: str = field(default_factory=boot_id)
    monotonic_ns: int = field(default_factory=time.monotonic_ns)
    wall_ns: int = field(default_factory=time.time_ns)


@dataclass(frozen=True, eq=False)
class RankRecord:
    """Holds what one file gave: its header, its complete spans, and whether its end was torn.

    A torn file was not closed by its recorder (the rank was killed, or still runs), or lost
    or gained bytes since.
    """

    header: RecordHeader
    spans: Spans
    torn: bool
    names: tuple[str, ...] = ()
    """What its user called spans of kind SPAN, whose peer is a place in it."""
    lost: int = 0
    """How many spans more there were, for which the disk had no space."""
    moves: tuple[CollectiveMove, ...] = ()
    """What collectives moved as parts of these spans, where the recorder told it (``traffic``)."""


def file_name(rank: int) -> str:
    """Returns the name of the file of ``rank``.

    >>> file_name(3)
    'rank-00003.spans'
    """
    return f"rank-{rank:05d}.spans"


def read_rank_record(path: Path) -> RankRecord:
    """Reads one rank's file up to its last complete span.

    Raises InputError when ``path`` cannot be read, is not such a file, ends within its header,
    or is damaged.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(
            "{path} cannot be read: {reason}", path=path, reason=error.strerror
        ) from error
    header = read_header(path, raw)
    table = complete_records(path, memoryview(raw)[HEADER_BYTES:])
    ends_there = len(raw) == HEADER_BYTES + len(table) * RECORD_BYTES
    torn = not ends_there or closed_count(raw) != len(table)
    beside = path.with_suffix(NAMES_SUFFIX)
    text = beside.read_text(encoding="utf-8", errors="replace") if beside.is_file() else ""
    spans = spans_of_records(header.rank, table)
    # A rank that was killed may have told of a span that it did not complete.
    moves = tuple(move for move in read_traffic(path) if move.span < len(spans))
    return RankRecord(header, spans, torn, names_in(text), lost_count(raw), moves)


def complete_records(path: object, raw: bytes | memoryview, *, before: int = 0) -> Records:
    """Returns the complete records at the start of ``raw``, which follow ``before`` others.

    Raises InputError for one that no recorder wrote.
    """
    count = len(raw) // RECORD_BYTES
    table = np.frombuffer(raw, dtype=_DTYPE, count=count)
    sealed = table["seal"] == np.arange(before + 1, before + count + 1)
    complete = table if sealed.all() else table[: int(np.argmin(sealed))]
    _require_sound(path, complete, before)
    return complete


def closed_count(raw: bytes) -> int:
    """Returns how many records a closed file has by its header, -1 where it was not closed."""
    (closed_at,) = COUNT.unpack_from(raw, COUNT_PLACE)
    return int(closed_at) - 1


def lost_count(raw: bytes) -> int:
    """Returns how many spans found no space, by the header that ``raw`` begins with."""
    (lost,) = COUNT.unpack_from(raw, LOST_PLACE)
    return int(lost)


def _require_sound(path: object, table: Records, before: int) -> None:
    duration_ns = table["end_ns"] - table["start_ns"]
    is_sound = np.isin(table["kind"], list(ActionKind)) & (duration_ns >= 0)
    if is_sound.all():
        return
    bad = int(np.argmin(is_sound))
    raise InputError(
        "{path} is damaged, or of a newer serried: its span {number} is of kind {kind} and lasts "
        "{duration} ns",
        path=path,
        number=before + bad,
        kind=int(table["kind"][bad]),
        duration=int(duration_ns[bad]),
    )


def names_in(text: str) -> tuple[str, ...]:
    """Returns the names that the file beside a recording holds, up to the first line of none."""
    names: list[str] = []
    for line in text.splitlines():
        try:
            name = json.loads(line)
        except (ValueError, RecursionError):
            break
        if not isinstance(name, str):
            break
        # Half a pair of surrogates is a string of JSON, but no text that can be written.
        names.append(name.encode("utf-8", "replace").decode())
    return tuple(names)


def spans_of_records(rank: int, table: Records) -> Spans:
    """Returns records as spans of ``rank``."""
    is_named = (table["kind"] == ActionKind.SPAN) & (table["name"] > 0)
    peer = np.where(is_named, table["name"].astype(np.int32) - 1, table["peer"])
    return Spans(
        rank=np.full(len(table), rank, dtype=np.int32),
        step=table["step"].astype(np.int32),
        peer=peer.astype(np.int32),
        start_ns=table["start_ns"].astype(np.int64),
        end_ns=table["end_ns"].astype(np.int64),
        stage=table["stage"].astype(np.int32),
        kind=table["kind"].astype(np.int32),
        microbatch=table["microbatch"].astype(np.int32),
    )


def read_header(path: object, raw: bytes) -> RecordHeader:
    """Returns the header that ``raw`` begins with; raises InputError where it is none."""
    start = len(MAGIC) + 4
    # A file that ends within the magic may still be ours: only what is there is compared.
    if not raw.startswith(MAGIC[: len(raw)]):
        raise InputError("{path} is not a recording of serried", path=path)
    if len(raw) < HEADER_BYTES:
        raise InputError(
            "{path} ends within its header: its rank stopped before it recorded a span", path=path
        )
    (length,) = struct.unpack_from("<I", raw, len(MAGIC))
    try:
        fields = json.loads(raw[start : start + length])
        header = RecordHeader(**{**fields, "job": TracedJob(**fields["job"])})
        _require_plausible(header)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError("the header of {path} cannot be read", path=path) from error
    return header


def _require_plausible(header: RecordHeader) -> None:
    """Raises ValueError for values that no recorder writes."""
    job = header.job
    counts = (job.world_size, job.num_microbatches, job.gpus_per_node, *job.sizes.values())
    counts += (*job.work.values(), job.threads)
    numbers = (header.rank, header.monotonic_ns, header.wall_ns, job.cores, *job.model.values())
    words = [header.run, header.host, header.boot, job.framework, job.order, job.schedule]
    words += [job.compute, job.backend, *job.options, *job.options.values(), *job.work]
    words += [job.device, *job.model, *job.training, *job.training.values()]
    if not (
        all(type(each) is int and 0 < each < 2**31 for each in counts)
        and all(type(each) is int and 0 <= each < 2**62 for each in numbers)
        and all(type(each) is str for each in words)
    ):
        raise ValueError(header)
    "".join(words).encode()  # raises for half a pair of surrogates, which cannot be written again
