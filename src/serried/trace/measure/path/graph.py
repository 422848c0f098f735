"""What each action of recorded steps came after, and the way back from any of them.

    rank 0   [0F0][0F1]                ,[0B0][0B1][ optimizer ]
                 `-- transfer --.     /
    rank 1            .. wait ..[1F0][1B0]        from 0B0 back to 1B0, 1F0, the message, 0F0

From a computation the way leads to the one whose result it waited for, where that came later than
its own rank was free, else to what its rank did before; from a reduction, and from an optimizer
that had to wait, to the rank that came to it last. The pieces of a way follow one another without a
gap. Where a receive was recorded, the time before its sender began is not transfer but the sender's
own way. Where a backward waits for a bucket of gradients, whose ranks are known, the way goes to
the one that launched it last. What no span covers is *other*: Python, launches, the wait for its
turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, Action, ActionKind, Column, Spans
from serried.mesh import Layout
from serried.trace.measure.moments import in_computations, wait_rows
from serried.trace.model.pairs import computed_from, packed, pair_messages, whole_hand_overs
from serried.trace.model.recorded_order import pipeline_ranks

_REDUCES = (ActionKind.REDUCE_GRAD, ActionKind.UNSHARD, ActionKind.RESHARD)
NAMES = {
    ActionKind.F: "forward",
    ActionKind.OVERLAP_F_B: "forward",
    ActionKind.B: "backward",
    ActionKind.I: "backward",
    ActionKind.W: "weight",
    ActionKind.OPTIMIZER: "optimizer",
    **dict.fromkeys(_REDUCES, "reduce"),
}

"""What kind of piece a span is; spans of other kinds are on no way."""

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class PathPiece:
    """Holds one piece of the path; its action is None where no action of its rank covers it."""

    rank: int
    kind: str
    action: str | None
    start_ns: int
    end_ns: int
    row: int = -1
    """The span that it is a part of, -1 where its action is None."""


@dataclass(frozen=True, eq=False)
class PathGraph:
    """Holds what each row of ``spans`` comes after; -1 where it comes after nothing."""

    spans: Spans
    before: Rows
    """The row before it on its own rank and step."""
    producer: Rows
    """The row on another rank whose result it waited for."""
    sent_ns: Rows
    """When that result began to be sent, -1 where no send was recorded."""
    waited_ns: Rows
    """When its rank began to wait for it, -1 where no receive was recorded."""
    latest: Rows
    """For a reduction, the row of its group that began last."""
    entered: dict[int, tuple[int, int]]
    """For a computation that waited for a reduction behind it: the computation, on another rank,
    that launched it last, and when."""
    held: dict[int, int]
    """The row of that wait."""
    last: dict[int, int]
    """The row that each step ends with."""

    @classmethod
    def of(
        cls, spans: Spans, layout: Layout | None, world_size: int, *, across: bool = False
    ) -> PathGraph:
        """Returns the graph of ``spans``; ``across`` lets an action follow one of another step."""
        return _graph(spans, layout, world_size, across=across)

    def way_to(self, row: int, begin_ns: int) -> Iterator[PathPiece]:
        """Yields the pieces of the way from the start of ``row`` back, the last first."""
        start, end = int(self.spans.start_ns[row]), int(self.spans.end_ns[row])
        pieces, before, until = _one_back(self, row, max(end, start + 1), begin_ns)
        yield from (each for each in pieces if each.row != row)
        yield from self.walk(before, until, begin_ns)

    def walk(self, row: int, until_ns: int, begin_ns: int) -> Iterator[PathPiece]:
        """Yields the pieces of the way from ``row`` at ``until_ns`` back, the last first.

        The last piece is the one that was going on at ``begin_ns``.
        """
        seen: set[int] = set()
        # Times that contradict one another could lead back to a row: each is followed once.
        while row >= 0 and row not in seen and until_ns > begin_ns:
            seen.add(row)
            late = int(self.latest[row])
            late, came_ns = self.entered.get(row, (late, int(self.spans.start_ns[late])))
            # It was held up until the last of its group came: before that moment the way is that
            # one's.
            if late >= 0 and late not in seen and self.spans.start_ns[row] < came_ns < until_ns:
                yield _piece(self, row, came_ns, until_ns)
                row, until_ns = late, came_ns
                seen.add(row)
            pieces, row, until_ns = _one_back(self, row, until_ns, begin_ns)
            yield from pieces


def _graph(spans: Spans, layout: Layout | None, world_size: int, *, across: bool) -> PathGraph:
    none = np.full(len(spans), -1, dtype=np.int64)
    work = np.flatnonzero(np.isin(spans.kind, sorted(NAMES)) & (spans.end_ns > spans.start_ns))
    # What goes on behind a computation, or holds it up, does not part it from what follows.
    is_behind = np.isin(spans.kind, _REDUCES) & in_computations(spans)
    work = work[~is_behind[work]]
    work = work[np.lexsort((spans.end_ns[work], spans.start_ns[work], spans.rank[work]))]
    if not across:
        work = work[np.argsort(spans.step[work], kind="stable")]
    before = none.copy()
    follows = np.diff(spans.rank[work]) == 0
    if not across:
        follows &= np.diff(spans.step[work]) == 0
    before[work[1:][follows]] = work[:-1][follows]
    pipeline = np.zeros(world_size, dtype=np.int64)
    columns = pipeline_ranks(layout, world_size)
    pipeline[columns] = np.arange(len(columns))[:, None]
    made, used = whole_hand_overs(spans, pipeline if layout is not None else None)
    crosses = spans.rank[made] != spans.rank[used]
    producer = none.copy()
    producer[used[crosses]] = made[crosses]
    _follow_the_last(spans, work, producer)
    sent, waited = none.copy(), none.copy()
    pairs = pair_messages(spans)
    computed = computed_from(spans, pairs.receives)
    known = computed >= 0
    sent[computed[known]] = spans.start_ns[pairs.sends[known]]
    waited[computed[known]] = spans.start_ns[pairs.receives[known]]
    ends = work[np.lexsort((spans.end_ns[work], spans.step[work]))]
    latest = _latest(spans, layout, world_size)
    entered, held = _entered(spans, np.flatnonzero(is_behind), latest)
    return PathGraph(
        spans=spans,
        before=before,
        producer=producer,
        sent_ns=sent,
        waited_ns=waited,
        latest=latest,
        entered=entered,
        held=held,
        last=dict(zip(spans.step[ends].tolist(), ends.tolist(), strict=True)),
    )


def _follow_the_last(spans: Spans, work: Rows, producer: Rows) -> None:
    """Lets every optimizer follow the rank that was ready last, which a global norm waits for."""
    is_optimizer = spans.kind[work] == ActionKind.OPTIMIZER
    others, optimizers = work[~is_optimizer], work[is_optimizer]
    by_end = others[np.lexsort((spans.end_ns[others], spans.step[others]))]
    # Later entries take the place of earlier ones, so the last to end in each step stays.
    last = dict(zip(spans.step[by_end].tolist(), by_end.tolist(), strict=True))
    for row, step in zip(optimizers.tolist(), spans.step[optimizers].tolist(), strict=True):
        before = last.get(step, -1)
        if before >= 0 and spans.end_ns[before] <= spans.start_ns[row]:
            producer[row] = before


def _latest(spans: Spans, layout: Layout | None, world_size: int) -> Rows:
    """Returns of each reduction the row of its group that began last: who came late to it."""
    latest = np.full(len(spans), -1, dtype=np.int64)
    rows = np.flatnonzero(np.isin(spans.kind, _REDUCES))
    if layout is None or not len(rows) or "dp" not in layout.dims:
        return latest
    group = np.arange(world_size)
    for ranks in layout.groups(layout.kind_of("dp", with_cp=True)).lists():
        group[ranks] = ranks[0]
    rows = rows[np.lexsort((spans.start_ns[rows], spans.rank[rows]))]
    named = [spans.step[rows], spans.kind[rows], spans.stage[rows]]
    # Nothing names a reduction but its turn: the k-th of a step, kind and stage on one rank meets
    # the k-th of the others in its group.
    own = packed([column.astype(np.int64) for column in (*named, spans.rank[rows])])
    order = np.argsort(own, kind="stable")
    is_new = np.diff(own[order], prepend=-1) != 0
    turn = np.empty(len(rows), dtype=np.int64)
    at = np.arange(len(rows))
    turn[order] = at - np.maximum.accumulate(np.where(is_new, at, 0))
    shared = packed([*(column.astype(np.int64) for column in named), group[spans.rank[rows]], turn])
    by_start = np.lexsort((spans.start_ns[rows], shared))
    ends_group = np.diff(shared[by_start], append=-1) != 0
    last = dict(
        zip(shared[by_start][ends_group].tolist(), rows[by_start][ends_group].tolist(), strict=True)
    )
    latest[rows] = [last[each] for each in shared.tolist()]
    return latest


def _entered(
    spans: Spans, behind: Rows, latest: Rows
) -> tuple[dict[int, tuple[int, int]], dict[int, int]]:
    """Returns ``entered`` and ``held`` of the reductions ``behind`` computations, the last of each.

    A rank that still computed when another launched the bucket did not wait for that one.
    """
    behind = behind[latest[behind] >= 0]
    behind = behind[spans.rank[latest[behind]] != spans.rank[behind]]
    behind = behind[np.argsort(spans.end_ns[behind], kind="stable")]
    came_ns = spans.start_ns[latest[behind]]
    waits = np.flatnonzero(wait_rows(spans))
    held = _covering(spans, waits, spans.rank[behind], came_ns)
    own = _covering(spans, _computations(spans), spans.rank[behind], came_ns)
    other = _covering(spans, _computations(spans), spans.rank[latest[behind]], came_ns)
    counts = (held >= 0) & (own >= 0) & (other >= 0)
    counts &= (spans.end_ns[behind] > came_ns) & (spans.end_ns[behind] <= spans.end_ns[held])
    columns = (own[counts], other[counts], came_ns[counts], held[counts])
    rows, others, moments, waiting = (column.tolist() for column in columns)
    entered = dict(zip(rows, zip(others, moments, strict=True), strict=True))
    return entered, dict(zip(rows, waiting, strict=True))


def _computations(spans: Spans) -> Rows:
    return np.flatnonzero(np.isin(spans.kind, sorted(COMPUTE)))


def _covering(spans: Spans, rows: Rows, ranks: Column, moments: Rows) -> Rows:
    """Returns of each moment of a rank the one of ``rows`` that began last and covers it, or -1."""
    found = np.full(len(ranks), -1, dtype=np.int64)
    for rank in np.intersect1d(ranks, spans.rank[rows]):
        mine = rows[spans.rank[rows] == rank]
        mine = mine[np.argsort(spans.start_ns[mine], kind="stable")]
        asked = np.flatnonzero(ranks == rank)
        at = np.searchsorted(spans.start_ns[mine], moments[asked], "right") - 1
        row = mine[at]
        found[asked] = np.where((at >= 0) & (spans.end_ns[row] > moments[asked]), row, -1)
    return found


def _one_back(
    graph: PathGraph, row: int, until: int, begin: int
) -> tuple[list[PathPiece], int, int]:
    """Returns the pieces from ``until`` back to the row before, that row, and when it is left."""
    spans, rank = graph.spans, int(graph.spans.rank[row])
    before, producer = int(graph.before[row]), int(graph.producer[row])
    free = begin if before < 0 else max(begin, int(spans.end_ns[before]))
    made = int(spans.end_ns[producer]) if producer >= 0 else -1
    sent, waited = int(graph.sent_ns[row]), int(graph.waited_ns[row])
    arrives = made if sent < 0 else max(made, sent)
    # Of two that end at once the other rank's is followed, but an optimizer then waited for none.
    tie = int(spans.kind[row] != ActionKind.OPTIMIZER)
    comes_late = free < arrives + tie <= until
    if producer >= 0 and comes_late and (sent < 0 or sent > max(waited, free)):
        start = min(max(int(spans.start_ns[row]), made), until)
        pieces = [_piece(graph, row, start, until)]
        # Until its sender began to send, nothing was under way.
        leaves = min(max(sent, made), start)
        is_message = spans.kind[row] != ActionKind.OPTIMIZER
        pieces.append(PathPiece(rank, "transfer" if is_message else "other", None, leaves, start))
        made, other = min(made, leaves), int(spans.rank[producer])
        pieces.append(PathPiece(other, "other", None, made, leaves))
        return long_pieces(pieces), producer, made
    start = min(max(int(spans.start_ns[row]), begin), until)
    pieces = [_piece(graph, row, start, until)]
    free = min(free, start)
    came = min(max(waited, free), start) if waited >= 0 else start
    pieces.append(PathPiece(rank, "transfer", None, came, start))
    pieces.append(PathPiece(rank, "other", None, free, came))
    return long_pieces(pieces), before, free


def long_pieces(pieces: list[PathPiece]) -> list[PathPiece]:
    """Returns the pieces that take any time."""
    return [piece for piece in pieces if piece.end_ns > piece.start_ns]


def _piece(graph: PathGraph, row: int, start_ns: int, end_ns: int) -> PathPiece:
    spans = graph.spans
    kind = ActionKind(int(spans.kind[row]))
    action = Action(kind, int(spans.stage[row]), int(spans.microbatch[row]))
    return PathPiece(int(spans.rank[row]), NAMES[kind], str(action), start_ns, end_ns, row)
