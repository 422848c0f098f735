"""The writer of a guard's file: what a rank begins and ends, into a map of fixed size.

    number = begin(ALL_REDUCE, group, seq, peer, numel_in, numel_out, dtype, place)
    wait(number)   … the rank is held up in it …   end(number)

Each is one or two packings into the map, and none opens, grows or flushes anything. Several threads
may call: a number is drawn by one call that no other thread can part.
"""

from __future__ import annotations

import itertools
import json
import mmap
import os
import time
from contextlib import suppress
from pathlib import Path

from serried.diagnose.evidence.records.guard_file import (
    AT,
    AT_PLACE,
    COUNT,
    ENDED_PLACE,
    GROUPS_USED_PLACE,
    HEADER_BYTES,
    LIFE,
    LIFE_PLACE,
    ROW,
    ROW_BYTES,
    STEP,
    STEP_PLACE,
    GuardedGroup,
    GuardHeader,
    guard_name,
    ranges_of,
)

_ENDED_OFFSET = 8
"""Where in a row its end stands: after its beginning."""


class OperationLog:
    """Writes one rank's file, made whole and moved into place; it never grows."""

    def __init__(self, folder: Path, header: GuardHeader) -> None:
        """Creates the file; one that an earlier run left is replaced.

        Raises OSError where there is no space, or the folder cannot be written.
        """
        self.path = folder / guard_name(header.record.rank)
        self.num_begun = self.num_ended = 0
        self.step = -1
        self._header = header
        self._waits_in = self._since_ns = 0
        self._numbers = itertools.count(1)
        self._groups_used = self._num_groups = 0
        part = folder / f".{self.path.name}.{os.getpid()}"
        try:
            self._map = _mapped(part, header)
            part.replace(self.path)
        except OSError:
            with suppress(OSError):
                part.unlink()
            raise
        self._rows = header.rows_place
        self._capacity = header.num_rows
        self.live(moved_ns=time.monotonic_ns())

    def add_group(self, group: GuardedGroup) -> int:
        """Keeps a group and returns its number from 1; 0 where there is no more room."""
        line = json.dumps([group.name, ranges_of(group.ranks), group.desc, group.backend])
        raw = line.encode() + b"\n"
        header, start = self._header, HEADER_BYTES + self._groups_used
        if (
            self._groups_used + len(raw) > header.groups_bytes
            or self._num_groups == header.num_groups
        ):
            return 0
        self._map[start : start + len(raw)] = raw
        self._groups_used += len(raw)
        self._num_groups += 1
        STEP.pack_into(self._map, GROUPS_USED_PLACE, self._groups_used)
        return self._num_groups

    def count(self, group: int, seq: int) -> None:
        """Says which collective of the group was the last to begin."""
        if group and seq >= 0:
            place = self._header.counts_place + (group - 1) * COUNT.size
            COUNT.pack_into(self._map, place, seq)

    def begin(
        self,
        op: int,
        group: int,
        seq: int = -1,
        peer: int = -1,
        numel_in: int = -1,
        numel_out: int = -1,
        dtype: int = 0,
        place: int = 0,
    ) -> int:
        """Writes an operation that begins, in which the rank waits from now; returns its number."""
        number = next(self._numbers)
        now = time.monotonic_ns()
        at = self._rows + (number - 1) % self._capacity * ROW_BYTES
        row = (now, 0, numel_in, numel_out, seq, peer, self.step, place, group, op, dtype, number)
        ROW.pack_into(self._map, at, *row)
        self.num_begun, self._waits_in, self._since_ns = number, number, now
        AT.pack_into(self._map, AT_PLACE, number, number, now)
        return number

    def returned(self) -> None:
        """Says that the call came back: what it began goes on behind the rank's back."""
        self._waits_in = 0
        AT.pack_into(self._map, AT_PLACE, self.num_begun, 0, 0)

    def wait(self, number: int) -> None:
        """Says that the rank waits in an operation from now on."""
        self._waits_in, self._since_ns = number, time.monotonic_ns()
        AT.pack_into(self._map, AT_PLACE, self.num_begun, number, self._since_ns)

    def end(self, number: int) -> None:
        """Says that an operation is over, and that the rank waits in none."""
        self.num_ended += 1
        if number > self.num_begun - self._capacity:
            at = self._rows + (number - 1) % self._capacity * ROW_BYTES + _ENDED_OFFSET
            _TIME.pack_into(self._map, at, time.monotonic_ns())
        self._waits_in = 0
        AT.pack_into(self._map, AT_PLACE, self.num_begun, 0, 0)

    def begin_step(self, step: int) -> None:
        """Says which step the rank is in."""
        self.step = step
        STEP.pack_into(self._map, STEP_PLACE, step)

    def live(self, *, moved_ns: int) -> None:
        """Leaves a sign of life, and since when the rank has not gone on."""
        LIFE.pack_into(self._map, LIFE_PLACE, time.monotonic_ns(), time.time_ns(), moved_ns)

    def ended(self, how: int) -> None:
        """Says how the rank ended."""
        STEP.pack_into(self._map, ENDED_PLACE, how)


_TIME = COUNT


def _mapped(path: Path, header: GuardHeader) -> mmap.mmap:
    """Returns the map of a new file, all of whose space the disk has promised."""
    with path.open("x+b", buffering=0) as file:
        size = header.file_bytes
        # A write into a map that the disk has no space for would be a signal, and not an error.
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        file.truncate(size)
        page = mmap.mmap(file.fileno(), size)
    page[:HEADER_BYTES] = header.packed()
    return page
