"""The critical path of a recorded step over all its ranks: what it would have to be shorter in.

    rank 0   [0F0][0F1]                ,[0B0][0B1][ optimizer ]   end of the step
                 `-- transfer --.     /
    rank 1            .. wait ..[1F0][1B0]                        read backwards from the end

It is walked back from the step's last end (``graph``), so its pieces' shares add up to the step.
What a collective held a rank up for is *exchange*, inside a computation or outside: which ranks
were in it was not recorded, so the path stays where it is.
Shortening what is not on the path gains nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from serried.action import Spans
from serried.trace.measure.path.graph import NAMES, PathGraph, PathPiece
from serried.trace.measure.path.held import HeldUp
from serried.trace.model.trace import Trace

KINDS = (
    "forward",
    "backward",
    "weight",
    "reduce",
    "exchange",
    "optimizer",
    "transfer",
    "other",
)
"""What a piece of the path is; *weight* where backwards are done in two halves."""

_MOST_STEPS = 32
"""How many steps are walked, evenly spread; the shares are means over them."""


@dataclass(frozen=True)
class RecordedPath:
    """Holds the path of a middling step, and what paths are made of, a mean over steps."""

    steps: tuple[int, ...]
    """The steps that were walked."""
    step: int
    """The one of median length, whose pieces are kept."""
    pieces: tuple[PathPiece, ...]
    by_kind: dict[str, float]
    """Shares of the step, by ``KINDS``; they add up to 1."""
    by_rank: dict[int, float]
    """Shares of the step, by rank; those of ranks that are never on it are left out."""


def recorded_path(trace: Trace, spans: Spans) -> RecordedPath | None:
    """Returns the path through ``spans``, those of complete steps; None where there are none."""
    steps = np.unique(spans.step)
    if len(steps) > _MOST_STEPS:
        steps = steps[np.linspace(0, len(steps) - 1, _MOST_STEPS).astype(int)]
    spans = spans.where(np.isin(spans.step, steps))
    graph, held = PathGraph.of(spans, trace.layout, trace.job.world_size), HeldUp.of(spans)
    paths = {int(step): held.apart(tuple(_walk(graph, int(step)))[::-1]) for step in steps}
    paths = {step: pieces for step, pieces in paths.items() if pieces}
    if not paths:
        return None
    lengths = {step: each[-1].end_ns - each[0].start_ns for step, each in paths.items()}
    by_length = sorted(paths, key=lambda step: (lengths[step], step))
    by_kind, by_rank = dict.fromkeys(KINDS, 0.0), dict[int, float]()
    for step, pieces in paths.items():
        for piece in pieces:
            share = (piece.end_ns - piece.start_ns) / lengths[step] / len(paths)
            by_kind[piece.kind] += share
            by_rank[piece.rank] = by_rank.get(piece.rank, 0.0) + share
    # The lower median: a step that was walked, whose pieces are there to be shown.
    middle = by_length[(len(by_length) - 1) // 2]
    return RecordedPath(tuple(paths), middle, paths[middle], by_kind, dict(sorted(by_rank.items())))


def _walk(graph: PathGraph, step: int) -> Iterator[PathPiece]:
    """Yields the pieces of one step's path, the last first."""
    row = graph.last.get(step, -1)
    if row < 0:
        return
    spans = graph.spans
    mine = spans.step == step
    begin = int(spans.start_ns[mine & np.isin(spans.kind, sorted(NAMES))].min())
    yield from graph.walk(row, int(spans.end_ns[row]), begin)
