"""Waits for collectives on a way through recorded steps, as pieces of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from serried.action import Spans
from serried.trace.measure.moments import wait_rows
from serried.trace.measure.path.graph import PathPiece, Rows, long_pieces


@dataclass(frozen=True, eq=False)
class HeldUp:
    """Holds when ranks were held up by collectives: by rank the rows, by start, none in another."""

    spans: Spans
    rows: dict[int, Rows]

    @classmethod
    def of(cls, spans: Spans) -> HeldUp:
        """Finds when ranks of ``spans`` were held up."""
        waits = np.flatnonzero(wait_rows(spans))
        waits = waits[np.lexsort((-spans.end_ns[waits], spans.start_ns[waits], spans.rank[waits]))]
        rows = {}
        for rank in np.unique(spans.rank[waits]).tolist():
            mine = waits[spans.rank[waits] == rank]
            reached = np.maximum.accumulate(spans.end_ns[mine])
            rows[rank] = mine[spans.end_ns[mine] > np.append([-1], reached[:-1])]
        return cls(spans, rows)

    def apart(self, pieces: tuple[PathPiece, ...]) -> tuple[PathPiece, ...]:
        """Returns the same path, in which waits for collectives are pieces of their own."""
        return tuple(part for piece in pieces for part in self._parts(piece))

    def _parts(self, piece: PathPiece) -> Iterator[PathPiece]:
        rows = self.rows.get(piece.rank, np.empty(0, dtype=np.int64))
        starts, ends = self.spans.start_ns[rows], self.spans.end_ns[rows]
        # None of these lies within another, so their ends ascend as their starts do.
        inside = slice(
            np.searchsorted(ends, piece.start_ns, "right"), np.searchsorted(starts, piece.end_ns)
        )
        at = piece.start_ns
        for row in [] if piece.kind == "reduce" else rows[inside].tolist():
            begin = max(at, int(self.spans.start_ns[row]))
            end = min(piece.end_ns, int(self.spans.end_ns[row]))
            action = piece.action or str(self.spans[row].action)
            yield from long_pieces([replace(piece, start_ns=at, end_ns=begin)])
            yield PathPiece(piece.rank, "exchange", action, begin, end, row)
            at = end
        yield from long_pieces([replace(piece, start_ns=at)])
