"""Looped BFS: every rank runs all microbatches through one chunk before the next chunk.

    p = 2 ranks, m = 2 microbatches, v = 2 chunks

    rank 0  0F0 0F1 2F0 2F1  .   .  2B1 2B0 0B1 0B0
    rank 1   .  1F0 1F1 3F0 3F1 3B1 3B0 1B1 1B0  .

Breadth first: parameters of a chunk are gathered once a step, for m * v activations.
Rule: arXiv 2211.05953; backwards in descending order, as PyTorch's ``ScheduleLoopedBFS``.
"""

from __future__ import annotations

from serried.action import ActionKind
from serried.pipeline.packed import Codes, chain, work
from serried.pipeline.placement import loop
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.sizes import at_least, some_of_each


def looped_bfs(num_ranks: int, num_microbatches: int, chunks: int = 2) -> Schedule:
    """Returns the schedule of ``chunks`` stages a rank.

    >>> [" ".join(map(str, actions)) for actions in looped_bfs(1, 2, 2)]
    ['0F0 0F1 1F0 1F1 1B1 1B0 0B1 0B0']
    """
    some_of_each("looped-bfs", num_ranks, num_microbatches)
    at_least("looped-bfs", "chunks", chunks, 1)
    ranks = [
        _rank(range(rank, num_ranks * chunks, num_ranks), num_microbatches)
        for rank in range(num_ranks)
    ]
    return Schedule.of("looped-bfs", loop(num_ranks, chunks), num_microbatches, ranks)


def _rank(stages: range, m: int) -> Codes:
    forwards = [work(ActionKind.F, stage, range(m)) for stage in stages]
    backwards = [work(ActionKind.B, stage, range(m - 1, -1, -1)) for stage in reversed(stages)]
    return chain(*forwards, *backwards)
