"""A trace in the page's order: by track and then by start, so that a stretch of a track is a slice.

    track 0   rank 0, lane 0    spans 0 .. 811
    track 1   rank 1, lane 0    spans 812 .. 1,623      a span's id is its place
    track 2   rank 1, lane 1    spans 1,624 .. 1,650

The spans themselves stay where the trace holds them, by rank and start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind, Spans
from serried.trace.model.trace import Trace
from serried.views.web.trace.lanes import lanes
from serried.views.web.wire.payload import Column
from serried.views.web.wire.stages import pipelines, stages

Ids = NDArray[np.int64]
Ranks = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class TraceTable:
    """Holds where each track's spans are, and their times; the rest is asked of the trace."""

    trace: Trace
    order: NDArray[np.int32] | None
    """The row of the trace's spans that each id has; None where both are the same."""
    bounds: NDArray[np.int32]
    """The first id of each track, and their number."""
    rank: Ranks
    """The rank of each track."""
    lane: Ranks
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]

    @classmethod
    def of(cls, trace: Trace) -> TraceTable:
        """Orders a trace whose spans stand by rank and then by start."""
        spans = trace.spans
        lane = lanes(spans)
        order = None
        if lane.any():
            # The spans stand by rank and start, and lexsort keeps that order among equals, so those
            # of a track stand by start.
            order = np.lexsort((lane, spans.rank)).astype(np.int32)
            lane = lane[order]
        rank = spans.rank if order is None else spans.rank[order]
        changes = np.flatnonzero((np.diff(rank) != 0) | (np.diff(lane) != 0)) + 1
        first = np.concatenate(([0], changes))[: len(spans)]
        return cls(
            trace,
            order,
            np.append(first, len(spans)).astype(np.int32),
            rank[first],
            lane[first],
            spans.start_ns if order is None else spans.start_ns[order],
            spans.end_ns if order is None else spans.end_ns[order],
        )

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def num_tracks(self) -> int:
        """How many there are, one for each lane of each rank."""
        return len(self.rank)

    @property
    def total_ns(self) -> int:
        """When the last span ends."""
        return int(self.end_ns.max(initial=0))

    def rows(self, ids: Ids) -> Ids:
        """Returns the rows of the trace's spans that ``ids`` name."""
        return ids if self.order is None else self.order[ids].astype(np.int64)

    def ids(self, rows: Ids) -> Ids:
        """Returns the ids of rows of the trace's spans, in their order."""
        if self.order is None:
            return rows
        sought = self.trace.spans.rank[rows], self.trace.spans.start_ns[rows]
        found = np.empty(len(rows), dtype=np.int64)
        for i, (row, rank, start) in enumerate(zip(rows, *sought, strict=True)):
            found[i] = self._id(int(row), int(rank), int(start))
        return found

    def _id(self, row: int, rank: int, start: int) -> int:
        """Returns the id of one row: on one of its rank's tracks, among those of its start."""
        assert self.order is not None
        for track in range(*np.searchsorted(self.rank, [rank, rank + 1]).tolist()):
            first, last = self.bounds[track], self.bounds[track + 1]
            low, high = np.searchsorted(self.start_ns[first:last], [start, start + 1])
            same = np.flatnonzero(self.order[first + low : first + high] == row)
            if len(same):
                return int(first + low + same[0])
        raise AssertionError("every row stands on a track of its rank")

    def spans(self, ids: Ids) -> Spans:
        """Returns the spans that ``ids`` name."""
        return self.trace.spans.where(self.rows(ids))

    def between(self, track: int, from_ns: float, to_ns: float) -> tuple[int, int]:
        """Returns the ids of a track's spans that meet [from_ns, to_ns), first and past the last.

        A span that takes no time counts where it lies.
        """
        first, last = int(self.bounds[track]), int(self.bounds[track + 1])
        # Spans of a track do not overlap, so their ends ascend like their starts. An end at from_ns
        # still counts, for a span that takes no time ends where it begins.
        begun = np.searchsorted(self.end_ns[first:last], from_ns, "left")
        over = np.searchsorted(self.start_ns[first:last], to_ns, "left")
        return first + int(begun), first + max(int(begun), int(over))

    def columns(self) -> dict[str, Column]:
        """Returns a row per track: its rank, lane, stage, pipeline, node, and where it begins."""
        trace, rank = self.trace, self.rank
        none = np.zeros(trace.job.world_size, dtype=np.int32)
        layout = trace.layout
        return {
            "track:rank": rank,
            "track:lane": self.lane,
            "track:stage": (stages(layout) if layout else none)[rank],
            "track:pipeline": self.pipelines[rank],
            "track:node": (rank // trace.placement.ranks_per_node).astype(np.int32),
            "track:bounds": self.bounds,
        }

    @property
    def pipelines(self) -> Ranks:
        """The pipeline of each rank."""
        layout = self.trace.layout
        none = np.zeros(self.trace.job.world_size, dtype=np.int32)
        return pipelines(layout) if layout else none


def span_columns(spans: Spans) -> dict[str, Column]:
    """Returns spans as the page reads them: numbers of 32 bits, and times as doubles.

    A span that its user named has no peer but the place of its name. What collectives moved is
    left out where nothing of it is told.
    """
    is_named = spans.kind == ActionKind.SPAN
    moved: dict[str, Column] = {
        "size_bytes": spans.size_bytes.astype(np.float64),
        "group": spans.group.astype(np.int32),
    }
    return {
        "rank": spans.rank,
        "kind": spans.kind,
        "stage": spans.stage,
        "microbatch": spans.microbatch,
        "step": spans.step,
        "peer": np.where(is_named, -1, spans.peer).astype(np.int32),
        "name": np.where(is_named, spans.peer, -1).astype(np.int32),
        "start_ns": spans.start_ns.astype(np.float64),
        "end_ns": spans.end_ns.astype(np.float64),
        **(moved if (spans.size_bytes >= 0).any() else {}),
    }
