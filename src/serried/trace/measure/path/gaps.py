"""Gaps: when a rank waited longest before an action, for whom, and what had made that one late.

    rank 0   [1B7]~~~ loading data ~~~[0F0]
    rank 5   [OPTIMIZER]....................[1F0]     it waited for 0F0 of rank 0, which began late
                        `----- the gap -----'         because of what rank 0 did before

A gap lies between the end of what a rank did and the start of what it did next, from a step to the
one after too, or from when it came to a reduction until the last of its group did. The way back
(``graph``) says what went on elsewhere meanwhile. Its *root* is the piece that took most beyond
what is usual: of an action the median of all ranks for its kind, of anything else nothing at all.
A gap without a root is one that the order of the actions makes.

Gaps are ranked by what they exceed the plan by (``overlay``), where there is one, and of those of
one cause the longest stands for all: of one root, or of whichever collectives or messages held
ranks up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, ActionKind, Spans
from serried.trace.measure.moments import computing_ns
from serried.trace.measure.overlay import Overlay
from serried.trace.measure.path.graph import NAMES, PathGraph, PathPiece, Rows
from serried.trace.measure.path.held import HeldUp
from serried.trace.model.pairs import RECEIVES, computed_from
from serried.trace.model.trace import Trace

MOST = 6
"""How many gaps are told, each with a root of its own."""
ORDER = "order"
"""The root of a gap that the order of the actions makes."""
OF_ALL = ("exchange", "transfer")
"""Kinds of roots that are no one rank's: a collective that holds ranks up, and a message."""

_ACTIONS = ("forward", "backward", "weight", "optimizer")
"""Pieces of these kinds are held against what is usual of their kind of action."""
_MOST_WALKED = 2_000
_MOST_SPANS = 400_000
"""A longer run is looked into in its longest steps, as many as that are."""
_WORTH_SAYING = 0.01
"""The share of a step that a gap is worth being told from."""
_OF_GAP = 0.2
"""The share of what a gap exceeds its plan by that its root makes at least."""
_LEAST_EXCESS = 0.25
"""What a gap exceeds its plan by counts as this share of the gap at least, to judge its root by."""

Times = NDArray[np.int64]
Nanoseconds = NDArray[np.float64]


@dataclass(frozen=True)
class GapPiece:
    """Says what one rank did during a gap of another, or did not."""

    rank: int
    kind: str
    """One of ``recorded_path.KINDS``."""
    action: str | None
    name: str
    """What its user called what covers most of it, or the action that does; "" for neither."""
    start_ns: int
    end_ns: int
    took_ns: int
    """How long the whole of it took, before the gap too."""
    usual_ns: int | None
    """The ranks' median for such an action; None where it is none."""

    @property
    def beyond_ns(self) -> int:
        """What it took beyond what is usual."""
        if self.usual_ns is None:
            return self.end_ns - self.start_ns
        return max(0, self.took_ns - self.usual_ns)


@dataclass(frozen=True)
class Gap:
    """Holds one gap of one rank, and how it came about."""

    rank: int
    step: int
    action: str
    """What the rank did after it, or the reduction that it waited in."""
    start_ns: int
    end_ns: int
    planned_ns: int | None
    """How long it is in the plan; None where no plan has it."""
    pieces: tuple[GapPiece, ...]
    """The newest first; they go back to its start at least."""
    alike: int = 1
    """How many of the gaps that were looked into have its root, itself among them."""
    alike_ns: int = 0
    """How long these are in all."""
    alike_steps: tuple[int, int] = (0, 0)
    """The first step and the last in which one of these ends."""

    @property
    def length_ns(self) -> int:
        """How long it is."""
        return self.end_ns - self.start_ns

    @property
    def beyond_ns(self) -> int:
        """By how much it is longer than planned."""
        return self.length_ns - (self.planned_ns or 0)

    @cached_property
    def awaited(self) -> GapPiece | None:
        """The action of another rank that it waited for; None where it waited for none."""
        return next((each for each in self.pieces if self._is_awaited(each)), None)

    def _is_awaited(self, piece: GapPiece) -> bool:
        return piece.rank != self.rank and piece.action is not None

    @cached_property
    def root(self) -> GapPiece | None:
        """The piece that took most beyond what is usual; None where none took much."""
        worst = max(self.pieces, key=lambda each: each.beyond_ns, default=None)
        beyond = max(self.beyond_ns, _LEAST_EXCESS * self.length_ns)
        return None if worst is None or worst.beyond_ns < _OF_GAP * beyond else worst

    @property
    def cause(self) -> tuple[int, str, str]:
        """What gaps of one cause share: their root's kind, its rank if it is one's, its name."""
        if self.root is None:
            return -1, ORDER, ""
        if self.root.kind in OF_ALL:
            return -1, self.root.kind, ""
        return self.root.rank, self.root.kind, "" if self.root.action else self.root.name


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Holds gaps that were not looked into yet: before which row each lies, and when."""

    row: Rows
    start_ns: Times
    end_ns: Times
    planned_ns: Nanoseconds
    """NaN where no plan has it."""

    @property
    def beyond_ns(self) -> Nanoseconds:
        length = (self.end_ns - self.start_ns).astype(np.float64)
        return length - np.nan_to_num(self.planned_ns)


def largest_gaps(
    trace: Trace, spans: Spans, overlay: Overlay | None, *, most: int = MOST
) -> tuple[Gap, ...]:
    """Returns the gaps in ``spans``, those of complete steps, the ones longest beyond plan first.

    There are none where spans hold the waits for their inputs: these cannot be told apart.
    """
    if trace.waits_inside or not len(spans):
        return ()
    part, length_ns = _longest_steps(spans)
    back = _Back.of(trace, part)
    found = back.candidates(overlay)
    beyond = found.beyond_ns
    order = np.argsort(-beyond, kind="stable")[:_MOST_WALKED]
    order = order[beyond[order] >= max(1, _WORTH_SAYING * length_ns)]
    return _by_cause([back.gap(found, int(at)) for at in order])[:most]


def gap_before(trace: Trace, row: int, overlay: Overlay | None) -> Gap | None:
    """Returns the gap before the span in ``row``, of a receive the one before what it was for.

    None where the rank did not wait, or nothing says for whom.
    """
    spans, step = trace.spans, int(trace.spans.step[row])
    if trace.waits_inside:
        return None
    steps = np.unique(spans.step)
    at = int(np.searchsorted(steps, step))
    rows = np.flatnonzero(np.isin(spans.step, steps[max(0, at - 1) : at + 1]))
    back = _Back.of(trace, spans.where(rows))
    mine = int(np.searchsorted(rows, row))
    if spans.kind[row] in RECEIVES:
        mine = int(computed_from(back.spans, np.array([mine]))[0])
    found = back.candidates(overlay)
    places = np.flatnonzero(found.row == mine)
    if mine < 0 or not len(places):
        return None
    return back.gap(found, int(places[np.argmax(found.end_ns[places] - found.start_ns[places])]))


def _longest_steps(spans: Spans) -> tuple[Spans, float]:
    """Returns the spans of the longest steps, each with the step before, and a step's length."""
    steps, of = np.unique(spans.step, return_inverse=True)
    first, last = np.full(len(steps), np.iinfo(np.int64).max), np.zeros(len(steps), dtype=np.int64)
    np.minimum.at(first, of, spans.start_ns)
    np.maximum.at(last, of, spans.end_ns)
    length = last - first
    median = float(np.median(length))
    if len(spans) <= _MOST_SPANS:
        return spans, median
    counts = np.bincount(of)
    kept = np.zeros(len(steps), dtype=np.bool_)
    for at in np.argsort(-length, kind="stable"):
        kept[max(0, at - 1) : at + 1] = True
        if counts[kept].sum() > _MOST_SPANS:
            break
    return spans.where(kept[of]), median


def _by_cause(gaps: Sequence[Gap]) -> tuple[Gap, ...]:
    """Returns the first gap of each cause, with how many there are, how long, and when."""
    alike: dict[tuple[int, str, str], list[Gap]] = {}
    for gap in gaps:
        alike.setdefault(gap.cause, []).append(gap)
    return tuple(
        replace(
            each[0],
            alike=len(each),
            alike_ns=sum(one.length_ns for one in each),
            alike_steps=(min(one.step for one in each), max(one.step for one in each)),
        )
        for each in alike.values()
    )


@dataclass(frozen=True, eq=False)
class _Back:
    """Holds what the gaps of ``spans`` are looked into by."""

    trace: Trace
    spans: Spans
    graph: PathGraph
    held: HeldUp
    alone_ns: Times
    """How long each span took, less what its rank waited inside it."""
    usual: dict[int, int]
    """By kind, the median over ranks of their own medians."""

    @classmethod
    def of(cls, trace: Trace, spans: Spans) -> _Back:
        graph = PathGraph.of(spans, trace.layout, trace.job.world_size, across=True)
        alone = computing_ns(spans)
        return cls(trace, spans, graph, HeldUp.of(spans), alone, _usual(spans, alone))

    def candidates(self, overlay: Overlay | None) -> _Candidates:
        """Returns all gaps: before computations and optimizers, and in reductions."""
        spans, graph = self.spans, self.graph
        is_work = np.isin(spans.kind, [*COMPUTE, ActionKind.OPTIMIZER])
        rows = np.flatnonzero(is_work & (graph.before >= 0))
        before = graph.before[rows]
        # A step between them that is not there was left out, or is not looked into.
        rows = rows[spans.step[rows] - spans.step[before] <= 1]
        starts = spans.end_ns[graph.before[rows]]
        planned = _planned(spans, rows, graph.before[rows], overlay)
        kept = spans.start_ns[rows] > starts
        late = np.flatnonzero(graph.latest >= 0)
        late = late[graph.before[late] >= 0]
        came = spans.start_ns[graph.latest[late]]
        late, came = late[came > spans.start_ns[late]], came[came > spans.start_ns[late]]
        behind = np.array(sorted(graph.entered), dtype=np.int64)
        waits = np.array([graph.held[row] for row in behind.tolist()], dtype=np.int64)
        ends = np.array([graph.entered[row][1] for row in behind.tolist()], dtype=np.int64)
        none = np.full(len(late) + len(behind), np.nan)
        return _Candidates(
            np.concatenate([rows[kept], late, behind]),
            np.concatenate([starts[kept], spans.start_ns[late], spans.start_ns[waits]]),
            np.concatenate([spans.start_ns[rows][kept], came, ends]),
            np.concatenate([planned[kept], none]),
        )

    def gap(self, found: _Candidates, at: int) -> Gap:
        """Returns one of the gaps with the way back through it."""
        row, begin, end = int(found.row[at]), int(found.start_ns[at]), int(found.end_ns[at])
        planned, span = float(found.planned_ns[at]), self.spans[row]
        pieces = self.held.apart(tuple(self._way(row, begin, end))[::-1])[::-1]
        return Gap(
            span.rank,
            span.step,
            str(span.action),
            begin,
            end,
            None if np.isnan(planned) else round(planned),
            tuple(self._piece(each, begin) for each in pieces if each.end_ns > begin),
        )

    def _way(self, row: int, begin_ns: int, end_ns: int) -> Iterator[PathPiece]:
        """Yields what went on from the gap's end back to its start."""
        graph = self.graph
        if graph.spans.start_ns[row] >= end_ns:
            return graph.way_to(row, begin_ns)
        # It waited in a reduction, or in a backward for one: until the last of the group came.
        late, _ = graph.entered.get(row, (int(graph.latest[row]), 0))
        return graph.walk(late, end_ns, begin_ns)

    def _piece(self, piece: PathPiece, begin_ns: int) -> GapPiece:
        usual, took, start = None, piece.end_ns - piece.start_ns, max(piece.start_ns, begin_ns)
        if piece.row >= 0 and piece.kind in _ACTIONS:
            usual = self.usual.get(int(self.spans.kind[piece.row]))
            took = int(self.alone_ns[piece.row])
        name = "" if piece.action else self._covering(piece)
        return GapPiece(
            piece.rank, piece.kind, piece.action, name, start, piece.end_ns, took, usual
        )

    def _covering(self, piece: PathPiece) -> str:
        """Returns the name of what was recorded in most of a piece without an action."""
        spans = self.spans
        low, high = np.searchsorted(spans.rank, [piece.rank, piece.rank + 1])
        inside = slice(low, high)
        part = np.minimum(spans.end_ns[inside], piece.end_ns) - np.maximum(
            spans.start_ns[inside], piece.start_ns
        )
        part[np.isin(spans.kind[inside], sorted(NAMES))] = 0
        at = int(np.argmax(part)) if len(part) else -1
        if at < 0 or part[at] * 2 < piece.end_ns - piece.start_ns:
            return ""
        row = low + at
        if spans.kind[row] == ActionKind.SPAN:
            return self.trace.called(int(spans.peer[row]))
        return str(spans[int(row)].action)


def _usual(spans: Spans, alone_ns: Times) -> dict[int, int]:
    """Returns how long a kind of action usually takes, of what ranks take it."""
    usual = {}
    for kind in {*COMPUTE, ActionKind.OPTIMIZER}:
        rows = np.flatnonzero(spans.kind == kind)
        if not len(rows):
            continue
        ranks = [rows[spans.rank[rows] == rank] for rank in np.unique(spans.rank[rows])]
        usual[int(kind)] = round(float(np.median([np.median(alone_ns[each]) for each in ranks])))
    return usual


def _planned(spans: Spans, rows: Rows, before: Rows, overlay: Overlay | None) -> Nanoseconds:
    """Returns how long the plan waits before each of ``rows``, NaN where it has no such action."""
    if overlay is None:
        return np.full(len(rows), np.nan)
    plan = overlay.planned
    order = np.lexsort((plan.start_ns, plan.rank))
    gap = np.empty(len(plan))
    follows = np.diff(plan.rank[order], prepend=-1) == 0
    ends = np.append([0], plan.end_ns[order][:-1])
    gap[order] = plan.start_ns[order] - np.where(follows, ends, 0)
    mine = spans.where(rows)
    at = overlay.rows(mine)
    planned = np.where(at >= 0, gap[at], np.nan)
    # Behind its last computation a rank of the plan waits until the last of all is done.
    done = np.zeros(int(plan.rank.max()) + 1)
    np.maximum.at(done, plan.rank, plan.end_ns)
    drain = done.max() - done[overlay.place[mine.rank]]
    is_after_all = np.isin(spans.kind[before], list(COMPUTE)) & (spans.step[before] != mine.step)
    planned += np.where(is_after_all, drain, 0)
    return np.where(mine.kind == ActionKind.OPTIMIZER, drain, planned)
