"""The file that a guard keeps of one rank: its last operations, safe to lose the process any time.

    rank-00003.guard
    ├── 4096 bytes      magic, length, JSON header: run, rank, host, process, job
    │                   at its end what changes: life signs, step, what is waited in
    ├── groups          a JSON line for each process group: name, ranks, backend
    ├── counts          8 bytes a group: the number of its last collective
    └── 64 bytes x n    the last n operations, a ring: operation k stands at place k mod n

An operation is written as it begins, its end into the same 64 bytes; so the file says at any
instant what the rank is in, whoever holds the interpreter and whatever became of the process.
Its number is written last: a row whose number is not of its place was never completed. Only the
kernel's memory has to survive, as with the spans (``trace.model.record``).

    with a guard     all_reduce 7 of dp_3, begun, not ended     the rank waits in it
    without          the last span that ended, and what came next in the step before
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from serried.errors import InputError
from serried.finding import said
from serried.limits import TRACE_RANKS
from serried.trace.model.record import RecordHeader, TracedJob
from serried.user_file import read_bytes

MAGIC = b"serriedguard\x01"
SUFFIX = ".guard"
HEADER_BYTES = 4096
GROUPS_BYTES = 32 << 10
MOST_GROUPS = 512
OPERATIONS = 1024
"""Operations that a ring holds; a step of a large job has some hundreds on one rank."""
LARGEST_BYTES = 64 << 20

LIFE = struct.Struct("<qqq")
"""The monotonic and the wall time of the last sign of life, and when the rank last went on."""
LIFE_PLACE = 3968
AT = struct.Struct("<QQq")
"""The operations that were begun, the one that the rank waits in (0: none), and since when."""
AT_PLACE = LIFE_PLACE + LIFE.size
STEP = struct.Struct("<i")
STEP_PLACE = AT_PLACE + AT.size
ENDED_PLACE = STEP_PLACE + STEP.size
GROUPS_USED_PLACE = ENDED_PLACE + STEP.size
COUNT = struct.Struct("<Q")

RUNS, LEFT, FAILED = 0, 1, 2
"""How a rank ended, as far as it could say: not yet, in order, by an exception."""

ROW = struct.Struct("<qqqqiiiiHBBQ")
ROW_BYTES = ROW.size
_FIELDS = (
    "began_ns:i8 ended_ns:i8 numel_in:i8 numel_out:i8 seq:i4 peer:i4 step:i4 place:i4 "
    "group:u2 op:u1 dtype:u1 number:u8"
)
ROW_DTYPE = np.dtype([(n, f"<{k}") for n, k in (f.split(":") for f in _FIELDS.split())])
Rows = np.ndarray[Any, np.dtype[np.void]]

OPS = (
    "unknown",
    "all_reduce",
    "all_gather",
    "all_gather_into_tensor",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "barrier",
    "monitored_barrier",
    "send",
    "recv",
    "collective",
)
"""Operations by the number that a row holds; only ever appended to."""
MESSAGES = frozenset({"send", "recv"})
DTYPES = (
    "",
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "complex64",
    "float8_e4m3fn",
    "float8_e5m2",
)

_STAGE_BITS = 12


def packed_place(stage: int, microbatch: int, *, is_backward: bool) -> int:
    """Returns the stage, microbatch and direction of a message in one number; 0 is none.

    >>> unpacked_place(packed_place(3, 2, is_backward=True))
    (3, 2, True)
    >>> packed_place(1 << 12, 0, is_backward=False)
    0
    """
    if not (0 <= stage < 1 << _STAGE_BITS and 0 <= microbatch < 1 << 16):
        return 0
    return 1 + (is_backward | stage << 1 | microbatch << 1 + _STAGE_BITS)


def unpacked_place(place: int) -> tuple[int, int, bool] | None:
    """Returns stage, microbatch, and whether it goes backward; None for no place."""
    if place <= 0:
        return None
    bits = place - 1
    return bits >> 1 & (1 << _STAGE_BITS) - 1, bits >> 1 + _STAGE_BITS, bool(bits & 1)


@dataclass(frozen=True)
class GuardHeader:
    """Says whose file it is: the run, rank, host and job, and the process that writes it."""

    record: RecordHeader
    pid: int
    process_start: int
    """When the process began, as ``/proc/PID/stat`` counts it: tells it from a later one."""
    local_rank: int
    local_world_size: int
    attempt: int = 0
    """How many times an elastic launcher had started the job anew before."""
    timeout_s: float = 0.0
    main_thread: int = 0
    """The main thread's number, by which its stack is found."""
    num_groups: int = MOST_GROUPS
    groups_bytes: int = GROUPS_BYTES
    num_rows: int = OPERATIONS

    def packed(self) -> bytes:
        """Returns the page that a file begins with; raises InputError where it is too long."""
        text = json.dumps(asdict(self)).encode()
        start = MAGIC + struct.pack("<I", len(text)) + text
        if len(start) > LIFE_PLACE:
            raise InputError("what the job is takes {size} bytes, too many", size=len(text))
        return start.ljust(HEADER_BYTES, b"\0")

    @property
    def counts_place(self) -> int:
        """Where the counts of the groups begin."""
        return HEADER_BYTES + self.groups_bytes

    @property
    def rows_place(self) -> int:
        """Where the ring begins."""
        return self.counts_place + self.num_groups * COUNT.size

    @property
    def file_bytes(self) -> int:
        """How long the file is: it never grows."""
        return self.rows_place + self.num_rows * ROW_BYTES


@dataclass(frozen=True)
class GuardedGroup:
    """Holds one process group as a rank met it; ``ranks`` are global, in the group's order."""

    name: str
    ranks: tuple[int, ...]
    desc: str = ""
    backend: str = ""


@dataclass(frozen=True, eq=False)
class GuardFile:
    """Holds what one file tells of its rank at the moment at which it is read."""

    header: GuardHeader
    groups: tuple[GuardedGroup, ...]
    """By their numbers in rows, from 1."""
    counts: Mapping[str, int] | None
    """The number of the last collective of each group, by its name; None where it is cut off."""
    rows: Rows
    """The last operations, in order."""
    num_begun: int
    waits_in: int
    """The number of the operation that it waits in, 0 for none."""
    waits_since_ns: int
    step: int
    ended: int
    alive_ns: int
    """CLOCK_MONOTONIC of its host at the last sign of life."""
    alive_wall_ns: int
    moved_ns: int
    """CLOCK_MONOTONIC of its host at which it last went on."""
    is_cut_off: bool = False
    """Whether the file ends before what it says was written: where its rank stands is not known."""

    @property
    def rank(self) -> int:
        """The global rank."""
        return self.header.record.rank


def guard_name(rank: int) -> str:
    """Returns the name of the file of ``rank``.

    >>> guard_name(3)
    'rank-00003.guard'
    """
    return f"rank-{rank:05d}{SUFFIX}"


def read_guard_file(path: Path) -> GuardFile:
    """Reads one rank's file, also while it is written.

    Raises InputError when ``path`` cannot be read, or is not such a file.
    """
    return guard_file(path, read_bytes(path, LARGEST_BYTES, said("a guard's file")))


def guard_file(path: object, raw: bytes) -> GuardFile:
    """Returns what the bytes of such a file say; ``path`` is only named.

    A file that was cut off, as one copied from a full disk is, gives what came before. Raises
    InputError where not even its header is there.
    """
    header = _header(path, raw)
    used = min(_of(raw, STEP, GROUPS_USED_PLACE)[0], header.groups_bytes)
    groups = _groups(raw[HEADER_BYTES : HEADER_BYTES + max(used, 0)])
    num_begun, waits_in, since_ns = _of(raw, AT, AT_PLACE)
    alive_ns, alive_wall_ns, moved_ns = _of(raw, LIFE, LIFE_PLACE)
    rows, counts = _rows(raw, header, num_begun), _counts(raw, header, groups)
    is_short = len(raw) < header.file_bytes
    lacks_rows = len(rows) < min(num_begun, header.num_rows)
    return GuardFile(
        header=header,
        groups=groups,
        counts=counts,
        rows=rows,
        num_begun=num_begun,
        waits_in=waits_in,
        waits_since_ns=since_ns,
        step=_of(raw, STEP, STEP_PLACE)[0],
        ended=_of(raw, STEP, ENDED_PLACE)[0],
        alive_ns=alive_ns,
        alive_wall_ns=alive_wall_ns,
        moved_ns=moved_ns,
        is_cut_off=is_short and (lacks_rows or counts is None),
    )


def is_guard_file(start: bytes) -> bool:
    """Tells whether a file that begins so is a guard's."""
    return start.startswith(MAGIC)


def _of(raw: bytes, form: struct.Struct, place: int) -> tuple[int, ...]:
    return form.unpack_from(raw, place)


def _header(path: object, raw: bytes) -> GuardHeader:
    if not is_guard_file(raw):
        raise InputError("{path} is not a file of serried's guard", path=path)
    if len(raw) < HEADER_BYTES:
        raise InputError("{path} ends within its header", path=path)
    try:
        (length,) = struct.unpack_from("<I", raw, len(MAGIC))
        start = len(MAGIC) + 4
        fields = json.loads(raw[start : start + length])
        record = fields.pop("record")
        record = RecordHeader(**{**record, "job": TracedJob(**record["job"])})
        header = GuardHeader(record=record, **fields)
        _require_plausible(header)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError("the header of {path} cannot be read", path=path) from error
    return header


def _require_plausible(header: GuardHeader) -> None:
    """Raises ValueError for numbers that no guard writes."""
    record = header.record
    counts = (header.num_groups, header.groups_bytes, header.num_rows, record.job.world_size)
    process = (header.pid, header.process_start, header.main_thread)
    numbers = (record.rank, *process, header.local_rank, header.attempt)
    sizes = tuple(record.job.sizes.values())
    if not (
        all(type(each) is int and 0 < each < 2**31 for each in (*counts, *sizes))
        and all(type(each) is int and 0 <= each < 2**62 for each in numbers)
        and all(type(each) is str for each in (record.run, record.host, record.boot))
        and record.rank < record.job.world_size
        and header.file_bytes <= LARGEST_BYTES
    ):
        raise ValueError(header)


def _groups(text: bytes) -> tuple[GuardedGroup, ...]:
    """Returns the groups of the lines, up to the first that is not whole."""
    found: list[GuardedGroup] = []
    for line in text.splitlines():
        group = _group(line)
        if group is None:
            break
        found.append(group)
    return tuple(found)


@lru_cache(maxsize=8192)
def _group(line: bytes) -> GuardedGroup | None:
    """Returns the group of a line, one for all ranks that are in it; None for half a line."""
    try:
        name, ranges, desc, backend = json.loads(line)
        spans = [range(start, stop, by) for start, stop, by in ranges]
        if sum(map(len, spans)) > TRACE_RANKS.most:
            return None
        ranks = tuple(rank for span in spans for rank in span)
        return GuardedGroup(str(name), ranks, str(desc), str(backend))
    except (ValueError, TypeError, RecursionError, OverflowError):
        return None


def _counts(
    raw: bytes, header: GuardHeader, groups: tuple[GuardedGroup, ...]
) -> dict[str, int] | None:
    """Returns the last collective of each group; None where the file was cut off before that."""
    end = header.counts_place + len(groups) * COUNT.size
    if len(raw) < end or len(groups) > header.num_groups:
        return None
    table = np.frombuffer(raw[header.counts_place : end], "<u8")
    return {group.name: int(table[number]) for number, group in enumerate(groups)}


def _rows(raw: bytes, header: GuardHeader, num_begun: int) -> Rows:
    """Returns the rows in order, without those that were not completed."""
    count = min(header.num_rows, max(0, len(raw) - header.rows_place) // ROW_BYTES)
    table = np.frombuffer(raw, ROW_DTYPE, count, min(header.rows_place, len(raw)))
    number = table["number"].astype(np.int64)
    at_place = (number > 0) & ((number - 1) % header.num_rows == np.arange(count))
    is_known = (table["op"] < len(OPS)) & (table["dtype"] < len(DTYPES))
    kept: Rows = table[at_place & is_known & (number <= num_begun + 1)]
    in_order: Rows = kept[np.argsort(kept["number"], kind="stable")]
    return in_order


def ranges_of(ranks: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Returns ranks as (start, stop, step), so that the group of all ranks takes no space.

    >>> ranges_of((0, 1, 2, 3)), ranges_of((5,)), ranges_of((1, 3, 5, 8))
    ([(0, 4, 1)], [(5, 6, 1)], [(1, 7, 2), (8, 9, 1)])
    """
    if len(ranks) > 1 and (by := ranks[1] - ranks[0]) > 0:
        whole = range(ranks[0], ranks[0] + by * len(ranks), by)
        if ranks == tuple(whole):  # as nearly all groups are; of thousands of ranks it is soon told
            return [(whole.start, whole.stop, by)]
    found: list[tuple[int, int, int]] = []
    at = 0
    while at < len(ranks):
        end = at + 1
        by = ranks[end] - ranks[at] if end < len(ranks) else 1
        if by < 1:
            by = 1
        while end < len(ranks) and ranks[end] - ranks[end - 1] == by:
            end += 1
        found.append((ranks[at], ranks[end - 1] + by, by))
        at = end
    return found
