"""Level of detail: how much of each bucket of time each class of spans fills, exactly.

    level 3   |  5  0  |  3  2  | …        buckets of 2**k nanoseconds, aligned to 0
    level 2   |4 |1 |0 |3 |2 |0 | …        a level is the sums of two buckets of the one below
    base      about four spans a bucket     finer buckets are counted from the spans themselves

Filled time is split exactly where a span crosses an edge, so no level shows what is not there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.views.web.trace.colours import Classes
from serried.views.web.trace.table import TraceTable

Filled = NDArray[np.float32]
"""Nanoseconds by row, bucket and class."""
Rows = NDArray[np.int64]

_SPANS_A_BUCKET = 4
_SPANS_AT_ONCE = 1_000_000


@dataclass(frozen=True, eq=False)
class Levels:
    """Holds the sums of every track for one way to colour."""

    table: TraceTable
    classes: Classes
    """The class of each id."""
    num_classes: int
    base_bits: int
    sums: tuple[Filled, ...]
    """The sums of every track, from the base upwards."""

    @classmethod
    def of(cls, table: TraceTable, classes: Classes, num_classes: int) -> Levels:
        """Counts the base and adds the levels above it up."""
        buckets = max(1.0, len(table) / max(1, table.num_tracks) / _SPANS_A_BUCKET)
        bits = max(0, int(np.ceil(np.log2(max(1.0, table.total_ns / buckets)))))
        # Counting reads no sums, so a value that has none yet counts the base.
        bare = cls(table, classes, num_classes, bits, ())
        count = max(1, -(-table.total_ns >> bits))
        parts = [
            bare.counted(tracks, np.arange(len(tracks)), bits=bits, first=0, last=count)
            for tracks in _batches(table)
        ]
        sums = [np.concatenate(parts)]
        while sums[-1].shape[1] > 1:
            sums.append(_doubled(sums[-1]))
        return cls(table, classes, num_classes, bits, tuple(sums))

    def filled(self, tracks: Rows, *, bits: int, first: int, last: int) -> Filled:
        """Returns how much the buckets ``first`` to ``last`` (without it) of tracks hold."""
        rows = np.arange(len(tracks))
        if bits < self.base_bits:
            return self.counted(tracks, rows, bits=bits, first=first, last=last)
        # The top level is one bucket that reaches beyond the end, so wider ones hold just the same;
        # buckets past the end of a level are empty.
        level = self.sums[min(bits - self.base_bits, len(self.sums) - 1)]
        found = np.zeros((len(tracks), last - first, self.num_classes), dtype=np.float32)
        have = level[tracks, first : min(last, level.shape[1])]
        found[:, : have.shape[1]] = have
        return found

    def added(
        self, tracks: Rows, rows: Rows, num_rows: int, *, bits: int, first: int, last: int
    ) -> Filled:
        """Returns what tracks hold, added up by row: the ``i``-th track counts to ``rows[i]``."""
        if bits < self.base_bits:
            return self.counted(tracks, rows, bits=bits, first=first, last=last)
        found = np.zeros((num_rows, last - first, self.num_classes), dtype=np.float32)
        for row in range(num_rows):
            part = self.filled(tracks[rows == row], bits=bits, first=first, last=last)
            found[row] = part.sum(axis=0)
        return found

    def counted(self, tracks: Rows, rows: Rows, *, bits: int, first: int, last: int) -> Filled:
        """Counts from the spans themselves, a million of them at a time."""
        num_rows = int(rows.max(initial=-1)) + 1
        filled = np.zeros((num_rows, last - first, self.num_classes), dtype=np.float32)
        ids: list[Rows] = []
        of: list[Rows] = []
        waiting = 0
        for track, row in zip(tracks.tolist(), rows.tolist(), strict=True):
            begin, end = self.table.between(track, first << bits, last << bits)
            # Fewer than a million spans wait before a part of at most a million joins them, which
            # bounds the memory however tracks differ in length.
            for part in range(begin, end, _SPANS_AT_ONCE):
                stop = min(end, part + _SPANS_AT_ONCE)
                ids.append(np.arange(part, stop))
                of.append(np.full(stop - part, row))
                waiting += stop - part
                if waiting >= _SPANS_AT_ONCE:
                    self._count(np.concatenate(ids), np.concatenate(of), bits, first, filled)
                    ids, of, waiting = [], [], 0
        if ids:
            self._count(np.concatenate(ids), np.concatenate(of), bits, first, filled)
        return filled

    def _count(self, ids: Rows, rows: Rows, bits: int, first: int, filled: Filled) -> None:
        """Adds spans to ``filled``: their ends by part, the whole buckets between by steps."""
        num_rows, count, num = filled.shape
        low, high = first << bits, (first + count) << bits
        start, end = self.table.start_ns[ids], self.table.end_ns[ids]
        # One that takes no time counts as a nanosecond, for it is to be seen.
        least = start == end
        start, end = np.clip(start, low, high) - low, np.clip(end, low, high) - low
        begin = np.minimum(start >> bits, count - 1)
        stop = np.minimum(end >> bits, count - 1)
        # A span from bucket 1 to bucket 4:
        #
        #     filled   |  ##|####|####|#   |    first part, whole buckets, last part
        #     steps        0   +1    0   -1     their running sum counts whole buckets: 0 1 1 0
        cell = (rows * count + begin) * num + self.classes[ids]
        inside = begin == stop
        width = 1 << bits
        until = np.where(inside, end, (begin + 1) << bits)
        total = np.bincount(cell, until - start + least, minlength=filled.size).astype(np.float64)
        across = ~inside
        if across.any():
            cell, begin, stop, end = cell[across], begin[across], stop[across], end[across]
            last = cell + (stop - begin) * num
            total += np.bincount(last, end - (stop << bits), minlength=filled.size)
            steps = np.bincount(cell + num, minlength=filled.size).astype(np.int32)
            steps -= np.bincount(last, minlength=filled.size).astype(np.int32)
            whole = np.cumsum(steps.reshape(num_rows, count, num), axis=1)
            total += (whole * float(width)).ravel()
        filled += total.reshape(filled.shape)


def _batches(table: TraceTable) -> list[Rows]:
    """Returns all tracks, about a million spans at a time."""
    batch = (table.bounds[:-1].astype(np.int64) // _SPANS_AT_ONCE)[: table.num_tracks]
    edges = np.flatnonzero(np.diff(batch)) + 1
    return [part for part in np.split(np.arange(table.num_tracks), edges) if len(part)]


def _doubled(filled: Filled) -> Filled:
    """Returns the sums of two neighbours each."""
    if filled.shape[1] % 2:
        filled = np.pad(filled, ((0, 0), (0, 1), (0, 0)))
    sums: Filled = filled[:, ::2] + filled[:, 1::2]
    return sums


def as_bytes(filled: Filled, width_ns: int) -> NDArray[np.uint8]:
    """Returns shares of a bucket as bytes, 255 for all of it; what is there at all is never 0."""
    share = filled * np.float32(255 / width_ns)
    crowded = share.sum(axis=2, keepdims=True)
    # Lanes of one group may be busy at the same time.
    share = np.where(crowded > 255, share * (255 / np.maximum(crowded, 1)), share)
    bytes_: NDArray[np.uint8] = np.maximum(np.rint(share), share > 0).astype(np.uint8)
    return bytes_
