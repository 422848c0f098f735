"""A trace as the page is shown it: what is worked out of it once and kept for every question."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE
from serried.errors import InputError, listed
from serried.trace.model.record import UNKNOWN_SCHEDULE
from serried.trace.model.trace import Trace
from serried.views.web.trace.answers import TraceAnswers
from serried.views.web.trace.colours import (
    Measured,
    Values,
    action_colours,
    classes_of,
    num_classes,
    require_colour,
    scale_edges,
)
from serried.views.web.trace.levels import Levels
from serried.views.web.trace.table import TraceTable
from serried.views.web.wire.payload import Column

WHOLE_BELOW = 200_000
"""A trace of fewer spans is sent whole; of larger ones the page asks for windows."""
MOST_STEPS = 1 << 20
"""Numbers of steps that lie further apart are counted the slow way."""
FEW_STEPS = 5
"""Fewer steps are all shown at first."""
_COLOURS_KEPT = 2
NODE, STAGE = "node", "stage"


@dataclass(frozen=True, eq=False)
class Grouping:
    """Puts each rank that has a file into one group; those in none share one of their own."""

    of: NDArray[np.int32]
    """The group of each rank, in the order of ``ShownTrace.ranks``."""
    size: NDArray[np.int32]
    """Ranks of each group."""
    busy: NDArray[np.float64]
    """The share of the whole trace that each group's ranks computed, on average."""
    has_rest: bool
    """Whether the last group is of the ranks that are in none."""


@dataclass(frozen=True, eq=False)
class ShownTrace:
    """Holds a trace and all that its timeline is drawn from."""

    trace: Trace
    answers: TraceAnswers
    whole_below: int = WHOLE_BELOW
    _lock: Lock = field(default_factory=Lock)
    """The first questions of a page come at once; what they need is made only once."""

    @cached_property
    def table(self) -> TraceTable:
        """The trace's spans in the page's order."""
        return TraceTable.of(self.trace)

    @property
    def is_whole(self) -> bool:
        """Whether it is sent whole."""
        return len(self.trace.spans) < self.whole_below

    @cached_property
    def colours(self) -> list[str]:
        """The colours of the kinds of action in it."""
        return action_colours(self.trace.spans.kind)

    @cached_property
    def ranks(self) -> NDArray[np.int32]:
        """The ranks that have spans, ascending: one row each."""
        return np.unique(self.table.rank)

    @cached_property
    def steps(self) -> dict[str, Column]:
        """Each step's number and when its first span starts and its last one ends."""
        spans = self.trace.spans
        low = int(spans.step.min(initial=0))
        row: NDArray[np.signedinteger] = spans.step - low
        # Numbers from the lowest on serve as rows without a sort, those in between that no span has
        # among them; where numbers lie far apart, these would be too many.
        if int(row.max(initial=0)) > MOST_STEPS:
            _, row = np.unique(spans.step, return_inverse=True)
        count = int(row.max(initial=-1)) + 1
        start, end = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
        np.minimum.at(start, row, spans.start_ns)
        np.maximum.at(end, row, spans.end_ns)
        number = np.full(count, -1, dtype=np.int32)
        number[row] = spans.step
        is_there = end >= 0
        return {
            "step:number": number[is_there],
            "step:start_ns": start[is_there].astype(np.float64),
            "step:end_ns": end[is_there].astype(np.float64),
        }

    @property
    def middle(self) -> int:
        """The place among its steps of the one of median length, -1 where there are few to choose.

        A page that opens on it shows what a step is like, where all steps at once are a barcode.
        """
        length = np.subtract(self.steps["step:end_ns"], self.steps["step:start_ns"])
        if len(length) < FEW_STEPS:
            return -1
        return int(np.argsort(length, kind="stable")[(len(length) - 1) // 2])

    @cached_property
    def measured(self) -> Measured:
        """What each of its spans may be measured by; making it may refuse.

        A schedule that is not named is looked for in what ran, unless the trace is large; a plan
        is not held against itself.
        """
        if self.trace.is_planned:
            return {}
        if self.trace.job.schedule == UNKNOWN_SCHEDULE and not (self.is_whole and self._has_plan):
            return {}
        return {"lateness": lambda: self.answers.overlay.late_ns(self.trace.spans)}

    @property
    def _has_plan(self) -> bool:
        try:
            return bool(self.answers.overlay)
        except InputError:
            return False

    def values(self, name: str) -> Values:
        """Returns what is measured of each row of the trace's spans."""
        with self._lock:
            if name not in self._values:
                self._values[name] = self.measured[name]()
            return self._values[name]

    @cached_property
    def _values(self) -> dict[str, Values]:
        return {}

    def edges(self, name: str) -> list[float]:
        """Returns the edges of the classes of what is measured.

        Raises InputError for what is not, and where it cannot be.
        """
        if name not in self.measured:
            require_colour(name or "?", self.measured)
        return scale_edges(self.values(name))

    def levels(self, colour: str) -> Levels:
        """Returns the sums for one way to colour; those of the last two ways are kept."""
        # values() takes the lock itself, and a Lock cannot be taken twice.
        values = self.values(colour) if colour in self.measured else None
        with self._lock:
            if colour not in self._levels:
                spans = self.trace.spans
                classes = classes_of(colour, spans, self.colours, values)
                if self.table.order is not None:
                    classes = classes[self.table.order]
                while len(self._levels) >= _COLOURS_KEPT:
                    del self._levels[next(iter(self._levels))]
                count = num_classes(colour, self.colours)
                self._levels[colour] = Levels.of(self.table, classes, count)
            return self._levels[colour]

    @cached_property
    def _levels(self) -> dict[str, Levels]:
        return {}

    @cached_property
    def groupings(self) -> list[str]:
        """What rows may stand under: node, stage, and the group kinds of its layout."""
        layout = self.trace.layout
        return [NODE, STAGE, *(kind.name for kind in layout.kinds)] if layout else [NODE]

    def require_grouping(self, by: str) -> str:
        """Returns ``by``; raises InputError for what rows cannot stand under."""
        if by and by not in self.groupings:
            raise InputError(
                "rows cannot stand under '{by}'; they can under {groupings}",
                by=by[:40],
                groupings=listed(self.groupings, limit=len(self.groupings)),
            )
        return by

    def grouping(self, by: str) -> Grouping:
        """Returns the groups of a kind, of node or of stage."""
        with self._lock:
            if by not in self._groupings:
                self._groupings[by] = self._grouped(self._group_of(by))
            return self._groupings[by]

    @cached_property
    def _groupings(self) -> dict[str, Grouping]:
        return {}

    def _group_of(self, by: str) -> NDArray[np.int32]:
        """Returns the group of each rank of the world, -1 for none."""
        world = self.trace.job.world_size
        if by == NODE:
            return (np.arange(world) // self.trace.placement.ranks_per_node).astype(np.int32)
        if by == STAGE:
            stage = np.zeros(world, dtype=np.int32)
            stage[self.table.rank] = self.table.columns()["track:stage"]
            return stage
        assert self.trace.layout is not None
        return self.trace.layout.groups(by).index(world)

    def _grouped(self, of_rank: NDArray[np.int32]) -> Grouping:
        of = of_rank[self.ranks].astype(np.int32)
        num_groups = int(of_rank.max(initial=-1)) + 1
        # Ranks in no group, which are numbered -1, make one more group behind the others.
        has_rest = bool((of < 0).any())
        of = np.where(of < 0, num_groups, of).astype(np.int32)
        size = np.bincount(of, minlength=num_groups + has_rest)
        busy = np.bincount(of, self._busy, minlength=len(size)) / np.maximum(1, size)
        return Grouping(of, size.astype(np.int32), busy, has_rest)

    @cached_property
    def _busy(self) -> Values:
        """The share of the trace that each rank with spans computed."""
        spans = self.trace.spans
        computes = np.isin(spans.kind, list(COMPUTE))
        took = np.where(computes, spans.end_ns - spans.start_ns, 0)
        total = np.bincount(np.searchsorted(self.ranks, spans.rank), took)
        return np.minimum(1.0, total / max(1, self.table.total_ns))
